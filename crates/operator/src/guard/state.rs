//! The counts of a guard, and whether it has tripped: a state machine with the time as a parameter.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use tokio::time::Instant;

use super::announced::{Announced, Announcements, Kind};
use super::rules::{Act, Rule};
use super::window::Window;

/// Whether a guard has tripped; its `Display` is one line.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum GuardState {
    /// Writes are counted and admitted.
    Watching,
    /// A budget was exceeded; writes are refused.
    Tripped(Trip),
}

/// The trip of a guard: when, why, and how many writes were refused since.
#[derive(Debug, Clone)]
pub struct Trip {
    since: Instant,
    until: Option<Instant>,
    reason: Arc<str>,
    refused: u64,
}

/// A write that asks to be admitted.
pub(super) struct Request<'a> {
    pub(super) act: Act,
    /// The effects of the writes to the same object that follow, and must not be refused once this one is sent.
    pub(super) then: Vec<Act>,
    /// The key of the written object; `None` for a collection or a creation.
    pub(super) key: Option<&'a ObjectKey>,
    /// A description of the write.
    pub(super) what: &'a dyn fmt::Display,
    /// The API path and the plural: the same for all writes of a kind.
    pub(super) api_path: &'a str,
    pub(super) plural: &'a str,
    /// The number of objects that are written, if it is known.
    pub(super) objects: Option<usize>,
    /// The weight of each object; `None` for a deletion that needs a weight to be set.
    pub(super) weight: Option<u32>,
    /// The number of cached objects of the kind; zero if it is not cached.
    pub(super) cached: usize,
}

/// The decision of a guard on a write.
pub(super) enum Ruling {
    /// No budget counts the write.
    NotCounted,
    /// An earlier write announced this one, and was counted with it.
    Announced(Announced),
    /// The write is counted, and may be sent.
    Counted(Ticket),
    /// The write is refused, because the guard has tripped.
    ///
    /// `is_first` is set if this write has tripped it.
    Tripped { trip: Trip, is_first: bool },
    /// The write is refused, because the number of deleted objects is unknown.
    Unknown,
    /// The write is refused, because deletions of the kind need a weight.
    NoWeight,
}

/// The count of a write, to revert it if the write had no effect.
#[derive(Debug)]
pub(super) struct Ticket {
    /// The number of resets before the count; after a reset there is nothing to revert.
    era: u64,
    kind: Kind,
    /// The rules that counted it, each with the slot of its window and the number of objects.
    slots: Vec<(usize, Instant, u64)>,
    /// The object whose following writes it announced.
    announced: Option<Announced>,
}

/// The number of windows at which empty ones are looked for and removed.
const CLEAR_AT: usize = 64;

/// The counts of a guard since its reset.
#[derive(Default)]
pub(super) struct Counts {
    tripped: Option<Trip>,
    /// The windows by rule, and by kind if the rule counts each kind separately.
    windows: HashMap<(usize, Option<Kind>), Window>,
    /// The number of windows after the last removal of empty ones.
    left: usize,
    /// The kinds by API path, so that the windows of a kind share one value.
    kinds: HashMap<String, Vec<Kind>>,
    /// The writes that were counted in advance and have not succeeded yet.
    announced: Announcements,
    /// The number of resets.
    era: u64,
}

impl Trip {
    /// Returns the time at which the guard tripped.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Returns the time at which the guard resets itself.
    ///
    /// `None` if it waits for [`Guard::reset`](crate::Guard::reset).
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Returns the exceeded budget and the write that exceeded it, as text.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the number of refused writes, with the one that tripped the guard.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    pub(super) fn shared_reason(&self) -> &Arc<str> {
        &self.reason
    }
}

impl Request<'_> {
    /// Returns the effects of the write and of those that follow.
    fn acts(&self) -> impl Iterator<Item = Act> {
        std::iter::once(self.act).chain(self.then.iter().copied())
    }

    /// Returns how many objects a rule counts for a write of `objects` and those after.
    fn amount(&self, rule: &Rule, objects: u64, then: &[Act]) -> u64 {
        let covers = |act: &Act| rule.verbs.cover(*act);
        let own = if covers(&self.act) { objects } else { 0 };
        let then = then.iter().filter(|act| covers(act)).count();
        own.saturating_add(then as u64)
    }
}

impl GuardState {
    /// Returns whether writes are refused.
    #[must_use]
    pub fn is_tripped(&self) -> bool {
        matches!(self, Self::Tripped(_))
    }

    /// Returns the trip, if the guard has tripped.
    #[must_use]
    pub fn trip(&self) -> Option<&Trip> {
        match self {
            Self::Watching => None,
            Self::Tripped(trip) => Some(trip),
        }
    }
}

impl fmt::Display for GuardState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Watching => f.write_str("watching"),
            Self::Tripped(trip) => write!(f, "tripped: {}; {} refused", trip.reason, trip.refused),
        }
    }
}

impl Counts {
    /// Resets the guard if that is due; returns whether it was reset.
    pub(super) fn reset_if_due(&mut self, now: Instant) -> bool {
        let until = self.tripped.as_ref().and_then(|trip| trip.until);
        until.is_some_and(|until| until <= now) && self.reset()
    }

    /// Returns the present state.
    pub(super) fn state(&mut self, now: Instant) -> GuardState {
        self.reset_if_due(now);
        match &self.tripped {
            Some(trip) => GuardState::Tripped(trip.clone()),
            None => GuardState::Watching,
        }
    }

    /// Returns the number of windows, and its bound.
    pub(super) fn windows(&self) -> (usize, usize) {
        (self.windows.len(), self.clear_at())
    }

    fn clear_at(&self) -> usize {
        CLEAR_AT.max(2 * self.left)
    }

    /// Removes empty windows, and kinds that no window uses.
    fn clear_away(&mut self, now: Instant) {
        self.windows.retain(|_, window| {
            window.forget(now);
            !window.is_empty()
        });
        self.left = self.windows.len();
        self.kinds.retain(|_, kinds| {
            // A count of one is the reference of this map itself.
            kinds.retain(|kind| Kind::strong_count(kind) > 1);
            !kinds.is_empty()
        });
    }

    /// Resets the counts; returns whether the guard had tripped.
    pub(super) fn reset(&mut self) -> bool {
        self.windows.clear();
        self.announced.clear();
        self.left = 0;
        // Tickets from before the reset must not revert counts from after it.
        self.era += 1;
        self.tripped.take().is_some()
    }

    /// Returns the object of a write if an earlier deletion announced writes of it.
    ///
    /// The writes may be of different calls: an object with finalizers is created again by a later one, and so is one
    /// whose creation failed.
    fn announced(&mut self, now: Instant, request: &Request<'_>) -> Option<Announced> {
        if self.announced.is_empty() {
            return None;
        }
        let object = self.object(request)?;
        self.announced.has(&object, now).then_some(object)
    }

    fn object(&mut self, request: &Request<'_>) -> Option<Announced> {
        let key = request.key?.clone();
        let kind = self.kind(request.api_path, request.plural);
        Some(Announced { kind, key })
    }

    /// Forgets the announcement of a write that has succeeded.
    pub(super) fn use_up(&mut self, announced: &Announced) {
        self.announced.use_up(announced);
    }

    /// Remembers the writes that follow a counted deletion.
    fn announce(&mut self, now: Instant, request: &Request<'_>) -> Option<Announced> {
        if request.then.is_empty() {
            return None;
        }
        let object = self.object(request)?;
        let has_room = self.announced.add(object.clone(), request.then.len(), now);
        has_room.then_some(object)
    }

    /// Counts a write, or refuses it.
    ///
    /// With the writes that follow it, which are counted at once, so that the guard cannot trip in between.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        rules: &[Rule],
        reset_after: Option<Duration>,
        request: &Request<'_>,
    ) -> Ruling {
        // In two passes: all rules are checked before any of them counts, so that a refused write is counted by none.
        let covering: Vec<_> = rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| request.acts().any(|act| rule.verbs.cover(act)))
            .collect();
        if covering.is_empty() {
            return Ruling::NotCounted;
        }
        self.reset_if_due(now);
        // Before the trip is checked, which may have happened since the first write.
        let announced = self.announced(now, request);
        let is_announced = announced.is_some();
        if let Some(announced) = announced.filter(|_| request.act != Act::Delete) {
            return Ruling::Announced(announced);
        }
        if let Some(trip) = &mut self.tripped {
            trip.refused += 1;
            let (trip, is_first) = (trip.clone(), false);
            return Ruling::Tripped { trip, is_first };
        }
        let Some(objects) = request.objects else {
            return Ruling::Unknown;
        };
        let Some(weight) = request.weight else {
            return Ruling::NoWeight;
        };
        // A collection that is empty in the cache may contain objects by now. It counts as one.
        // A weight of zero makes the write free, but it is still refused while the guard has tripped.
        let objects = (objects as u64).max(1).saturating_mul(weight.into());
        // Before windows are added, of which each rule adds at most one.
        if self.windows.len() + covering.len() > self.clear_at() {
            self.clear_away(now);
        }
        let kind = self.kind(request.api_path, request.plural);
        // An earlier deletion of the object was counted with them.
        let then = if is_announced { &[][..] } else { &request.then };
        for (number, rule) in &covering {
            let objects = request.amount(rule, objects, then);
            let window = self.window(*number, rule, &kind);
            window.forget(now);
            let cached = window.cached(request.cached);
            let (used, allowed) = (window.used(), rule.budget.allows(cached));
            if used.saturating_add(objects) > allowed {
                let text = format!(
                    "the {rule}, is used up: {used} of {allowed} when asked to {}",
                    request.what
                );
                return self.trip(now, reset_after, text);
            }
        }
        let count = |(number, rule)| {
            let objects = request.amount(rule, objects, then);
            let window = self.window(number, rule, &kind);
            (number, window.add(now, objects, request.cached), objects)
        };
        let slots = covering.into_iter().map(count).collect();
        Ruling::Counted(Ticket {
            era: self.era,
            announced: self.announce(now, request),
            kind,
            slots,
        })
    }

    /// Trips the guard.
    fn trip(&mut self, now: Instant, reset_after: Option<Duration>, reason: String) -> Ruling {
        // The period of a self-reset starts with the trip. Refused writes do not extend it.
        let trip = Trip {
            since: now,
            until: reset_after.and_then(|pause| now.checked_add(pause)),
            reason: reason.into(),
            refused: 1,
        };
        self.tripped = Some(trip.clone());
        let is_first = true;
        Ruling::Tripped { trip, is_first }
    }

    /// Reverts the count of a write that had no effect.
    pub(super) fn give_back(&mut self, ticket: &Ticket) {
        if ticket.era != self.era {
            return;
        }
        if let Some(announced) = &ticket.announced {
            self.announced.give_back(announced);
        }
        for (rule, slot, objects) in &ticket.slots {
            // Rules that count all kinds together have their window under no kind.
            // The slot may be forgotten by now, and nothing is reverted then.
            for kind in [None, Some(Kind::clone(&ticket.kind))] {
                if let Some(window) = self.windows.get_mut(&(*rule, kind)) {
                    window.give_back(*slot, *objects);
                }
            }
        }
    }

    fn window(&mut self, number: usize, rule: &Rule, kind: &Kind) -> &mut Window {
        let kind = rule.is_by_kind().then(|| Kind::clone(kind));
        let window = || Window::new(rule.budget.per);
        self.windows.entry((number, kind)).or_insert_with(window)
    }

    /// Returns the shared value of a kind.
    fn kind(&mut self, api_path: &str, plural: &str) -> Kind {
        let kinds = self.kinds.entry(api_path.to_owned()).or_default();
        if let Some(kind) = kinds.iter().find(|kind| kind.1 == plural) {
            return Kind::clone(kind);
        }
        let kind = Kind::new((api_path.to_owned(), plural.to_owned()));
        kinds.push(Kind::clone(&kind));
        kind
    }
}

//! What a guard has counted, and whether it has tripped.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::rules::{Act, Rule};
use super::window::Window;

/// Whether a guard has tripped. Prints as one line.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum GuardState {
    /// Writes are counted, and let through.
    Watching,
    /// A budget was used up; writes are refused.
    Tripped(Trip),
}

/// How a guard tripped.
#[derive(Debug, Clone)]
pub struct Trip {
    since: Instant,
    until: Option<Instant>,
    reason: Arc<str>,
    refused: u64,
}

/// What a guard is asked.
pub(super) struct Request<'a> {
    pub(super) act: Act,
    /// What is written, for people.
    pub(super) what: &'a dyn fmt::Display,
    /// Where the kind is served, and its plural; both are the same for all writes of a kind.
    pub(super) api_path: &'a str,
    pub(super) plural: &'a str,
    /// How many objects are written, if that is known.
    pub(super) objects: Option<usize>,
    /// As how many each counts; none if it is a deletion that has to be weighed.
    pub(super) weight: Option<u32>,
    /// How many objects of the kind are cached; none of a kind that is not.
    pub(super) cached: usize,
}

/// What a guard says of a write.
pub(super) enum Ruling {
    /// It is none of the guard's.
    NotCounted,
    /// It is counted.
    Counted(Ticket),
    /// It is refused, because of this; `is_first` if it is what made the guard trip.
    Tripped { trip: Trip, is_first: bool },
    /// It is refused for itself: how many objects it deletes is not known.
    Unknown,
    /// It is refused for itself: it deletes a kind of which each object takes others along, and that has no weight.
    NoWeight,
}

/// What was counted for a write, to be given back if nothing comes of it.
#[derive(Debug)]
pub(super) struct Ticket {
    /// Since which reset it was counted.
    era: u64,
    objects: u64,
    kind: Kind,
    /// The rules, and the slots of their windows.
    slots: Vec<(usize, Instant)>,
}

/// A kind: where it is served, and its plural.
type Kind = Arc<(String, String)>;

/// From how many windows on those are cleared away in which nothing is counted any more.
const CLEAR_AT: usize = 64;

/// What a guard has counted since it was reset.
#[derive(Default)]
pub(super) struct Counts {
    tripped: Option<Trip>,
    /// By rule, and by kind where each counts by itself.
    windows: HashMap<(usize, Option<Kind>), Window>,
    /// How many windows were left when empty ones were cleared away last.
    left: usize,
    kinds: HashMap<String, Vec<Kind>>,
    /// How many resets there were.
    era: u64,
}

impl Trip {
    /// Returns when it tripped.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Returns when the guard resets itself; `None` if somebody has to.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Returns which budget was used up, by what.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns how many writes were refused since, the one that made the guard trip included.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    pub(super) fn shared_reason(&self) -> &Arc<str> {
        &self.reason
    }
}

impl GuardState {
    /// Returns whether writes are refused.
    #[must_use]
    pub fn is_tripped(&self) -> bool {
        matches!(self, Self::Tripped(_))
    }

    /// Returns how it tripped, if it did.
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
    /// Resets it if it is time; returns whether it was.
    pub(super) fn reset_if_due(&mut self, now: Instant) -> bool {
        let until = self.tripped.as_ref().and_then(|trip| trip.until);
        until.is_some_and(|until| until <= now) && self.reset()
    }

    /// Returns whether it has tripped.
    pub(super) fn look(&mut self, now: Instant) -> GuardState {
        self.reset_if_due(now);
        match &self.tripped {
            Some(trip) => GuardState::Tripped(trip.clone()),
            None => GuardState::Watching,
        }
    }

    /// Returns how many windows are remembered, and how many at most.
    pub(super) fn windows(&self) -> (usize, usize) {
        (self.windows.len(), self.clear_at())
    }

    fn clear_at(&self) -> usize {
        CLEAR_AT.max(2 * self.left)
    }

    /// Forgets windows in which nothing is counted any more, and kinds without a window.
    fn clear_away(&mut self, now: Instant) {
        self.windows.retain(|_, window| {
            window.forget(now);
            !window.is_empty()
        });
        self.left = self.windows.len();
        self.kinds.retain(|_, kinds| {
            kinds.retain(|kind| Kind::strong_count(kind) > 1);
            !kinds.is_empty()
        });
    }

    /// Forgets everything; returns whether it had tripped.
    pub(super) fn reset(&mut self) -> bool {
        self.windows.clear();
        self.left = 0;
        self.era += 1;
        self.tripped.take().is_some()
    }

    /// Counts a write, or refuses it.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        rules: &[Rule],
        reset_after: Option<Duration>,
        request: &Request<'_>,
    ) -> Ruling {
        let covering: Vec<_> = rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.verbs.cover(request.act))
            .collect();
        if covering.is_empty() {
            return Ruling::NotCounted;
        }
        self.reset_if_due(now);
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
        // A collection of which nothing is cached may have grown since.
        let objects = (objects as u64).max(1).saturating_mul(weight.into());
        // Before new windows are made, of which there are at most as many as rules.
        if self.windows.len() + covering.len() > self.clear_at() {
            self.clear_away(now);
        }
        let kind = self.kind(request.api_path, request.plural);
        for (number, rule) in &covering {
            let window = self.window(*number, rule, &kind);
            window.forget(now);
            let cached = window.cached(request.cached);
            let (used, allowed) = (window.used(), rule.budget.allows(cached));
            if used.saturating_add(objects) > allowed {
                let text = format!(
                    "the {rule}, is used up: {used} of {allowed} when it was to {}",
                    request.what
                );
                return self.trip(now, reset_after, text);
            }
        }
        let count = |(number, rule)| {
            let window = self.window(number, rule, &kind);
            (number, window.add(now, objects, request.cached))
        };
        let slots = covering.into_iter().map(count).collect();
        let era = self.era;
        Ruling::Counted(Ticket {
            era,
            objects,
            kind,
            slots,
        })
    }

    fn trip(&mut self, now: Instant, reset_after: Option<Duration>, reason: String) -> Ruling {
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

    /// Takes back what was counted for a write of which nothing came.
    pub(super) fn give_back(&mut self, ticket: &Ticket) {
        if ticket.era != self.era {
            return;
        }
        for (rule, slot) in &ticket.slots {
            for kind in [None, Some(Kind::clone(&ticket.kind))] {
                if let Some(window) = self.windows.get_mut(&(*rule, kind)) {
                    window.give_back(*slot, ticket.objects);
                }
            }
        }
    }

    fn window(&mut self, number: usize, rule: &Rule, kind: &Kind) -> &mut Window {
        let kind = rule.is_by_kind().then(|| Kind::clone(kind));
        let window = || Window::new(rule.budget.per);
        self.windows.entry((number, kind)).or_insert_with(window)
    }

    /// Returns the one text of a kind.
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

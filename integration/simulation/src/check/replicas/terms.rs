//! The deadline of each process's lease, computed from its requests and their responses.
//!
//! The process is not asked: its lease ends a renew deadline after it sent the last successful renewal, by its own
//! clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lariat_cluster::{Commit, StoredObject};
use lariat_sim::internals::{Activity, ActivityKind, Event, IncarnationId, LEASES, Moment};
use serde_json::Value;

use crate::setup::Setup;

/// The tolerance of deadlines: timers round up to milliseconds.
pub(super) const ROUNDING: Duration = Duration::from_millis(10);

/// The time after a pause for which calls from before it may still run.
const WAKES: Duration = Duration::from_secs(2);

/// The annotation with the names of members whose keys were handed over.
const ACKS: &str = "lariat.dev/ring-acks";

/// All leases and their holders, in the order of events.
pub(super) struct Terms {
    setup: Arc<Setup>,
    /// The present incarnation of each process.
    living: BTreeMap<Arc<str>, IncarnationId>,
    terms: BTreeMap<IncarnationId, Term>,
    /// Requests about leases that are not answered, with when they were sent.
    pending: BTreeMap<u64, (IncarnationId, Asked, Duration)>,
    /// The leases on the server.
    leases: BTreeMap<String, Held>,
    /// The version up to which commits are what a backup had.
    restored: u64,
}

/// A process's view of its lease, and the lease's history.
#[derive(Debug, Default)]
struct Term {
    lease: Option<String>,
    deadline: Option<Duration>,
    paused: bool,
    resumed: Option<Duration>,
    /// The event with which it first knew the others, after it had created its lease.
    listed: Option<u64>,
    lost: Option<Lost>,
}

/// A lease that its holder did not release and no process took: deleted by hand, or not in the backup.
#[derive(Debug)]
struct Lost {
    at: Duration,
    number: u64,
    /// The leases of members that knew of the holder.
    witnesses: BTreeSet<String>,
    /// The version of the expired lease that the holder has just taken over.
    taken: Option<u64>,
}

#[derive(Debug)]
enum Asked {
    Create,
    Update(String),
    List,
}

/// A lease on the server.
#[derive(Debug, Clone)]
struct Held {
    holder: String,
    acks: BTreeSet<String>,
    version: u64,
    /// The lease's version when another held it, and when it was taken over.
    taken: Option<(u64, Duration)>,
}

impl Terms {
    pub(super) fn new(setup: &Arc<Setup>) -> Self {
        Self {
            setup: Arc::clone(setup),
            living: BTreeMap::new(),
            terms: BTreeMap::new(),
            pending: BTreeMap::new(),
            leases: BTreeMap::new(),
            restored: 0,
        }
    }

    /// Observes an event; to be called before the checker looks at it.
    pub(super) fn saw(&mut self, moment: &Moment, event: &Event) {
        match event {
            Event::IncarnationBegan(incarnation) => {
                self.living
                    .insert(Arc::clone(&incarnation.process), incarnation.clone());
                self.terms.insert(incarnation.clone(), Term::default());
            }
            Event::Acted(Activity { incarnation, what }) => {
                self.acted(incarnation, what, moment.at)
            }
            Event::Sent { request, what } => self.sent(*request, what, moment),
            Event::Answered { request, result } => {
                if let Some(pending) = self.pending.remove(request)
                    // A renewal whose answer was lost does not count: the process cannot know that it was committed.
                    && matches!(result.as_str(), "200" | "201")
                {
                    let (incarnation, asked, sent) = pending;
                    self.answered(incarnation, asked, sent, moment.number);
                }
            }
            Event::Committed(commit) => self.committed(commit, moment),
            _ => {}
        }
    }

    /// Returns the present incarnation of a process.
    pub(super) fn living(&self, process: &str) -> Option<&IncarnationId> {
        self.living.get(process)
    }

    /// Returns the deadline of a process's lease; none if it never held one.
    pub(super) fn deadline(&self, incarnation: &IncarnationId) -> Option<Duration> {
        self.terms.get(incarnation)?.deadline
    }

    /// Returns whether a process is, or just was, suspended beyond its deadline.
    pub(super) fn is_suspended(&self, incarnation: &IncarnationId, now: Duration) -> bool {
        let Some(term) = self.terms.get(incarnation) else {
            return false;
        };
        let Some(deadline) = term.deadline else {
            return false;
        };
        let wakes = |at: Duration| deadline <= at && now <= at + WAKES;
        deadline <= now && (term.paused || term.resumed.is_some_and(wakes))
    }

    /// Returns whether an overlap with a process that still holds a lease is allowed.
    ///
    /// The contract does not cover such an overlap.
    ///
    /// That is so if the old holder's lease has vanished, and the other process took an otherwise empty place since:
    /// the lease of an election that was not there or had no holder, or a ring that it has not read before, and in
    /// which no member that knew of the holder was left when it came. Nor can a process on standby know that another
    /// has just taken over the lease that both saw expire, if a backup undoes that at once.
    pub(super) fn may_meet(&self, one: &IncarnationId, other: &IncarnationId) -> bool {
        self.is_unnoticed(one, other) || self.is_unnoticed(other, one)
    }

    fn is_unnoticed(&self, old: &IncarnationId, new: &IncarnationId) -> bool {
        let lost = self.terms.get(old).and_then(|term| term.lost.as_ref());
        let (Some(lost), Some(new)) = (lost, self.terms.get(new)) else {
            return false;
        };
        // An election has one lease: once it is lost, nothing on the server shows the old holder to the new one.
        if !self.setup.is_sharded {
            return true;
        }
        let is_newer = new.listed.is_none_or(|listed| listed > lost.number);
        let is_left = |name: &String| {
            self.leases
                .get(name)
                .is_some_and(|it| !it.holder.is_empty())
        };
        is_newer && !lost.witnesses.iter().any(is_left)
    }

    fn acted(&mut self, incarnation: &IncarnationId, what: &ActivityKind, at: Duration) {
        let term = self.terms.entry(incarnation.clone()).or_default();
        match what {
            ActivityKind::Paused => term.paused = true,
            ActivityKind::Resumed => (term.paused, term.resumed) = (false, Some(at)),
            _ => {}
        }
    }

    fn sent(&mut self, request: u64, what: &str, moment: &Moment) {
        let Some((asked, incarnation)) = asked(what).zip(self.living.get(&moment.actor)) else {
            return;
        };
        self.pending
            .insert(request, (incarnation.clone(), asked, moment.at));
    }

    fn answered(&mut self, incarnation: IncarnationId, asked: Asked, sent: Duration, number: u64) {
        let lasts = self
            .setup
            .rate(&incarnation.process)
            .of_run(self.setup.times.renew_deadline);
        let term = self.terms.entry(incarnation).or_default();
        // What is taken from another, or given up, is not held.
        let is_own = match asked {
            Asked::Create => {
                // It reads the ring again after that.
                term.listed = None;
                true
            }
            Asked::List => {
                if term.deadline.is_some() {
                    term.listed.get_or_insert(number);
                }
                false
            }
            Asked::Update(name) => term.lease.as_ref() == Some(&name),
        };
        if is_own {
            // From the sending, as the server may have committed it at once. The maximum, as answers may overtake each
            // other.
            term.deadline = term.deadline.max(Some(sent + lasts));
            // It was on the server after it was lost from it: another one of its name, or the backup's.
            if term.lost.as_ref().is_some_and(|lost| lost.at < sent) {
                term.lost = None;
            }
        }
    }

    fn committed(&mut self, commit: &Commit, moment: &Moment) {
        match commit {
            Commit::Reset { revision } => {
                // The leases of the backup are committed next. Until then every holder has lost its lease.
                let before = std::mem::take(&mut self.leases);
                let recent = moment.at.saturating_sub(self.setup.times.duration);
                self.restored = *revision;
                for term in self.terms.values_mut() {
                    let held = term
                        .lease
                        .as_ref()
                        .filter(|name| before.contains_key(*name));
                    if let Some(name) = held {
                        term.lost = term
                            .lost
                            .take()
                            .or_else(|| Some(Lost::new(moment, name, &before, recent)));
                    }
                }
            }
            Commit::Stored(object) if is_lease(object) => self.stored(object, moment.at),
            Commit::Removed { last } if is_lease(last) => {
                let name = last.key().name();
                let Some(held) = self.leases.get(name) else {
                    return;
                };
                if !held.holder.is_empty() {
                    // An earlier holder may not know yet that a restored backup names this one.
                    for term in self.terms.values_mut() {
                        if term.lease.as_deref() == Some(name) {
                            let lost = Lost::new(moment, name, &self.leases, moment.at);
                            term.lost = Some(lost);
                        }
                    }
                }
                self.leases.remove(name);
            }
            _ => {}
        }
    }

    fn stored(&mut self, object: &StoredObject, at: Duration) {
        let (name, value) = (object.key().name(), object.value());
        let holder = value["spec"]["holderIdentity"].as_str().unwrap_or_default();
        let acks = acks_of(&value);
        let is_restored = object.revision() <= self.restored;
        let (is_sharded, named) = (self.setup.is_sharded, name.to_owned());
        if is_restored && !is_sharded && !holder.is_empty() {
            // Processes that read it wait for its holder, except one that has just seen it expire.
            for term in self.terms.values_mut() {
                let undone = |lost: &Lost| lost.taken == Some(object.revision());
                term.lost = term.lost.take().filter(undone);
            }
        }
        if let Some(term) = self.term_of(holder) {
            term.lease = Some(named.clone());
            if is_restored {
                term.lost = None;
            }
        }
        let taken = match self.leases.get(name) {
            // A renewal keeps the time of the takeover; a change of the holder sets it.
            Some(before) if before.holder == holder => before.taken,
            Some(before) => Some((before.version, at)),
            None => None,
        };
        let held = Held {
            holder: holder.to_owned(),
            acks,
            version: object.revision(),
            taken,
        };
        self.leases.insert(named, held);
    }

    fn term_of(&mut self, holder: &str) -> Option<&mut Term> {
        let mut terms = self.terms.iter_mut();
        terms
            .find(|(incarnation, _)| incarnation.identity() == holder)
            .map(|(_, term)| term)
    }
}

impl Lost {
    fn new(moment: &Moment, name: &str, leases: &BTreeMap<String, Held>, recent: Duration) -> Self {
        let taken = leases
            .get(name)
            .and_then(|held| held.taken)
            .filter(|(_, at)| *at > recent);
        // A member acknowledges those it has read, so its acks show of whom it knows.
        let knew = leases.iter().filter(|(_, held)| held.acks.contains(name));
        Self {
            at: moment.at,
            number: moment.number,
            witnesses: knew.map(|(name, _)| name.clone()).collect(),
            taken: taken.map(|(version, _)| version),
        }
    }
}

/// Returns the lease request in a line; none if it watches leases or reads one.
fn asked(what: &str) -> Option<Asked> {
    let (method, uri) = what.split_once(' ')?;
    let path = uri.split('?').next().unwrap_or_default();
    let (_, rest) = path.split_once("/leases")?;
    match method {
        "POST" => Some(Asked::Create),
        "GET" if rest.is_empty() && !uri.contains("watch=true") => Some(Asked::List),
        "PUT" => Some(Asked::Update(rest.trim_start_matches('/').to_owned())),
        _ => None,
    }
}

fn is_lease(object: &StoredObject) -> bool {
    object.resource() == LEASES
}

fn acks_of(value: &Value) -> BTreeSet<String> {
    let acks = value["metadata"]["annotations"][ACKS]
        .as_str()
        .unwrap_or_default();
    acks.split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

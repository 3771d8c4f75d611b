//! The rules that were added to a cluster.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use super::current::CurrentRule;
use super::request_info::RequestInfo;
use super::rule::{Rule, RuleId};
use crate::fault::Action;

/// Separates chance in faults from that in uids and names.
// The letters of `faults`.
const STREAM: u64 = 0x6661_756c_7473;

/// All rules there are.
#[derive(Debug)]
pub(crate) struct Rules {
    known: Mutex<AddedRules>,
    partitions: watch::Sender<Vec<Partition>>,
}

/// Clients whose open watches are to break.
#[derive(Debug, Clone)]
pub(crate) struct Partition {
    rule: RuleId,
    /// The beginning of their `User-Agent`.
    client: String,
    /// Whether their connections stay open, with nothing coming through.
    pub(crate) silent: bool,
}

impl Partition {
    pub(crate) fn is(&self, user_agent: &str) -> bool {
        user_agent.starts_with(&self.client)
    }
}

#[derive(Debug)]
struct AddedRules {
    /// The rules there are, in the order in which they were added.
    rules: Vec<AddedRule>,
    /// The number of rules that were ever added.
    count: u64,
    random: fastrand::Rng,
}

/// A rule that was added, and how often it matched and fired.
#[derive(Debug)]
struct AddedRule {
    id: RuleId,
    rule: Rule,
    /// The revision at which it was added.
    revision: u64,
    /// The time at which it is over.
    end: Option<Instant>,
    matches: u64,
    fired: u64,
    /// The places of a limit.
    places: Option<Arc<Semaphore>>,
}

/// The fault that decides about a request.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) action: Action,
    /// The revision at which its rule was added.
    pub(crate) added_at: u64,
}

/// The faults that apply to a request.
#[derive(Debug, Default)]
pub(crate) struct AppliedFaults {
    pub(crate) delay: Duration,
    /// The time for which the answer is held back.
    pub(crate) late: Duration,
    pub(crate) fault: Option<Fault>,
    /// Everything that fired.
    pub(crate) actions: Vec<Action>,
    /// The `User-Agent` of the request, if anything fired.
    pub(crate) client: String,
    /// The places it takes under limits, until it was answered.
    pub(crate) places: Vec<OwnedSemaphorePermit>,
}

impl Rules {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        let random = seed.map_or_else(fastrand::Rng::new, |seed| {
            fastrand::Rng::with_seed(seed ^ STREAM)
        });
        Self {
            known: Mutex::new(AddedRules {
                rules: Vec::new(),
                count: 0,
                random,
            }),
            partitions: watch::Sender::default(),
        }
    }

    /// Subscribes to the clients that are cut off.
    pub(crate) fn partitions(&self) -> watch::Receiver<Vec<Partition>> {
        self.partitions.subscribe()
    }

    /// Breaks the open watches of the client a rule is for.
    pub(crate) fn isolate(&self, rule: RuleId, client: &str, silent: bool) {
        let client = client.to_owned();
        self.partitions.send_modify(|partitions| {
            partitions.push(Partition {
                rule,
                client,
                silent,
            });
        });
    }

    /// Returns every rule as it is now, in the order in which they were added.
    pub(crate) fn each(&self) -> Vec<CurrentRule> {
        // Cloned, so that the lock of the channel is not held while the rules are locked.
        let partitions = self.partitions.borrow().clone();
        let known = self.known.lock();
        let now = Instant::now();
        let current = |added: &AddedRule| CurrentRule {
            id: added.id,
            rule: added.rule.clone(),
            hits: added.fired,
            is_over: added.is_over(now) || added.rule.is_used_up(added.fired),
            isolates: partitions.iter().any(|each| each.rule == added.id),
        };
        known.rules.iter().map(current).collect()
    }

    pub(crate) fn add(&self, rule: Rule, revision: u64) -> RuleId {
        let mut known = self.known.lock();
        known.count += 1;
        let id = RuleId(known.count);
        known.rules.push(AddedRule {
            id,
            end: rule.end(Instant::now()),
            places: places_of(rule.action()),
            rule,
            revision,
            matches: 0,
            fired: 0,
        });
        id
    }

    pub(crate) fn remove(&self, id: RuleId) -> bool {
        // Connections wake up only if a client is partitions no longer.
        self.partitions.send_if_modified(|partitions| {
            let before = partitions.len();
            partitions.retain(|each| each.rule != id);
            partitions.len() < before
        });
        let mut known = self.known.lock();
        let before = known.rules.len();
        known.rules.retain(|added| added.id != id);
        known.rules.len() < before
    }

    pub(crate) fn clear(&self) {
        self.partitions.send_modify(Vec::clear);
        self.known.lock().rules.clear();
    }

    pub(crate) fn hits(&self, id: RuleId) -> u64 {
        let known = self.known.lock();
        let added = known.rules.iter().find(|added| added.id == id);
        added.map_or(0, |added| added.fired)
    }

    /// Applies the rules to a request, up to the first that decides.
    pub(crate) fn apply(&self, info: &RequestInfo<'_>) -> AppliedFaults {
        let mut applied = AppliedFaults::default();
        let mut known = self.known.lock();
        let AddedRules { rules, random, .. } = &mut *known;
        for added in rules {
            // In this order: a request that gets a place under a limit does not count as one that the rule fired at.
            if !added.is_for(info) || added.lets_in(&mut applied) || !added.fires(random) {
                continue;
            }
            let action = added.rule.action();
            applied.actions.push(action.clone());
            let held = match action {
                Action::Delay(time) => Some((&mut applied.delay, time)),
                Action::DelayReply(time) => Some((&mut applied.late, time)),
                _ => None,
            };
            if let Some((held, time)) = held {
                // Delays of several rules add up, and do not keep later rules from deciding.
                *held = held.saturating_add(*time);
                continue;
            }
            applied.fault = Some(Fault {
                action: action.clone(),
                added_at: added.revision,
            });
            break;
        }
        applied
    }
}

impl AddedRule {
    fn is_over(&self, now: Instant) -> bool {
        self.end.is_some_and(|end| now >= end)
    }

    fn is_for(&self, info: &RequestInfo<'_>) -> bool {
        !self.is_over(Instant::now()) && self.rule.matches(info)
    }

    /// Admits a request under the limit, if this is one and has room.
    fn lets_in(&self, applied: &mut AppliedFaults) -> bool {
        let places = self.places.as_ref().map(Arc::clone);
        let place = places.and_then(|places| places.try_acquire_owned().ok());
        let is_in = place.is_some();
        applied.places.extend(place);
        is_in
    }

    /// Counts a request the rule is for, and returns whether the rule fires.
    fn fires(&mut self, random: &mut fastrand::Rng) -> bool {
        // Drawn for every match, needed or not, so that the sequence depends on the requests alone.
        let fires = self.rule.fires(self.matches, self.fired, random.f64());
        self.matches += 1;
        self.fired += u64::from(fires);
        fires
    }
}

fn places_of(action: &Action) -> Option<Arc<Semaphore>> {
    let Action::LimitRequests(requests) = action else {
        return None;
    };
    let places = (*requests).min(Semaphore::MAX_PERMITS);
    Some(Arc::new(Semaphore::new(places)))
}

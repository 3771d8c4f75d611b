//! The checker of the order of calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::Change;
use lariat_core::{Cause, Causes, Gvk, ObjectKey, ResourceVersion};
use lariat_sim::internals::{
    Activity, ActivityKind, Event, HandlerId, IncarnationId, Moment, number_of,
};

use crate::check::incarnations::Incarnations;
use crate::check::{Check, Findings};
use crate::oracle::{Oracle, Past};

/// Fresh changes overtake low-priority keys, which are not starved.
///
/// They overtake initial lists and late handlers, in the queue and in the line of a handler at its limit. Ageing bounds
/// the wait of what they overtake.
///
/// While a handler has not been called for a change that was published, at most a quarter of its calls that begin go to
/// keys that wait only for their first call (`Ageing::default`: every fourth dequeue to an aged key; in the line
/// of a handler every fourth turn). Beyond that quarter come as many as had begun their way before: one for each
/// worker, one for each place at the limit, and one each for the beginning of the count in the queue and in the line,
/// and for the key whose place is kept.
///
/// A key that waits for its first call since the cache was filled has it after at most `4 × (n + 1)` dequeues of the
/// queue and as many turns of the line, for `n` keys of the kind.
///
/// A change is known to be published where something is subscribed to the kind, so the trial subscribes. Keys with a
/// worker are not counted while they have it. What handlers write while a stop drains the queue waits for the next
/// start. A selection that changes shows old objects again, so from then on the
/// kind is left out.
///
/// While content is fetched on demand, a worker may have a key and wait for the content before a handler is called,
/// which no event shows; until it is cached again no calls are counted.
///
/// A key that changes while it waits for its first call waits as a fresh one from then on. Its causes need not say so:
/// after a restore they are the first sight of the object again.
#[derive(Default)]
pub(crate) struct Overtaking {
    incarnations: Incarnations,
    kinds: BTreeMap<(IncarnationId, Gvk), Queue>,
    /// The time at which each incarnation began.
    born: BTreeMap<IncarnationId, Duration>,
}

/// The state of one kind in an incarnation.
#[derive(Default)]
struct Queue {
    workers: Option<usize>,
    is_selected: bool,
    is_on_demand: bool,
    /// Keys whose change waits for handlers.
    fresh: BTreeMap<(Arc<str>, ObjectKey), Counts>,
    /// Keys that have changed since their handlers were called or registered.
    changed: BTreeSet<(Arc<str>, ObjectKey)>,
    /// Keys that handlers have been called for.
    called: BTreeSet<(Arc<str>, ObjectKey)>,
    /// The number of calls of each handler that have begun.
    begun: BTreeMap<Arc<str>, usize>,
    keys: BTreeSet<ObjectKey>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    calls: usize,
    /// Those of them that could have waited.
    first: usize,
}

/// One dequeue in so many goes to the oldest waiting key.
const SHARE: usize = 4;

/// How many calls beyond the share may have been on their way: at the beginning of the count in the queue, in the line,
/// and the key whose place in the line is kept.
const BEGUN: usize = 3;

impl Check for Overtaking {
    fn name(&self) -> &'static str {
        "fresh changes overtake what can wait"
    }

    fn saw(&mut self, oracle: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.incarnations.saw(moment, event);
        match event {
            Event::IncarnationBegan(incarnation) => {
                self.born.insert(incarnation.clone(), moment.at);
            }
            Event::IncarnationEnded(incarnation) => {
                self.kinds.retain(|of, _| of.0 != *incarnation);
                self.born.remove(incarnation);
            }
            Event::Acted(activity) => self.act(activity),
            Event::Selected {
                incarnation, kind, ..
            } => self.queue(incarnation, kind).is_selected = true,
            Event::Published { subscriber, change } => {
                self.published(&subscriber.incarnation, &subscriber.kind, change);
            }
            Event::Began {
                handler,
                key,
                causes,
                ..
            } => return self.began(oracle, handler, key, causes),
            _ => {}
        }
        Vec::new()
    }
}

/// Returns the object's version if its first sight is the only cause.
///
/// Zero for a late handler.
fn first_sight(causes: &Causes) -> Option<u64> {
    let mut version = None;
    for cause in causes.iter() {
        match cause {
            Cause::Added { version: of } => version = version.max(Some(number(of))),
            Cause::LateHandler { .. } => version = version.max(Some(0)),
            _ => return None,
        }
    }
    version.filter(|_| causes.omitted() == 0)
}

/// Returns whether a version existed before a time.
///
/// Version zero, which stands for a late handler, always did.
fn was_before(states: &[Past], version: u64, born: Duration) -> bool {
    let at = states.iter().find(|past| past.version == version);
    version == 0 || at.is_some_and(|past| past.at < born)
}

fn number(version: &ResourceVersion) -> u64 {
    number_of(&version.to_string())
}

impl Overtaking {
    fn queue(&mut self, incarnation: &IncarnationId, kind: &Gvk) -> &mut Queue {
        self.kinds
            .entry((incarnation.clone(), kind.clone()))
            .or_default()
    }

    fn act(&mut self, activity: &Activity) {
        let Activity { incarnation, what } = activity;
        match what {
            ActivityKind::Sampled(samples) => {
                for sample in samples {
                    let queue = self.queue(incarnation, &sample.kind);
                    queue.workers = sample.workers;
                    queue.is_on_demand = sample.is_on_demand;
                }
            }
            ActivityKind::Starting(_) | ActivityKind::Stopping(_) | ActivityKind::Stopped => {
                for (_, queue) in self.kinds.iter_mut().filter(|(of, _)| of.0 == *incarnation) {
                    // The next sample shows whether there are workers again; until then no worker could have been
                    // overtaken.
                    queue.fresh.clear();
                    queue.workers = None;
                }
            }
            ActivityKind::Registered { kind, name, .. }
            | ActivityKind::Deregistered { kind, name } => {
                let queue = self.queue(incarnation, kind);
                queue.fresh.retain(|of, _| of.0 != *name);
                queue.changed.retain(|of| of.0 != *name);
                queue.called.retain(|of| of.0 != *name);
                queue.begun.remove(name);
            }
            _ => {}
        }
    }

    fn published(&mut self, incarnation: &IncarnationId, kind: &Gvk, change: &Change) {
        let Some(state) = self.incarnations.of(incarnation) else {
            return;
        };
        let handlers: Vec<Arc<str>> = state
            .handlers_of(kind)
            .map(|(name, _)| Arc::clone(name))
            .collect();
        let is_stopping = state.stops;
        let queue = self.queue(incarnation, kind);
        let key = change.key();
        queue.keys.insert(key.clone());
        let is_fresh = !matches!(
            change,
            // The changes that a controller enqueues with low priority.
            Change::Added { initial: true, .. } | Change::Resynced { .. }
        );
        if !is_fresh {
            return;
        }
        let of = |name: &Arc<str>| (Arc::clone(name), key.clone());
        queue.changed.extend(handlers.iter().map(of));
        if is_stopping || queue.workers.is_none() || queue.is_selected {
            return;
        }
        for name in handlers {
            queue.fresh.entry((name, key.clone())).or_default();
        }
    }

    fn began(
        &mut self,
        oracle: &Oracle,
        handler: &HandlerId,
        key: &ObjectKey,
        causes: &Causes,
    ) -> Findings {
        let (incarnation, kind) = (&handler.incarnation, &handler.kind);
        let (Some(state), Some(born)) = (
            self.incarnations.of(incarnation),
            self.born.get(incarnation),
        ) else {
            return Vec::new();
        };
        let name = (kind.clone(), Arc::clone(&handler.name));
        let Some(limit) = state.handlers.get(&name) else {
            return Vec::new();
        };
        // What was there before the process was is in its first list, or comes to a late handler.
        let was_there = |version| was_before(oracle.states(kind, key), version, *born);
        let queue = self
            .kinds
            .entry((incarnation.clone(), kind.clone()))
            .or_default();
        queue.keys.insert(key.clone());
        let place = (Arc::clone(&handler.name), key.clone());
        queue.fresh.remove(&place);
        let has_changed = queue.changed.remove(&place);
        // The insertion stands first, because it must happen whatever the causes are.
        let is_first = queue.called.insert(place) && first_sight(causes).is_some_and(was_there);
        let begun = queue.begun.entry(Arc::clone(&handler.name)).or_default();
        *begun += 1;
        let begun = *begun - 1;
        let Some(workers) = queue.workers.filter(|_| !queue.is_selected) else {
            return Vec::new();
        };
        let slack = workers + limit.unwrap_or(0) + BEGUN;
        let mut found = Vec::new();
        // Twice: a key may wait this long in the queue, and again in the line of the handler.
        let overtaken = 2 * SHARE * (queue.keys.len() + 1) + slack;
        let is_alone = state.handlers_of(kind).count() == 1;
        // A call of another handler for the key may have kept it back.
        if is_first && is_alone && begun > overtaken {
            found.push(format!(
                "{} is called for {} {key} for the first time after {begun} calls for others",
                handler.name,
                kind.kind()
            ));
        }
        // A worker has it; it comes again afterwards.
        let is_running = |key: &ObjectKey| state.running.contains(&(kind.clone(), key.clone()));
        let could_wait = is_first && !has_changed;
        let overtaken = queue.overtake(&handler.name, could_wait, slack, is_running);
        found.extend(overtaken.map(|(waits, counts)| {
            format!(
                "{} is called for {} {key} for the first time while a change of {waits} waits: {} of {} calls since it did",
                handler.name,
                kind.kind(),
                counts.first,
                counts.calls
            )
        }));
        found
    }
}

impl Queue {
    /// Counts a call of a handler for each change that waits for it.
    ///
    /// Returns the changes that the call should not have overtaken.
    fn overtake<'a>(
        &'a mut self,
        name: &'a Arc<str>,
        could_wait: bool,
        slack: usize,
        is_running: impl Fn(&ObjectKey) -> bool + 'a,
    ) -> impl Iterator<Item = (&'a ObjectKey, Counts)> {
        let is_counted = !self.is_on_demand;
        let waiting = self
            .fresh
            .iter_mut()
            .filter(move |((of, key), _)| is_counted && of == name && !is_running(key));
        // The counts go up as the iterator is consumed: a caller that stops early miscounts.
        waiting.filter_map(move |((_, key), counts)| {
            counts.calls += 1;
            counts.first += usize::from(could_wait);
            let is_too_many = could_wait && counts.first > counts.calls / SHARE + slack;
            is_too_many.then_some((key, *counts))
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

//! Checkers of queues, counters and kinds at rest.

use std::collections::{BTreeMap, BTreeSet};

use lariat_cache::Phase;
use lariat_controller::{CallOutcome, ControllerStatus, HandlerStatus};
use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{
    Activity, ActivityKind, Event, HandlerId, Moment, Next, Rest, Subscriber,
};

use crate::check::incarnations::Incarnations;
use crate::check::{Check, Findings};
use crate::oracle::Oracle;

/// At rest no key is left in a queue, and no handler waits.
///
/// No key is in line, with a worker, delayed, held, or waiting for a handler, no handler waits for caches, and no key
/// counts as one in a hot loop (the hot loop detector forgets it after ten minutes).
///
/// Keys come again for ever where a handler asks at the end of each call to be called again (`Outcome::requeue_after`),
/// or fails each time: of such a kind no more keys are in the queue than keys had calls that ended so. Some of them may
/// be due at the moment of the look. They are in line only while each worker has a key.
#[derive(Default)]
pub(crate) struct EmptyQueues {
    /// The kinds with a handler that requeued some key in its last call.
    again: BTreeMap<(HandlerId, ObjectKey), Gvk>,
}

impl Check for EmptyQueues {
    fn name(&self) -> &'static str {
        "queues are empty at rest"
    }

    fn saw(&mut self, _: &Oracle, _: &Moment, event: &Event) -> Findings {
        match event {
            Event::Ended {
                handler, key, next, ..
            } => {
                let call = (handler.clone(), key.clone());
                if matches!(next, Next::Again(_) | Next::Retry(_)) {
                    self.again.insert(call, handler.kind.clone());
                } else {
                    self.again.remove(&call);
                }
            }
            Event::Acted(activity) => {
                if let Some(handler) = activity.deregistered() {
                    self.again.retain(|(of, _), _| *of != handler);
                }
            }
            Event::IncarnationEnded(incarnation) => self
                .again
                .retain(|(of, _), _| of.incarnation != *incarnation),
            _ => {}
        }
        Vec::new()
    }

    fn at_rest(&mut self, oracle: &Oracle, rest: &Rest<'_>) -> Findings {
        let controllers = rest.controllers.iter();
        let found = controllers.flat_map(|controller| {
            let kind = &controller.cache.gvk;
            let again = self.again.iter();
            let asked = again
                .filter(|((of, _), again)| of.incarnation == *rest.incarnation && *again == kind);
            let keys: BTreeSet<&ObjectKey> = asked.map(|((_, key), _)| key).collect();
            // Keys of objects that are gone are not expected to come again.
            let most = keys.len().min(oracle.all(kind).count());
            left(controller, most)
        });
        found.collect()
    }
}

/// Reports the keys left in a controller, of which `again` come again for ever.
fn left(controller: &ControllerStatus, again: usize) -> Findings {
    let kind = controller.cache.gvk.kind();
    let mut counts = Keys::of(controller).left(again);
    counts.push((controller.hot_loops.len(), "in hot loops"));
    let keys = counts.iter().filter(|(count, _)| *count > 0);
    let mut found: Findings = keys
        .map(|(count, what)| format!("{count} keys of {kind} are {what}"))
        .collect();
    for handler in &controller.handlers {
        if handler.waiting > 0 || handler.waits_for_caches {
            found.push(format!(
                "{} keys of {kind} wait for {}, which is held: {}",
                handler.waiting, handler.name, handler.waits_for_caches
            ));
        }
    }
    found
}

/// The keys of a queue; each is in one place.
#[derive(Debug, Clone, Copy)]
struct Keys {
    in_line: usize,
    held: usize,
    delayed: usize,
    workers: usize,
}

impl Keys {
    fn of(controller: &ControllerStatus) -> Self {
        let queue = &controller.queue;
        Self {
            in_line: queue.depth().saturating_sub(queue.dirty),
            held: queue.processing,
            delayed: queue.delayed,
            workers: controller.workers.unwrap_or(0),
        }
    }

    /// Returns the numbers of keys that are where they should not be.
    ///
    /// `again` keys come again for ever.
    fn left(self, again: usize) -> Vec<(usize, &'static str)> {
        // Which of the three places a key is in changes all the time, so only their sum can be compared.
        if self.in_line + self.held + self.delayed > again {
            return vec![
                (self.in_line, "in line"),
                (self.held, "with workers"),
                (self.delayed, "delayed"),
            ];
        }
        if self.held < self.workers {
            return vec![(self.in_line, "in line, while a worker has none")];
        }
        Vec::new()
    }
}

/// At rest the counters of a handler are the calls that were seen: successes, panics, and as many failures at least
/// (a handler also fails unseen, where the content it needs cannot be fetched).
#[derive(Default)]
pub(crate) struct Counters {
    seen: BTreeMap<HandlerId, Seen>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Seen {
    succeeded: u64,
    failed: u64,
    panicked: u64,
}

impl Check for Counters {
    fn name(&self) -> &'static str {
        "counters are the calls that were seen"
    }

    fn saw(&mut self, _: &Oracle, _: &Moment, event: &Event) -> Findings {
        match event {
            Event::Ended {
                handler,
                result,
                next,
                ..
            } => {
                let seen = self.seen.entry(handler.clone()).or_default();
                match (result, next) {
                    (Some(Ok(())), _) => seen.succeeded += 1,
                    (Some(Err(_)), _) => seen.failed += 1,
                    (None, Next::Panicked) => seen.panicked += 1,
                    // A call that was dropped has no result, and the status counts it nowhere.
                    (None, _) => {}
                }
            }
            Event::Acted(activity) => {
                if let Some(handler) = activity.registered() {
                    self.seen.insert(handler, Seen::default());
                } else if let Some(handler) = activity.deregistered() {
                    self.seen.remove(&handler);
                }
            }
            Event::IncarnationEnded(incarnation) => {
                self.seen.retain(|of, _| of.incarnation != *incarnation)
            }
            _ => {}
        }
        Vec::new()
    }

    fn at_rest(&mut self, _: &Oracle, rest: &Rest<'_>) -> Findings {
        let mut found = Vec::new();
        for controller in rest.controllers {
            let kind = &controller.cache.gvk;
            for handler in &controller.handlers {
                let id = rest.handler(kind, &handler.name);
                let seen = self.seen.get(&id).copied().unwrap_or_default();
                if let Some(counted) = differs(seen, handler) {
                    found.push(format!(
                        "{} of {}: {seen:?}, but counted are {counted:?}",
                        handler.name,
                        kind.kind()
                    ));
                }
            }
        }
        found
    }
}

/// Returns the counts of a handler's status, if they differ from those seen.
fn differs(seen: Seen, status: &HandlerStatus) -> Option<Seen> {
    let counted = Seen {
        succeeded: status.ended(CallOutcome::Done) + status.ended(CallOutcome::Requeued),
        // The status counts panics among failures, and errors that are not retried separately.
        failed: status.failures - status.panics + status.ended(CallOutcome::Ignored),
        panicked: status.panics,
    };
    let is_same = counted.succeeded == seen.succeeded
        && counted.panicked == seen.panicked
        && counted.failed >= seen.failed;
    (!is_same).then_some(counted)
}

/// At rest every kind in use is watched, and every other kind is gone.
///
/// A kind in use is filled as well. There is no cache without a handler or a subscription, and no controller without a
/// handler.
///
/// The bounds, all far shorter than the rest: a kind that is served is found within 2 s, a watch is opened again within
/// 30 s and its jitter, a controller without handlers ends after a minute, and a cache without users after the
/// factory's `idle_grace` (a minute at most in the trial). Which kinds are used is known of programs that report their
/// handlers.
#[derive(Default)]
pub(crate) struct KindsInUse {
    incarnations: Incarnations,
    subscribed: BTreeSet<Subscriber>,
}

impl Check for KindsInUse {
    fn name(&self) -> &'static str {
        "kinds in use are watched, others are gone"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.incarnations.saw(moment, event);
        match event {
            Event::Acted(Activity {
                what: ActivityKind::Subscribed(subscriber),
                ..
            }) => {
                self.subscribed.insert(subscriber.clone());
            }
            Event::Unsubscribed(subscriber) => {
                self.subscribed.remove(subscriber);
            }
            Event::IncarnationEnded(incarnation) => {
                self.subscribed.retain(|of| of.incarnation != *incarnation)
            }
            _ => {}
        }
        Vec::new()
    }

    fn at_rest(&mut self, _: &Oracle, rest: &Rest<'_>) -> Findings {
        let mut found = Vec::new();
        for cache in rest
            .caches
            .iter()
            // What is not served cannot be filled, however long the rest is.
            .filter(|each| rest.served.contains(&each.gvk))
        {
            let kind = cache.gvk.kind();
            if cache.phase != Phase::Synced {
                found.push(format!("{kind} is {}, but it is served", cache.phase));
            }
            if cache.is_stale() {
                found.push(format!("{kind} has no watch since {:?}", cache.interrupted));
            }
        }
        let Some(state) = self.incarnations.of(rest.incarnation) else {
            return found;
        };
        if state.runs.is_none() {
            return found;
        }
        for cache in rest.caches {
            // The handlers that the program reported, not those the status lists: a controller must end with its last
            // one.
            let is_handled = state.handlers_of(&cache.gvk).next().is_some();
            let mut subscribed = self.subscribed.iter();
            let is_subscribed =
                subscribed.any(|of| of.incarnation == *rest.incarnation && of.kind == cache.gvk);
            if !is_handled && !is_subscribed {
                let (kind, objects) = (cache.gvk.kind(), cache.objects);
                found.push(format!(
                    "{kind} is not in use, and {objects} objects are kept"
                ));
            }
        }
        let unused = rest
            .controllers
            .iter()
            .filter(|each| each.handlers.is_empty());
        found.extend(unused.map(|each| format!("{} has no handler", each.cache.gvk.kind())));
        found
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

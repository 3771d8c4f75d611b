//! The checker of calls that must come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{
    Activity, ActivityKind, Event, HandlerId, IncarnationId, Moment, Next, Rest, Sample,
};

use super::delays::{Delay, DelayedKey, Delays};
use super::promise::{DueReason, Promise};
use crate::check::incarnations::Incarnations;
use crate::check::{Check, Findings};
use crate::oracle::Oracle;

/// Every call that was asked for comes, in time.
///
/// An enqueued key calls each handler there is at its due time or later; a handler that asked to be called again,
/// failed, panicked or was dropped is called again by then at the latest.
///
/// The due time is that of `SharedController::enqueue_after` and `Outcome::requeue_after`, the delay of an error, or
/// the default limiter's curve (5 ms, doubling up to 30 s, two minutes from the 31st failure on), with ten seconds for
/// a `Retry-After` the error may hide. The bound is a second after it in which the factory and the process have run, if
/// then nothing is in line, the key has no worker, the handler has no line, and the hot loop detector does not slow the
/// key: the queue's timer is all that is left to wait for. Everything is kept over a stop and a start. At rest nothing
/// is open.
///
/// A handler whose content cannot be fetched fails unseen, so nothing is said while content is fetched on demand.
#[derive(Default)]
pub(crate) struct Promises {
    incarnations: Incarnations,
    open: BTreeMap<HandlerId, BTreeMap<ObjectKey, Vec<Promise>>>,
    attempts: BTreeMap<(HandlerId, ObjectKey), u32>,
    delays: Delays,
    /// Since when each controller has had workers.
    working: BTreeMap<(IncarnationId, Gvk), Duration>,
}

const SLACK: Duration = Duration::from_secs(1);

impl Check for Promises {
    fn name(&self) -> &'static str {
        "calls that were asked for come"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.incarnations.saw(moment, event);
        match event {
            Event::Acted(activity) => return self.act(activity, moment.at),
            Event::Began {
                handler,
                key,
                attempt,
                ..
            } => self.began(handler, key, *attempt, moment.at),
            Event::Ended {
                handler,
                key,
                run,
                next,
                ..
            } => self.ended(handler, key, *run, *next, moment.at),
            Event::IncarnationEnded(incarnation) => {
                self.open.retain(|of, _| of.incarnation != *incarnation);
                self.attempts
                    .retain(|(of, _), _| of.incarnation != *incarnation);
                self.delays.forget_incarnation(incarnation);
                self.working.retain(|(of, _), _| of != incarnation);
            }
            _ => {}
        }
        Vec::new()
    }

    fn at_rest(&mut self, _: &Oracle, rest: &Rest<'_>) -> Findings {
        let of_life = self
            .open
            .iter()
            .filter(|(of, _)| of.incarnation == *rest.incarnation);
        let mut found = Vec::new();
        for (handler, keys) in of_life {
            for (key, promises) in keys {
                let late = promises
                    .iter()
                    .filter(|promise| promise.due + SLACK < rest.now);
                found.extend(late.map(|promise| promise.says(handler, key)));
            }
        }
        found
    }
}

impl Promises {
    fn began(&mut self, handler: &HandlerId, key: &ObjectKey, attempt: u32, now: Duration) {
        self.attempts
            .insert((handler.clone(), key.clone()), attempt);
        self.delays.called(handler, key, now);
        let Some(keys) = self.open.get_mut(handler) else {
            return;
        };
        if let Some(promises) = keys.get_mut(key) {
            promises.retain(|promise| promise.outlasts(now));
            if promises.is_empty() {
                keys.remove(key);
            }
        }
    }

    fn ended(&mut self, handler: &HandlerId, key: &ObjectKey, run: u64, next: Next, now: Duration) {
        self.goes_on(handler, key, run, now);
        let attempt = self.attempts.remove(&(handler.clone(), key.clone()));
        if let Some(promise) = Promise::after(next, attempt, run, now) {
            self.promise(handler, key, promise);
        }
    }

    /// Restarts the delays that count from the end of a run.
    ///
    /// A delay counts from when the worker returns the key to the queue, so each further call of the same run
    /// postpones it.
    fn goes_on(&mut self, handler: &HandlerId, key: &ObjectKey, run: u64, now: Duration) {
        let open = self.open.iter_mut();
        let of_kind =
            open.filter(|(of, _)| of.incarnation == handler.incarnation && of.kind == handler.kind);
        let promises = of_kind.filter_map(|(_, keys)| keys.get_mut(key));
        for promise in promises.flatten() {
            if let Some((_, after)) = promise.run.filter(|(of, _)| *of == run) {
                promise.due = now.saturating_add(after);
            }
        }
    }

    /// Notes a call that must come, for a handler that is known to be registered.
    fn promise(&mut self, handler: &HandlerId, key: &ObjectKey, promise: Promise) {
        let state = self.incarnations.of(&handler.incarnation);
        let name = (handler.kind.clone(), Arc::clone(&handler.name));
        // A handler may be deregistered while its call runs; it is not called again then.
        if !state.is_some_and(|state| state.handlers.contains_key(&name)) {
            return;
        }
        let keys = self.open.entry(handler.clone()).or_default();
        let promises = keys.entry(key.clone()).or_default();
        // Of two delays of one key the earlier wins.
        let is_delay =
            |each: &&mut Promise| each.reason == DueReason::Enqueued && each.due > promise.from;
        let mut delays = promises.iter_mut().filter(is_delay);
        match delays.next().filter(|_| promise.due > promise.from) {
            // An immediate enqueue does not cancel a delay, so only two delays are merged.
            Some(other) if promise.reason == DueReason::Enqueued => {
                other.due = other.due.min(promise.due)
            }
            _ => promises.push(promise),
        }
    }

    fn act(&mut self, activity: &Activity, now: Duration) -> Findings {
        let Activity { incarnation, what } = activity;
        match what {
            ActivityKind::Enqueued { .. } => self.enqueued(activity, now),
            ActivityKind::Deregistered { kind, name } => {
                self.open.remove(&activity.handler(kind, name));
                let state = self.incarnations.of(incarnation);
                // With its last handler the queue of the kind ends.
                if state.is_none_or(|state| state.handlers_of(kind).next().is_none()) {
                    self.delays.forget_kind(incarnation, kind);
                }
            }
            ActivityKind::Sampled(samples) => {
                let samples = samples.iter();
                // Only samples are judged: between them a key may be late for a moment that no status shows.
                return samples
                    .flat_map(|sample| self.look(activity, sample, now))
                    .collect();
            }
            _ => {}
        }
        Vec::new()
    }

    fn enqueued(&mut self, activity: &Activity, now: Duration) {
        let Activity { incarnation, what } = activity;
        let ActivityKind::Enqueued { kind, key, after } = what else {
            return;
        };
        let Some(state) = self.incarnations.of(incarnation) else {
            return;
        };
        let names = state.handlers_of(kind).map(|(name, _)| name);
        let handlers: Vec<_> = names.map(|name| activity.handler(kind, name)).collect();
        let delay = Delay {
            due: now.saturating_add(*after),
            is_kept: !handlers.is_empty(),
        };
        let (due, reason) = if after.is_zero() {
            (delay.due, DueReason::Enqueued)
        } else {
            // A stopped queue keeps what came due, so there an earlier delay still counts although its time has
            // passed.
            let runs = state.runs == Some(true) && !state.stops;
            let of = DelayedKey {
                incarnation: incarnation.clone(),
                kind: kind.clone(),
                key: key.clone(),
            };
            self.delays.add(of, delay, runs.then_some(now))
        };
        for handler in handlers {
            let promise = Promise {
                from: now,
                due,
                reason,
                run: None,
            };
            self.promise(&handler, key, promise);
        }
    }

    /// Finds calls that are late although their controller is idle.
    fn look(&mut self, activity: &Activity, sample: &Sample, now: Duration) -> Findings {
        let incarnation = &activity.incarnation;
        let of = (incarnation.clone(), sample.kind.clone());
        if sample.workers.is_none() {
            // The bound counts from when workers are back.
            self.working.remove(&of);
            return Vec::new();
        }
        let working = *self.working.entry(of).or_insert(now);
        let Some(state) = self.incarnations.of(incarnation) else {
            return Vec::new();
        };
        let is_at_rest =
            !state.stops && sample.ready == 0 && sample.is_synced && !sample.is_on_demand;
        let under_way =
            |kind: &Gvk, key: &ObjectKey| state.running.contains(&(kind.clone(), key.clone()));
        let calls = state
            .running
            .iter()
            .filter(|(kind, _)| *kind == sample.kind);
        // Otherwise a worker has a key of which no call is seen, and it may be this one.
        if !is_at_rest || sample.held > calls.count() {
            return Vec::new();
        }
        // Time in which no worker ran, the factory was stopped, or the process was paused does not make a call late.
        let from = working.max(state.since);
        let mut found = Vec::new();
        for (name, waiting) in &sample.waiting {
            let handler = activity.handler(&sample.kind, name);
            // Keys that wait at the limit of the handler are late for a good reason, and the status does not say
            // which.
            let keys = self.open.get(&handler).filter(|_| *waiting == 0);
            for (key, promises) in keys.into_iter().flatten() {
                if under_way(&sample.kind, key) {
                    continue;
                }
                let is_late = |promise: &&Promise| promise.due.max(from) + SLACK <= now;
                let late = promises.iter().filter(is_late);
                found.extend(late.map(|promise| promise.says(&handler, key)));
            }
        }
        found
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

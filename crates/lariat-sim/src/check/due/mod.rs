//! Calls that must come: what was enqueued, asked for, has failed or was dropped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};

use super::lives::{LifeOf, Lives};
use super::{Check, Findings, Rest};
use crate::activity::{Act, Activity, Sample};
use crate::event::{Event, HandlerId, Moment, Next};
use crate::oracle::Oracle;

/// Every call that was asked for comes, in time: an enqueued key calls each handler there is at its due time or later;
/// a handler that asked to be called again, failed, panicked or was dropped is called again by then at the latest.
///
/// The due time is that of `SharedController::enqueue_after` and `Outcome::requeue_after`, the delay of an error, or the
/// default limiter's curve (5 ms, doubling up to 30 s, two minutes from the 31st failure on), with ten seconds for a
/// `Retry-After` the error may hide. The bound is a second after it in which the factory and the process have run, if
/// then nothing is in line, the key has no worker, the handler has no line, and the sentinel does not slow the key: the
/// queue's timer is all that is left to wait for. Everything is kept over a stop and a start. At rest nothing is open.
///
/// A handler whose content cannot be fetched fails unseen, so nothing is said while content is fetched on demand.
#[derive(Default)]
pub(super) struct Promises {
    lives: Lives,
    open: BTreeMap<HandlerId, BTreeMap<ObjectKey, Vec<Promise>>>,
    attempts: BTreeMap<(HandlerId, ObjectKey), u32>,
    /// When keys come due for all handlers, until one is called: a stop keeps what came due meanwhile, too.
    delays: BTreeMap<(LifeOf, Gvk, ObjectKey), Delay>,
    /// Since when each controller has had workers.
    working: BTreeMap<(Arc<str>, u32, Gvk), Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Promise {
    /// When it was made.
    from: Duration,
    due: Duration,
    why: Why,
    /// The run whose end the delay counts from, and the delay.
    run: Option<(u64, Duration)>,
}

/// The earliest of the delays of a key.
#[derive(Debug, Clone, Copy)]
struct Delay {
    due: Duration,
    /// Whether its kind had a handler; otherwise the key is kept until the controller ends, about a minute after it has
    /// no handler.
    is_kept: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Code asked for the key: only a call at its due time or later will do.
    Enqueued,
    /// Code asked for the key, and before at an earlier time, when its kind had no handler. That may be forgotten by now
    /// or not, so the due time is the later one, and any call will do.
    EnqueuedAgain,
    /// The handler asked to be called again.
    Requeued,
    Failed,
    Dropped,
}

const SLACK: Duration = Duration::from_secs(1);

/// How far the clock of a runtime may be from that of the run: timers round up to milliseconds.
const CLOCKS: Duration = Duration::from_millis(2);

/// What an API server may ask to wait, at most.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The default limiter, `lariat_queue::lasso_default`.
fn backoff(attempt: u32) -> Duration {
    if attempt > 30 {
        return Duration::from_secs(120);
    }
    let doublings = attempt.saturating_sub(1).min(16);
    (Duration::from_millis(5) * 2_u32.pow(doublings)).min(Duration::from_secs(30))
}

impl Check for Promises {
    fn name(&self) -> &'static str {
        "calls that were asked for come"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.lives.saw(moment, event);
        match event {
            Event::Acted(activity) => return self.act(activity, moment.at),
            Event::Began {
                handler,
                key,
                attempt,
                ..
            } => self.began(handler, key, (*attempt, moment.at)),
            Event::Ended {
                handler,
                key,
                run,
                next,
                ..
            } => self.ended(handler, key, (*run, *next, moment.at)),
            Event::Life { process, life, .. } => {
                let is_other = |of: &HandlerId| of.process != *process || of.life != *life;
                self.open.retain(|of, _| is_other(of));
                self.attempts.retain(|of, _| is_other(&of.0));
                self.delays
                    .retain(|(of, ..), _| of.0 != *process || of.1 != *life);
                self.working
                    .retain(|of, _| of.0 != *process || of.1 != *life);
            }
            _ => {}
        }
        Vec::new()
    }

    fn at_rest(&mut self, _: &Oracle, rest: &Rest<'_>) -> Findings {
        let of_process = self
            .open
            .iter()
            .filter(|(of, _)| of.process == *rest.process && of.life == rest.life);
        let mut found = Vec::new();
        for (handler, keys) in of_process {
            for (key, promises) in keys {
                let late = promises
                    .iter()
                    .filter(|promise| promise.due + SLACK < rest.now);
                found.extend(late.map(|promise| says(handler, key, promise)));
            }
        }
        found
    }
}

fn says(handler: &HandlerId, key: &ObjectKey, promise: &Promise) -> String {
    let kind = handler.kind.kind();
    let why = match promise.why {
        Why::Enqueued | Why::EnqueuedAgain => "was enqueued",
        Why::Requeued => "was to be called again",
        Why::Failed => "failed",
        Why::Dropped => "was dropped",
    };
    format!(
        "{} {why} for {kind} {key}, due at {:?}, and is not called",
        handler.name, promise.due
    )
}

impl Promises {
    fn began(&mut self, handler: &HandlerId, key: &ObjectKey, (attempt, now): (u32, Duration)) {
        self.attempts
            .insert((handler.clone(), key.clone()), attempt);
        let life = (Arc::clone(&handler.process), handler.life);
        let of = (life, handler.kind.clone(), key.clone());
        let delay = self.delays.get(&of);
        if delay.is_some_and(|delay| delay.due <= now + CLOCKS) {
            self.delays.remove(&of);
        }
        let Some(keys) = self.open.get_mut(handler) else {
            return;
        };
        if let Some(promises) = keys.get_mut(key) {
            promises.retain(|promise| promise.why == Why::Enqueued && promise.due > now + CLOCKS);
            if promises.is_empty() {
                keys.remove(key);
            }
        }
    }

    fn ended(
        &mut self,
        handler: &HandlerId,
        key: &ObjectKey,
        (run, next, now): (u64, Next, Duration),
    ) {
        self.goes_on(handler, key, (run, now));
        let attempt = self.attempts.remove(&(handler.clone(), key.clone()));
        let retried = backoff(attempt.unwrap_or(1)).max(RETRY_AFTER);
        let (after, why) = match next {
            Next::Done => return,
            Next::Again(after) => (after, Why::Requeued),
            Next::Retry(Some(after)) => (after, Why::Failed),
            Next::Retry(None) | Next::Panicked => (retried, Why::Failed),
            Next::Dropped => (Duration::ZERO, Why::Dropped),
        };
        let (due, run) = (now.saturating_add(after), Some((run, after)));
        let promise = Promise {
            from: now,
            due,
            why,
            run,
        };
        self.promise(handler, key, promise);
    }

    /// Delays count from the end of the run, when the key is given back: another handler's call in it puts them off.
    fn goes_on(&mut self, handler: &HandlerId, key: &ObjectKey, (run, now): (u64, Duration)) {
        let of_kind = self.open.iter_mut().filter(|(of, _)| {
            of.process == handler.process && of.life == handler.life && of.kind == handler.kind
        });
        let promises = of_kind.filter_map(|(_, keys)| keys.get_mut(key));
        for promise in promises.flatten() {
            if let Some((_, after)) = promise.run.filter(|(of, _)| *of == run) {
                promise.due = now.saturating_add(after);
            }
        }
    }

    /// Notes a call that must come, for a handler that is known to be registered.
    fn promise(&mut self, handler: &HandlerId, key: &ObjectKey, promise: Promise) {
        let state = self.lives.of(&handler.process, handler.life);
        let name = (handler.kind.clone(), Arc::clone(&handler.name));
        if !state.is_some_and(|state| state.handlers.contains_key(&name)) {
            return;
        }
        let keys = self.open.entry(handler.clone()).or_default();
        let promises = keys.entry(key.clone()).or_default();
        // Of two delays of one key the earlier wins.
        let is_delay = |each: &&mut Promise| each.why == Why::Enqueued && each.due > promise.from;
        let mut delays = promises.iter_mut().filter(is_delay);
        match delays.next().filter(|_| promise.due > promise.from) {
            Some(other) if promise.why == Why::Enqueued => other.due = other.due.min(promise.due),
            _ => promises.push(promise),
        }
    }

    fn act(&mut self, activity: &Activity, now: Duration) -> Findings {
        let Activity {
            process,
            life,
            what,
        } = activity;
        match what {
            Act::Enqueued { kind, key, after } => {
                let Some(state) = self.lives.of(process, *life) else {
                    return Vec::new();
                };
                let handlers: Vec<_> = state
                    .handlers_of(kind)
                    .map(|(name, _)| activity.handler(kind, name))
                    .collect();
                let delay = Delay {
                    due: now.saturating_add(*after),
                    is_kept: !handlers.is_empty(),
                };
                let (due, why) = if after.is_zero() {
                    (delay.due, Why::Enqueued)
                } else {
                    let life = (Arc::clone(process), *life);
                    self.delay((life, kind.clone(), key.clone()), delay, now)
                };
                for handler in handlers {
                    let run = None;
                    let promise = Promise {
                        from: now,
                        due,
                        why,
                        run,
                    };
                    self.promise(&handler, key, promise);
                }
            }
            Act::Deregistered { kind, name } => {
                self.open.remove(&activity.handler(kind, name));
                let state = self.lives.of(process, *life);
                // With its last handler the queue of the kind ends.
                if state.is_none_or(|state| state.handlers_of(kind).next().is_none()) {
                    self.delays.retain(|(of, each, _), _| {
                        of.0 != *process || of.1 != *life || each != kind
                    });
                }
            }
            Act::Sampled(samples) => {
                let samples = samples.iter();
                return samples
                    .flat_map(|sample| self.look(activity, sample, now))
                    .collect();
            }
            _ => {}
        }
        Vec::new()
    }

    /// Notes a delay; returns when its key comes due: of two delays, of whatever handlers, the earlier wins. One that has
    /// ended is none any more, unless a stop keeps what came due meanwhile.
    fn delay(
        &mut self,
        of: (LifeOf, Gvk, ObjectKey),
        delay: Delay,
        now: Duration,
    ) -> (Duration, Why) {
        let (process, life) = &of.0;
        let state = self.lives.of(process, *life);
        let runs = state.is_some_and(|state| state.runs == Some(true) && !state.stops);
        let earliest = self.delays.entry(of).or_insert(delay);
        if runs && earliest.due + CLOCKS <= now {
            *earliest = delay;
        }
        let why = if earliest.is_kept || delay.due <= earliest.due {
            Why::Enqueued
        } else {
            Why::EnqueuedAgain
        };
        if delay.due <= earliest.due {
            *earliest = delay;
        }
        let due = if why == Why::Enqueued {
            earliest.due
        } else {
            delay.due
        };
        (due, why)
    }

    /// Looks for calls that are late although their controller has nothing else to do.
    fn look(&mut self, activity: &Activity, sample: &Sample, now: Duration) -> Findings {
        let (process, life) = (&activity.process, activity.life);
        let of = (Arc::clone(process), life, sample.kind.clone());
        if sample.workers.is_none() {
            self.working.remove(&of);
            return Vec::new();
        }
        let working = *self.working.entry(of).or_insert(now);
        let Some(state) = self.lives.of(process, life) else {
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
        let from = working.max(state.since);
        let mut found = Vec::new();
        for (name, waiting) in &sample.waiting {
            let handler = activity.handler(&sample.kind, name);
            let keys = self.open.get(&handler).filter(|_| *waiting == 0);
            for (key, promises) in keys.into_iter().flatten() {
                if sample.slowed.contains(key) || under_way(&sample.kind, key) {
                    continue;
                }
                let is_late = |promise: &&Promise| promise.due.max(from) + SLACK <= now;
                let late = promises.iter().filter(is_late);
                found.extend(late.map(|promise| says(&handler, key, promise)));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;

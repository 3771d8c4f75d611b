//! Starts and stops: no early calls, no calls after a stop, and stops in time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{
    Activity, ActivityKind, Event, HandlerId, IncarnationId, Moment, Next,
};

use super::incarnations::Incarnations;
use super::{Check, Findings};
use crate::oracle::Oracle;

/// No handler is called before its kind's cache was filled since the start.
///
/// The cache's own count of complete reads (`KindStatus::loads`) is higher at each call than it was when the start
/// began, for kinds that had a handler then, and above zero for all others.
#[derive(Default)]
pub(super) struct FilledFirst {
    loads: BTreeMap<IncarnationId, BTreeMap<Gvk, u64>>,
    incarnations: Incarnations,
}

impl Check for FilledFirst {
    fn name(&self) -> &'static str {
        "no call before the cache is filled"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.incarnations.saw(moment, event);
        match event {
            Event::Acted(activity) => self.act(activity),
            Event::IncarnationEnded(incarnation) => {
                self.loads.remove(incarnation);
            }
            Event::Began {
                handler,
                key,
                loads: Some(loads),
                ..
            } => {
                let before = self
                    .loads
                    .get(&handler.incarnation)
                    .and_then(|of| of.get(&handler.kind));
                if *loads <= before.copied().unwrap_or(0) {
                    return vec![format!(
                        "{} is called for {} {key} although the cache has not been filled since the start",
                        handler.name,
                        handler.kind.kind()
                    )];
                }
            }
            _ => {}
        }
        Vec::new()
    }
}

impl FilledFirst {
    fn act(&mut self, activity: &Activity) {
        let Activity { incarnation, what } = activity;
        let Some(state) = self.incarnations.of(incarnation) else {
            return;
        };
        match what {
            ActivityKind::Starting(loads) => {
                let mut loads = loads.clone();
                // A kind without a handler may be dropped before its first one comes, and counts from zero then.
                loads.retain(|kind, _| state.handlers_of(kind).next().is_some());
                self.loads.insert(incarnation.clone(), loads);
            }
            // With its last handler a kind may end, and a new cache counts from zero.
            ActivityKind::Deregistered { kind, .. } if state.handlers_of(kind).next().is_none() => {
                if let Some(loads) = self.loads.get_mut(incarnation) {
                    loads.remove(kind);
                }
            }
            _ => {}
        }
    }
}

/// A stop ends within its grace period and leaves no call behind.
///
/// No handler is called after a stop or after it was deregistered, and no call is dropped before the grace period is
/// over. A deregistration ends after the running calls of its handler.
///
/// The bound on a stop is the grace period (`FactoryBuilder::grace_period`) and a second; time in which the process was
/// paused does not count.
#[derive(Default)]
pub(super) struct Stops {
    incarnations: Incarnations,
    stopping: BTreeMap<IncarnationId, Stopping>,
    gone: BTreeSet<HandlerId>,
    /// Calls under way.
    calls: BTreeSet<(HandlerId, ObjectKey)>,
    /// Findings about dropped calls. A process that is killed drops its calls as well, so they count once the process
    /// is seen alive.
    dropped: BTreeMap<IncarnationId, Findings>,
}

/// A stop in progress.
struct Stopping {
    began: Duration,
    /// The age of the process when the stop began.
    age: Duration,
    grace: Duration,
}

const SLACK: Duration = Duration::from_secs(1);

impl Check for Stops {
    fn name(&self) -> &'static str {
        "stops end and stay"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.incarnations.saw(moment, event);
        match event {
            Event::Acted(activity) => self.act(activity, moment.at),
            Event::Began { handler, key, .. } => {
                self.calls.insert((handler.clone(), key.clone()));
                self.began(handler, key.as_str())
            }
            Event::Ended {
                handler, key, next, ..
            } => {
                self.calls.remove(&(handler.clone(), key.clone()));
                if *next == Next::Dropped {
                    self.call_dropped(handler, key, moment.at);
                }
                Vec::new()
            }
            Event::IncarnationEnded(incarnation) => {
                self.stopping.remove(incarnation);
                self.dropped.remove(incarnation);
                self.gone.retain(|of| of.incarnation != *incarnation);
                self.calls.retain(|(of, _)| of.incarnation != *incarnation);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

impl Stops {
    fn act(&mut self, activity: &Activity, at: Duration) -> Findings {
        let Activity { incarnation, what } = activity;
        let Some(state) = self.incarnations.of(incarnation) else {
            return Vec::new();
        };
        match what {
            ActivityKind::Registered { kind, name, .. } => {
                self.gone.remove(&activity.handler(kind, name));
            }
            ActivityKind::Deregistered { kind, name } => {
                let handler = activity.handler(kind, name);
                let its = self.calls.iter().filter(|(of, _)| *of == handler);
                let running = its.map(|(_, key)| {
                    let kind = kind.kind();
                    format!("{name} is deregistered, its call for {kind} {key} has not ended")
                });
                let found = running.collect();
                self.gone.insert(handler);
                return found;
            }
            ActivityKind::Stopping(grace) => {
                let stopping = Stopping {
                    began: at,
                    age: state.awake(at),
                    grace: *grace,
                };
                self.stopping.insert(incarnation.clone(), stopping);
            }
            ActivityKind::Sampled(_) => {
                return self.dropped.remove(incarnation).unwrap_or_default();
            }
            ActivityKind::Stopped => {
                let mut found: Findings = state
                    .running
                    .iter()
                    .map(|(kind, key)| {
                        format!("the stop is over, a call for {} {key} is not", kind.kind())
                    })
                    .collect();
                if let Some(Stopping { age, grace, .. }) = self.stopping.remove(incarnation) {
                    let took = state.awake(at).saturating_sub(age);
                    // `awake` leaves pauses out on both sides: a process that is paused in a stop is not late.
                    if took > grace.saturating_add(SLACK) {
                        found.push(format!("a stop with {grace:?} of grace took {took:?}"));
                    }
                }
                return found;
            }
            _ => {}
        }
        Vec::new()
    }

    fn call_dropped(&mut self, handler: &HandlerId, key: &ObjectKey, at: Duration) {
        let Some(Stopping { began, grace, .. }) = self.stopping.get(&handler.incarnation) else {
            return;
        };
        // With pauses: the grace period goes on while the process is paused.
        let after = at.saturating_sub(*began);
        if after + SLACK < *grace {
            let (name, kind) = (&handler.name, handler.kind.kind());
            let found = format!(
                "the call of {name} for {kind} {key} was dropped {after:?} after a stop with {grace:?} of grace began"
            );
            let of = handler.incarnation.clone();
            self.dropped.entry(of).or_default().push(found);
        }
    }

    fn began(&self, handler: &HandlerId, key: &str) -> Findings {
        let kind = handler.kind.kind();
        let state = self.incarnations.of(&handler.incarnation);
        // `None` is no violation: programs that report no starts may still have handlers.
        if state.is_some_and(|state| state.runs == Some(false)) {
            return vec![format!(
                "{} is called for {kind} {key} after the stop",
                handler.name
            )];
        }
        if self.gone.contains(handler) {
            return vec![format!(
                "{} is called for {kind} {key} although it was deregistered",
                handler.name
            )];
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::Cause;

    use super::*;
    use crate::check::harness::{CheckHarness, handler, incarnation, kind};

    #[test]
    fn a_call_before_the_cache_is_filled_is_found() {
        let mut harness = CheckHarness::of(FilledFirst::default());
        harness.registered("h", None);
        harness.calls(0, "h", "a", Cause::Resync);
        assert_eq!(harness.found(), 0);
        // The harness's calls say that the cache was filled once.
        harness.act(1, ActivityKind::Starting([(kind(), 1)].into()));
        harness.calls(2, "h", "a", Cause::Resync);
        assert_eq!(harness.found(), 1);
    }

    #[test]
    fn calls_after_a_stop_are_found_and_calls_after_the_next_start_are_not() {
        let mut harness = CheckHarness::of(Stops::default());
        harness.starts(0);
        harness.calls(1, "h", "a", Cause::Resync);
        harness.act(2, ActivityKind::Stopping(SLACK));
        harness.calls(3, "h", "a", Cause::Resync);
        harness.act(4, ActivityKind::Stopped);
        assert_eq!(harness.found(), 0);
        harness.calls(5, "h", "a", Cause::Resync);
        assert_eq!(harness.found(), 1);
        harness.starts(6);
        harness.calls(7, "h", "a", Cause::Resync);
        assert_eq!(harness.found(), 1);
    }

    #[test]
    fn a_stop_that_takes_too_long_or_leaves_a_call_is_found() {
        let mut harness = CheckHarness::of(Stops::default());
        harness.starts(0);
        harness.act(0, ActivityKind::Stopping(SLACK));
        harness.act(1000, ActivityKind::Paused);
        harness.act(60_000, ActivityKind::Resumed);
        harness.act(61_000, ActivityKind::Stopped);
        assert_eq!(harness.found(), 0);
        harness.starts(62_000);
        harness.begins(62_000, "h", "a", Cause::Resync.into());
        harness.act(63_000, ActivityKind::Stopping(SLACK));
        harness.act(66_000, ActivityKind::Stopped);
        assert_eq!(harness.found(), 2);
        harness.ends(66_000, "h", "a", Next::Done);
    }

    #[test]
    fn a_call_after_the_end_of_its_handler_is_found() {
        let mut harness = CheckHarness::of(Stops::default());
        let (kind, name) = (kind(), handler("h").name);
        harness.registered("h", None);
        harness.calls(1, "h", "a", Cause::Resync);
        assert_eq!(harness.found(), 0);
        harness.act(2, ActivityKind::Deregistered { kind, name });
        harness.calls(3, "h", "a", Cause::Resync);
        assert_eq!(harness.found(), 1);
    }

    #[test]
    fn a_deregistration_before_the_end_of_a_call_is_found() {
        let mut harness = CheckHarness::of(Stops::default());
        harness.registered("h", None);
        harness.begins(1, "h", "a", Cause::Resync.into());
        let (kind, name) = (kind(), handler("h").name);
        harness.act(2, ActivityKind::Deregistered { kind, name });
        assert_eq!(harness.found(), 1);
    }

    fn dropped(millis: u64) -> CheckHarness<Stops> {
        let mut harness = CheckHarness::of(Stops::default());
        harness.starts(0);
        harness.begins(1, "h", "a", Cause::Resync.into());
        harness.act(2, ActivityKind::Stopping(SLACK * 30));
        harness.ends(millis, "h", "a", Next::Dropped);
        harness
    }

    #[test]
    fn a_call_that_is_dropped_within_the_grace_period_is_found() {
        for (millis, found) in [(5_000, 1), (30_002, 0)] {
            let mut harness = dropped(millis);
            harness.act(millis + 500, ActivityKind::Sampled(Vec::new()));
            assert_eq!(harness.found(), found);
        }
    }

    #[test]
    fn a_call_that_ends_with_its_process_is_not_found() {
        let mut harness = dropped(5_000);
        harness.event(5_001, &Event::IncarnationEnded(incarnation()));
        harness.act(5_500, ActivityKind::Sampled(Vec::new()));
        assert_eq!(harness.found(), 0);
    }
}

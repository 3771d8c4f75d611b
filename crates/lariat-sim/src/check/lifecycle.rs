//! Starts and stops: no early calls, no calls after a stop, and stops in time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lariat_core::Gvk;

use super::incarnations::Incarnations;
use super::{Check, Findings};
use crate::activity::{Activity, ActivityKind};
use crate::actors::{HandlerId, IncarnationId};
use crate::event::{Event, Moment};
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
/// No handler is called after a stop or after it was deregistered.
///
/// The bound on a stop is the grace period (`FactoryBuilder::grace_period`) and a second; time in which the process was
/// paused does not count.
#[derive(Default)]
pub(super) struct Stops {
    incarnations: Incarnations,
    /// The age of the process when the stop began, and its grace period.
    stopping: BTreeMap<IncarnationId, (Duration, Duration)>,
    gone: BTreeSet<HandlerId>,
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
            Event::Began { handler, key, .. } => self.began(handler, key.as_str()),
            Event::IncarnationEnded(incarnation) => {
                self.stopping.remove(incarnation);
                self.gone.retain(|of| of.incarnation != *incarnation);
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
                self.gone.insert(activity.handler(kind, name));
            }
            ActivityKind::Stopping(grace) => {
                self.stopping
                    .insert(incarnation.clone(), (state.awake(at), *grace));
            }
            ActivityKind::Stopped => {
                let mut found: Findings = state
                    .running
                    .iter()
                    .map(|(kind, key)| {
                        format!("the stop is over, a call for {} {key} is not", kind.kind())
                    })
                    .collect();
                if let Some((began, grace)) = self.stopping.remove(incarnation) {
                    let took = state.awake(at).saturating_sub(began);
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
    use crate::check::harness::{CheckHarness, handler, kind};
    use crate::event::Next;

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
}

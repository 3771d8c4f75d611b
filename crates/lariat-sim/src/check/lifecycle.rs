//! Starts and stops: no early calls, no calls after a stop, and stops in time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lariat_core::Gvk;

use super::lives::Lives;
use super::{Check, Findings};
use crate::activity::{Act, Activity};
use crate::actors::{HandlerId, LifeId};
use crate::event::{Event, Moment};
use crate::oracle::Oracle;

/// No handler is called before its kind's cache was filled since the start.
///
/// The cache's own count of complete reads (`KindStatus::loads`) is higher at each call than it was when the start
/// began, for kinds that had a handler then, and above zero for all others.
#[derive(Default)]
pub(super) struct FilledFirst {
    loads: BTreeMap<LifeId, BTreeMap<Gvk, u64>>,
    lives: Lives,
}

impl Check for FilledFirst {
    fn name(&self) -> &'static str {
        "no call before the cache is filled"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.lives.saw(moment, event);
        match event {
            Event::Acted(activity) => self.act(activity),
            Event::LifeEnded(life) => {
                self.loads.remove(life);
            }
            Event::Began {
                handler,
                key,
                loads: Some(loads),
                ..
            } => {
                let before = self
                    .loads
                    .get(&handler.life)
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
        let Activity { life, what } = activity;
        let Some(state) = self.lives.of(life) else {
            return;
        };
        match what {
            Act::Starting(loads) => {
                let mut loads = loads.clone();
                // A kind without a handler may be dropped before its first one comes, and counts from zero then.
                loads.retain(|kind, _| state.handlers_of(kind).next().is_some());
                self.loads.insert(life.clone(), loads);
            }
            // With its last handler a kind may end, and a new cache counts from zero.
            Act::Deregistered { kind, .. } if state.handlers_of(kind).next().is_none() => {
                if let Some(loads) = self.loads.get_mut(life) {
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
    lives: Lives,
    /// How long the process had run when the stop began, and its grace period.
    stopping: BTreeMap<LifeId, (Duration, Duration)>,
    gone: BTreeSet<HandlerId>,
}

const SLACK: Duration = Duration::from_secs(1);

impl Check for Stops {
    fn name(&self) -> &'static str {
        "stops end and stay"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.lives.saw(moment, event);
        match event {
            Event::Acted(activity) => self.act(activity, moment.at),
            Event::Began { handler, key, .. } => self.began(handler, key.as_str()),
            Event::LifeEnded(life) => {
                self.stopping.remove(life);
                self.gone.retain(|of| of.life != *life);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

impl Stops {
    fn act(&mut self, activity: &Activity, at: Duration) -> Findings {
        let Activity { life, what } = activity;
        let Some(state) = self.lives.of(life) else {
            return Vec::new();
        };
        match what {
            Act::Registered { kind, name, .. } => {
                self.gone.remove(&activity.handler(kind, name));
            }
            Act::Deregistered { kind, name } => {
                self.gone.insert(activity.handler(kind, name));
            }
            Act::Stopping(grace) => {
                self.stopping
                    .insert(life.clone(), (state.awake(at), *grace));
            }
            Act::Stopped => {
                let mut found: Findings = state
                    .running
                    .iter()
                    .map(|(kind, key)| {
                        format!("the stop is over, a call for {} {key} is not", kind.kind())
                    })
                    .collect();
                if let Some((began, grace)) = self.stopping.remove(life) {
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
        let state = self.lives.of(&handler.life);
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
    use crate::check::testing::{Story, handler, kind};
    use crate::event::Next;

    #[test]
    fn a_call_before_the_cache_is_filled_is_found() {
        let mut story = Story::of(FilledFirst::default());
        story.registered("h", None);
        story.calls(0, "h", "a", Cause::Resync);
        assert_eq!(story.found(), 0);
        // The story's calls say that the cache was filled once.
        story.act(1, Act::Starting([(kind(), 1)].into()));
        story.calls(2, "h", "a", Cause::Resync);
        assert_eq!(story.found(), 1);
    }

    #[test]
    fn calls_after_a_stop_are_found_and_calls_after_the_next_start_are_not() {
        let mut story = Story::of(Stops::default());
        story.starts(0);
        story.calls(1, "h", "a", Cause::Resync);
        story.act(2, Act::Stopping(SLACK));
        story.calls(3, "h", "a", Cause::Resync);
        story.act(4, Act::Stopped);
        assert_eq!(story.found(), 0);
        story.calls(5, "h", "a", Cause::Resync);
        assert_eq!(story.found(), 1);
        story.starts(6);
        story.calls(7, "h", "a", Cause::Resync);
        assert_eq!(story.found(), 1);
    }

    #[test]
    fn a_stop_that_takes_too_long_or_leaves_a_call_is_found() {
        let mut story = Story::of(Stops::default());
        story.starts(0);
        story.act(0, Act::Stopping(SLACK));
        story.act(1000, Act::Paused);
        story.act(60_000, Act::Resumed);
        story.act(61_000, Act::Stopped);
        assert_eq!(story.found(), 0);
        story.starts(62_000);
        story.begins(62_000, "h", "a", Cause::Resync.into());
        story.act(63_000, Act::Stopping(SLACK));
        story.act(66_000, Act::Stopped);
        assert_eq!(story.found(), 2);
        story.ends(66_000, "h", "a", Next::Done);
    }

    #[test]
    fn a_call_after_the_end_of_its_handler_is_found() {
        let mut story = Story::of(Stops::default());
        let (kind, name) = (kind(), handler("h").name);
        story.registered("h", None);
        story.calls(1, "h", "a", Cause::Resync);
        assert_eq!(story.found(), 0);
        story.act(2, Act::Deregistered { kind, name });
        story.calls(3, "h", "a", Cause::Resync);
        assert_eq!(story.found(), 1);
    }
}

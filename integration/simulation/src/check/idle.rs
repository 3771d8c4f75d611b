//! Workers: what is due does not wait while a worker is free.

use std::collections::BTreeMap;
use std::time::Duration;

use lariat_core::Gvk;
use lariat_sim::internals::{Activity, ActivityKind, Event, IncarnationId, Moment, Sample};

use super::{Check, Findings};
use crate::oracle::Oracle;

/// A key that is due and a worker that is free do not both wait: different keys of a kind run in parallel, as many as
/// it has workers, and a call that hangs keeps no more than its own worker and key.
///
/// The bound is a second: of two looks at a controller at least that far apart, both find a key in line and fewer keys
/// with workers than there are workers, and no key was dequeued in between. A worker takes a key without waiting for
/// anything (`controller::worker::next`), so in virtual time the true bound is zero. Keys that a drain, a limit or a
/// hold keeps back are not in line. A controller without a handler takes none on purpose. A call of a deregistered
/// handler costs no worker (`Registration::deregister`), so such calls are not counted.
#[derive(Default)]
pub(super) struct FreeWorkers {
    stuck: BTreeMap<(IncarnationId, Gvk), Stuck>,
}

struct Stuck {
    since: Duration,
    dequeued: u64,
}

/// The longest time a key may wait while a worker is free.
const MOMENT: Duration = Duration::from_secs(1);

impl Check for FreeWorkers {
    fn name(&self) -> &'static str {
        "no key waits beside a free worker"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        let incarnation = match event {
            Event::Acted(activity) => &activity.incarnation,
            Event::IncarnationEnded(incarnation) => incarnation,
            _ => return Vec::new(),
        };
        if let Event::Acted(Activity {
            what: ActivityKind::Sampled(samples),
            ..
        }) = event
        {
            let samples = samples.iter();
            return samples
                .filter_map(|sample| self.look(incarnation, sample, moment.at))
                .collect();
        }
        // Around a break no worker takes keys, so the times before and after it must not add up.
        let is_break = |act: &ActivityKind| {
            matches!(
                act,
                ActivityKind::Paused
                    | ActivityKind::Resumed
                    | ActivityKind::Starting(_)
                    | ActivityKind::Stopping(_)
                    | ActivityKind::Stopped
                    | ActivityKind::Deregistered { .. }
            )
        };
        // True for the end of an incarnation as well, which is not an `Acted`.
        if !matches!(event, Event::Acted(activity) if !is_break(&activity.what)) {
            self.stuck.retain(|of, _| of.0 != *incarnation);
        }
        Vec::new()
    }
}

impl FreeWorkers {
    fn look(
        &mut self,
        incarnation: &IncarnationId,
        sample: &Sample,
        at: Duration,
    ) -> Option<String> {
        let of = (incarnation.clone(), sample.kind.clone());
        // The worker of a call that a deregistered handler has not ended is replaced.
        let held = sample.held.saturating_sub(sample.leaving);
        let is_free = sample.workers.is_some_and(|workers| held < workers);
        // `waiting` has an entry for each handler, so an empty one means that the controller has none.
        if !is_free || sample.ready == 0 || sample.waiting.is_empty() {
            self.stuck.remove(&of);
            return None;
        }
        let now = Stuck {
            since: at,
            dequeued: sample.dequeued,
        };
        let stuck = self.stuck.entry(of).or_insert(now);
        // Some worker took a key since the last sample; that another one waits now is a new situation.
        if stuck.dequeued != sample.dequeued {
            (stuck.since, stuck.dequeued) = (at, sample.dequeued);
        }
        (at - stuck.since >= MOMENT).then(|| {
            format!(
                "{}: {} keys of {} wait while {} of {} workers have one",
                incarnation.process,
                sample.ready,
                sample.kind.kind(),
                sample.held,
                sample.workers.unwrap_or_default()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::harness::{CheckHarness, sample};

    fn found(held: usize, dequeued: u64) -> usize {
        let mut harness = CheckHarness::of(FreeWorkers::default());
        let first = Sample {
            ready: 3,
            held: 1,
            dequeued: 5,
            ..sample(Some(2))
        };
        harness.act(0, ActivityKind::Sampled(vec![first.clone()]));
        harness.act(
            1000,
            ActivityKind::Sampled(vec![Sample {
                held,
                dequeued,
                ..first
            }]),
        );
        harness.found()
    }

    #[test]
    fn a_key_beside_a_free_worker_is_found() {
        assert_eq!(found(1, 5), 1);
    }

    #[test]
    fn a_key_beside_calls_of_deregistered_handlers_is_found() {
        let mut harness = CheckHarness::of(FreeWorkers::default());
        for at in [0, 1000] {
            let sample = Sample {
                ready: 3,
                held: 2,
                leaving: 1,
                ..sample(Some(2))
            };
            harness.act(at, ActivityKind::Sampled(vec![sample]));
        }
        assert_eq!(harness.found(), 1);
    }

    #[test]
    fn keys_beside_busy_workers_and_keys_that_move_are_not() {
        assert_eq!((found(2, 5), found(1, 6)), (0, 0));
    }
}

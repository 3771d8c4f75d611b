//! Plans for replicas.

use std::time::Duration;

use lariat_sim::Chaos;
use lariat_sim::internals::{
    Change, ChaosExt, Fault, FaultKind, PlanStep, ProcessFault, StepAction, Write,
};

use super::suspensions::suspensions;
use crate::setup::Setup;

/// The longest a process is paused or down, a server is away, and a fault lasts.
const LONGEST: u64 = 40_000;

/// By how many seconds a wall clock may be wrong.
const HOURS: i64 = 10 * 60 * 60;

/// The classes of things that go wrong; of each seed some are left out.
const CLASSES: usize = 12;

/// Makes the plan of a seed.
pub(crate) fn plan(setup: &Setup, chaos: &Chaos) -> Vec<PlanStep> {
    // The number spells "repa".
    let mut random = fastrand::Rng::with_seed(setup.seed ^ 0x7265_7061);
    let classes = (0..CLASSES).filter(|_| random.bool()).collect();
    let pace = [1_000, 3_000, 8_000][random.usize(..3)];
    let writes = [1, 3, 6][random.usize(..3)];
    let mut planner = Planner {
        names: chaos.name_count().max(1),
        lasts: u64::try_from(chaos.lasts().as_millis()).unwrap_or(u64::MAX),
        processes: setup.rates.len(),
        // Together with the delays of the server they stay below what may be under way after a deadline, mostly.
        delay: u64::try_from(setup.margin().as_millis())
            .unwrap_or(u64::MAX)
            .min(4_000),
        classes,
        random,
    };
    let mut steps = planner.beginning();
    let mut at = 0;
    loop {
        at += planner.random.u64(..2 * pace);
        if at >= planner.lasts {
            break;
        }
        // One to six writes to two of everything else.
        let what = if planner.random.u32(..writes + 2) < writes {
            planner.write()
        } else {
            planner.next_fault()
        };
        steps.extend(what.map(|what| PlanStep {
            at: Duration::from_millis(at),
            what,
        }));
    }
    steps.extend(suspensions(setup, planner.names, chaos.lasts()));
    steps.sort_by_key(|step| step.at);
    steps
}

struct Planner {
    random: fastrand::Rng,
    classes: Vec<usize>,
    processes: usize,
    names: u16,
    lasts: u64,
    /// The longest delay of a message, in milliseconds.
    delay: u64,
}

impl Planner {
    /// Sets clocks wrong, delays some processes, and creates the first objects.
    fn beginning(&mut self) -> Vec<PlanStep> {
        let mut steps = Vec::new();
        for process in 0..self.processes {
            let mut has = |what| {
                let what = StepAction::Process { process, what };
                steps.push(PlanStep {
                    at: Duration::ZERO,
                    what,
                });
            };
            if self.random.bool() {
                has(ProcessFault::Clock(self.random.i64(-HOURS..HOURS)));
            }
            if self.random.u8(..3) == 0 {
                // A kill at the start is how a replica comes late.
                has(ProcessFault::Kill(Duration::from_millis(
                    self.random.u64(..60_000),
                )));
            }
        }
        for kind in 0..2 {
            for name in 0..self.names {
                let put = Write {
                    kind,
                    name,
                    what: Change::Put,
                };
                steps.push(PlanStep {
                    at: Duration::ZERO,
                    what: StepAction::Write(put),
                });
            }
        }
        steps
    }

    fn write(&mut self) -> Option<StepAction> {
        let what = match self.random.u8(..20) {
            0..15 => Change::Put,
            15..17 => Change::Delete,
            17 => Change::Recreate,
            _ => Change::Burst(self.random.u8(2..6)),
        };
        Some(StepAction::Write(Write {
            kind: self.random.usize(..2),
            name: self.random.u16(..self.names),
            what,
        }))
    }

    /// Makes something go wrong; none if all of that is left out of the seed.
    fn next_fault(&mut self) -> Option<StepAction> {
        let class = *self
            .classes
            .get(self.random.usize(..self.classes.len().max(1)))?;
        let process = self.random.usize(..self.processes);
        let length = self.length();
        Some(match class {
            0 => StepAction::Process {
                process,
                what: ProcessFault::Kill(length),
            },
            1 => StepAction::Process {
                process,
                what: ProcessFault::Restart(length),
            },
            2 => StepAction::Process {
                process,
                what: ProcessFault::Pause(length),
            },
            3 => {
                let by = self.random.i64(-HOURS..HOURS);
                StepAction::Process {
                    process,
                    what: ProcessFault::Clock(by),
                }
            }
            class => StepAction::Fault(self.fault(class, process, length)),
        })
    }

    fn fault(&mut self, class: usize, process: usize, lasts: Duration) -> Fault {
        let delay = Duration::from_millis(self.random.u64(1..=self.delay.max(1)));
        let one_of =
            |random: &mut fastrand::Rng, kinds: &[FaultKind]| kinds[random.usize(..kinds.len())];
        let random = &mut self.random;
        let kind = match class {
            4 => one_of(random, &[FaultKind::Blackhole, FaultKind::Away]),
            5 => one_of(
                random,
                &[
                    FaultKind::LoseReply,
                    FaultKind::Disconnect,
                    FaultKind::NoReply,
                    FaultKind::NoAnswer,
                ],
            ),
            6 => one_of(
                random,
                &[
                    FaultKind::Delay(delay),
                    FaultKind::DelayReply(delay),
                    FaultKind::Latency(delay),
                ],
            ),
            7 => FaultKind::Away,
            8 => one_of(
                random,
                &[
                    FaultKind::Conflict,
                    FaultKind::TooManyRequests,
                    FaultKind::ServerError(503),
                ],
            ),
            9 => one_of(
                random,
                &[
                    FaultKind::CutWatches,
                    FaultKind::EndWatches,
                    FaultKind::HangWatch(0),
                    FaultKind::HangWatch(2),
                    FaultKind::Compact,
                ],
            ),
            10 => FaultKind::DeleteLease(random.usize(..8)),
            _ => one_of(random, &[FaultKind::Backup, FaultKind::Restore]),
        };
        // A server is away for all.
        let is_for_one = class != 7 && class != 11 && random.u8(..4) > 0;
        Fault {
            kind,
            process: is_for_one.then_some(process),
            resource: None,
            verb: [None, None, Some("update"), Some("patch"), Some("get")][random.usize(..5)],
            times: [1, 2, 5, 1000][random.usize(..4)],
            lasts,
        }
    }

    fn length(&mut self) -> Duration {
        let most = [1_000, 8_000, LONGEST][self.random.usize(..3)];
        Duration::from_millis(self.random.u64(1..=most))
    }
}

#[cfg(test)]
mod tests {
    use super::super::replicas::begin;
    use super::*;

    #[test]
    fn a_seed_has_one_plan() {
        let plan_of = |seed| {
            let (setup, chaos) = begin(seed);
            plan(&setup, &chaos)
        };
        assert_eq!(plan_of(3), plan_of(3));
        assert_ne!(plan_of(3), plan_of(5));
    }

    #[test]
    fn processes_are_suspended_while_their_writes_are_refused_in_some_seeds() {
        let is_suspended = |seed: &u64| {
            let (setup, chaos) = begin(*seed);
            let steps = suspensions(&setup, 10, chaos.lasts());
            let pauses = steps.iter().filter_map(|step| match step.what {
                StepAction::Process {
                    what: ProcessFault::Pause(length),
                    ..
                } => Some(length),
                _ => None,
            });
            let pauses: Vec<Duration> = pauses.collect();
            assert!(pauses.iter().all(|length| *length >= setup.times.duration));
            !pauses.is_empty()
        };
        let count = (0..60).filter(is_suspended).count();
        assert!((10..30).contains(&count), "{count} of 60");
    }

    #[test]
    fn leases_are_deleted_and_backups_restored_in_some_seeds() {
        let mut kinds = Vec::new();
        for seed in 0..40 {
            let (setup, chaos) = begin(seed);
            kinds.extend(
                plan(&setup, &chaos)
                    .into_iter()
                    .filter_map(|step| match step.what {
                        StepAction::Fault(fault) => Some(fault.kind),
                        _ => None,
                    }),
            );
        }
        assert!(kinds.contains(&FaultKind::Restore));
        assert!(
            kinds
                .iter()
                .any(|kind| matches!(kind, FaultKind::DeleteLease(_)))
        );
    }
}

//! Smaller plans that still fail.
//!
//! A plan is the list of steps a seed led to, so a smaller plan is a run of its own: everything else that comes from
//! the seed stays as it is. First steps are taken out, halves first and single ones last; then what is left is made
//! simpler.

use std::time::{Duration, Instant};

use crate::driver::Driver;
use crate::failure::Failure;
use crate::plan::{Change, FaultKind, PlanStep, ProcessFault, StepAction};
use crate::scenario::Scenario;

/// The largest number of runs for shrinking, and the real time they may take.
const RUNS: usize = 300;
const TIME: Duration = Duration::from_secs(60);

/// The duration below which shrinking makes nothing shorter.
const SHORT: Duration = Duration::from_millis(100);

/// Makes the plan of a failure smaller as long as the same check fails first.
pub(crate) fn shrink(scenario: &Scenario, failure: Box<Failure>) -> Box<Failure> {
    let before = failure.plan.len();
    let mut shrinking = Shrinking::new(scenario, failure);
    shrinking.take_steps_out();
    shrinking.take_replicas_out();
    shrinking.simplify_steps();
    // A simpler step may have made others needless.
    shrinking.take_steps_out();
    let mut failure = shrinking.failure;
    failure.steps_before = before;
    failure
}

struct Shrinking {
    scenario: Scenario,
    failure: Box<Failure>,
    check: Option<&'static str>,
    runs: usize,
    began: Instant,
}

impl Shrinking {
    #[expect(
        clippy::disallowed_methods,
        reason = "it bounds the real time that is spent on a smaller plan; runs do not see it"
    )]
    fn new(scenario: &Scenario, failure: Box<Failure>) -> Self {
        Self {
            scenario: scenario.clone(),
            check: check_of(&failure),
            failure,
            runs: 0,
            began: Instant::now(),
        }
    }

    fn may_go_on(&self) -> bool {
        self.runs < RUNS && self.began.elapsed() < TIME
    }

    /// Accepts a plan if the same check fails with it.
    fn takes(&mut self, plan: &[PlanStep]) -> bool {
        if !self.may_go_on() {
            return false;
        }
        self.runs += 1;
        match Driver::new(&self.scenario).run(plan) {
            // Only the same check: a smaller plan that fails otherwise is another bug, and would hide the one that was
            // found.
            Err(smaller) if check_of(&smaller) == self.check => {
                self.failure = smaller;
                true
            }
            _ => false,
        }
    }

    fn take_steps_out(&mut self) {
        // Large blocks first: steps that have nothing to do with the failure are most of a plan, and go in few runs.
        let mut size = self.failure.plan.len().div_ceil(2);
        while size > 0 && self.may_go_on() {
            let mut at = 0;
            while at < self.failure.plan.len() {
                // After a success the next block has moved to `at`.
                if !self.takes(&without(&self.failure.plan, at, size)) {
                    at += size;
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }

    /// Tries it with fewer processes.
    fn take_replicas_out(&mut self) {
        while self.scenario.programs.len() > 1 && self.may_go_on() {
            let all = self.scenario.clone();
            // The last ones, so that the numbers of the others in the plan stay right.
            self.scenario.programs.pop();
            let left = self.scenario.programs.len();
            let plan: Vec<PlanStep> = (self.failure.plan.iter())
                .filter(|step| process_of(step).is_none_or(|process| process < left))
                .cloned()
                .collect();
            if !self.takes(&plan) {
                self.scenario = all;
                return;
            }
        }
    }

    fn simplify_steps(&mut self) {
        for at in 0..self.failure.plan.len() {
            // Each simpler step may be simplified further.
            while let Some(simpler) = self.simpler(at) {
                let mut plan = self.failure.plan.clone();
                plan[at] = simpler;
                if !self.takes(&plan) {
                    break;
                }
            }
        }
    }

    fn simpler(&self, at: usize) -> Option<PlanStep> {
        let mut step = self.failure.plan.get(at)?.clone();
        simplify(&mut step.what).then_some(step)
    }
}

fn without(plan: &[PlanStep], at: usize, size: usize) -> Vec<PlanStep> {
    let end = plan.len().min(at + size);
    plan[..at].iter().chain(&plan[end..]).cloned().collect()
}

fn check_of(failure: &Failure) -> Option<&'static str> {
    failure.violations.first().map(|violation| violation.check)
}

fn process_of(step: &PlanStep) -> Option<usize> {
    match &step.what {
        StepAction::Write(_) => None,
        StepAction::Fault(fault) => fault.process,
        StepAction::Process { process, .. } | StepAction::Command { process, .. } => Some(*process),
    }
}

/// Makes something simpler; returns whether it could be.
fn simplify(what: &mut StepAction) -> bool {
    match what {
        StepAction::Write(write) => match write.what {
            Change::Burst(times @ 3..) => {
                write.what = Change::Burst(times / 2);
                true
            }
            Change::Burst(_) | Change::Relabel(_) => {
                write.what = Change::Put;
                true
            }
            _ => false,
        },
        // At once to one, not by halves: a fault that has to happen twice is rare, and each trial is a whole run.
        StepAction::Fault(fault) if fault.times > 1 => {
            fault.times = 1;
            true
        }
        StepAction::Fault(fault) => halve_fault(&mut fault.kind) || halve(&mut fault.lasts),
        StepAction::Process { what, .. } => match what {
            ProcessFault::Kill(length)
            | ProcessFault::Restart(length)
            | ProcessFault::Pause(length) => halve(length),
            ProcessFault::Clock(_) => false,
        },
        StepAction::Command { .. } => false,
    }
}

fn halve_fault(kind: &mut FaultKind) -> bool {
    match kind {
        FaultKind::Delay(delay) | FaultKind::DelayReply(delay) | FaultKind::Latency(delay) => {
            halve(delay)
        }
        _ => false,
    }
}

fn halve(length: &mut Duration) -> bool {
    let is_long = *length > SHORT;
    if is_long {
        *length /= 2;
    }
    is_long
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{simplify, without};
    use crate::plan::{Change, PlanStep, ProcessFault, StepAction, Write};

    fn put(name: u16) -> PlanStep {
        let write = Write {
            kind: 0,
            name,
            what: Change::Put,
        };
        PlanStep {
            at: Duration::ZERO,
            what: StepAction::Write(write),
        }
    }

    #[test]
    fn a_part_of_a_plan_is_taken_out_up_to_its_end() {
        let plan = [put(0), put(1), put(2)];
        assert_eq!(without(&plan, 1, 1), [put(0), put(2)]);
        assert_eq!(without(&plan, 2, 2), [put(0), put(1)]);
    }

    #[test]
    fn everything_becomes_simple_after_some_steps() {
        let burst = Write {
            kind: 0,
            name: 0,
            what: Change::Burst(11),
        };
        let kill = ProcessFault::Kill(Duration::from_secs(100));
        let many = [
            StepAction::Write(burst),
            StepAction::Process {
                process: 0,
                what: kill,
            },
        ];
        for mut what in many {
            let steps = (0..100).take_while(|_| simplify(&mut what)).count();
            assert!((1..100).contains(&steps), "{steps} steps to {what:?}");
        }
    }
}

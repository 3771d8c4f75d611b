//! Smaller plans that still fail.

use crate::failure::Failure;
use crate::plan::Step;
use crate::simulation::Simulation;

/// How many runs shrinking may take.
const RUNS: usize = 300;

/// Takes steps out of a failing plan as long as the same check fails: halves first, single steps last.
pub(crate) fn shrink(simulation: &Simulation, mut failure: Box<Failure>) -> Box<Failure> {
    let before = failure.plan.len();
    let check = failure.violations.first().map(|violation| violation.check);
    let mut runs = 0;
    let mut size = before.div_ceil(2);
    while size > 0 && runs < RUNS {
        let mut at = 0;
        while at < failure.plan.len() && runs < RUNS {
            let plan = without(&failure.plan, at, size);
            runs += 1;
            match simulation.run_plan(&plan) {
                Err(smaller) if fails(&smaller, check) => failure = smaller,
                _ => at += size,
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    failure.steps_before = before;
    failure
}

fn without(plan: &[Step], at: usize, size: usize) -> Vec<Step> {
    let end = plan.len().min(at + size);
    plan[..at].iter().chain(&plan[end..]).cloned().collect()
}

fn fails(failure: &Failure, check: Option<&'static str>) -> bool {
    failure.violations.first().map(|violation| violation.check) == check
}

use std::time::Duration;

use super::{FaultKind, PlanStep, StepAction};
use crate::chaos::Chaos;
use crate::plan::{PlanBounds, generate};

fn plan(seed: u64) -> Vec<PlanStep> {
    let bounds = PlanBounds {
        processes: 2,
        kinds: 3,
        custom_from: 2,
        names: 12,
        commands: true,
    };
    generate(seed, &Chaos::default(), bounds)
}

#[test]
fn a_seed_makes_one_plan_in_the_order_of_time() {
    for seed in 0..200 {
        let steps = plan(seed);
        assert_eq!(steps, plan(seed), "seed {seed}");
        assert!(steps.is_sorted_by_key(|step| step.at), "seed {seed}");
    }
}

/// Things happen as often in a long run as in a short one, unless it is a soak.
#[test]
fn the_pace_of_a_plan_is_that_of_its_chaos() {
    let bounds = PlanBounds {
        processes: 1,
        kinds: 1,
        custom_from: 1,
        names: 12,
        commands: false,
    };
    let minutes = |minutes: u64| Chaos::default().duration(Duration::from_secs(minutes * 60));
    let slow = |chaos| Chaos { pace: 10, ..chaos };
    let steps = |chaos: &Chaos| {
        let seeds = 0..20;
        seeds
            .map(|seed| generate(seed, chaos, bounds).len())
            .sum::<usize>()
    };
    let (short, long) = (steps(&minutes(2)), steps(&minutes(20)));
    assert!((8 * short..12 * short).contains(&long), "{short}, {long}");
    let soak = steps(&slow(minutes(20)));
    assert!(soak < long / 3, "{long}, {soak}");
}

/// Returns when resources are not served, for each process and kind.
fn outages(steps: &[PlanStep]) -> Vec<(Option<usize>, Option<usize>, Duration, Duration)> {
    let mut faults: Vec<_> = steps
        .iter()
        .filter_map(|step| match &step.what {
            StepAction::Fault(fault) if fault.kind == FaultKind::NotServed => {
                let end = step.at + fault.lasts;
                Some((fault.process, fault.resource, step.at, end))
            }
            _ => None,
        })
        .collect();
    faults.sort();
    faults
}

/// Nothing else is a reason why objects may be reported as deleted.
#[test]
fn outages_of_resources_are_undisturbed_and_apart() {
    let (mut seeds, mut long) = (0, 0);
    for seed in 0..400 {
        let steps = plan(seed);
        let outages = outages(&steps);
        let is_disturbed = |step: &PlanStep| match &step.what {
            StepAction::Fault(fault) => fault.kind != FaultKind::NotServed,
            StepAction::Process { .. } => true,
            _ => false,
        };
        if outages.is_empty() {
            continue;
        }
        seeds += 1;
        assert!(!steps.iter().any(is_disturbed), "seed {seed}");
        let minute = Duration::from_secs(60);
        long += outages.iter().filter(|it| it.3 - it.2 > minute).count();
        for pair in outages.windows(2) {
            let ((process, kind, _, end), (next, other, begin, _)) = (&pair[0], &pair[1]);
            let gap = Duration::from_secs(5);
            let is_apart = (process, kind) != (next, other) || *begin >= *end + gap;
            assert!(is_apart, "seed {seed}");
        }
    }
    assert!(seeds > 5, "{seeds} seeds have outages");
    assert!(long > 5, "{long} outages last for more than a minute");
}

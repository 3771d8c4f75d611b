use std::time::Duration;

use lariat_sim::Chaos;
use lariat_sim::internals::{FaultKind, PlanBounds, PlanStep, StepAction};

use super::generate;

fn plan(seed: u64) -> Vec<PlanStep> {
    let bounds = PlanBounds {
        processes: 2,
        kinds: 3,
        custom_from: 2,
        names: 12,
    };
    generate(
        seed,
        &Chaos::default(),
        bounds,
        &["ConfigMap", "Secret", "Widget"],
    )
}

#[test]
fn a_seed_makes_one_plan_in_the_order_of_time() {
    for seed in 0..200 {
        let steps = plan(seed);
        assert_eq!(steps, plan(seed), "seed {seed}");
        assert!(steps.is_sorted_by_key(|step| step.at), "seed {seed}");
    }
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

use std::time::Duration;

use super::{PlanBounds, generate};
use crate::chaos::Chaos;

/// Things happen as often in a long run as in a short one, unless it is a soak.
#[test]
fn the_pace_of_a_plan_is_that_of_its_chaos() {
    let bounds = PlanBounds {
        processes: 1,
        kinds: 1,
        custom_from: 1,
        names: 12,
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

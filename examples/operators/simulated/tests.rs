//! The bug is found, and the fix works.

use super::{Cleanup, simulation};

#[test]
fn a_secret_stays_when_the_operator_is_down_while_its_config_map_is_deleted() {
    let found = (0..50).find_map(|seed| simulation(seed, Cleanup::ByHandler).run().err());
    let failure = found.expect("a seed that kills the operator at the wrong moment");
    let violation = &failure.violations()[0];
    assert_eq!(violation.check, "the user's check", "{failure}");
    let (steps, before) = failure.steps();
    assert!(steps < before, "{failure}");
}

#[test]
fn with_an_owner_reference_no_secret_stays_over_fifty_seeds() {
    for seed in 0..50 {
        if let Err(failure) = simulation(seed, Cleanup::ByOwner).run() {
            panic!("{failure}");
        }
    }
}

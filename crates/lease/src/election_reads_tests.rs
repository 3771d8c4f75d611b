//! Holder, times and versions that an election shows of its lease.

use std::time::Duration;

use super::tests::Stage;
use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Observes the lease of a holder; an empty one means that it is free.
fn observed(holder: &str) -> Stage {
    let mut stage = Stage::new();
    let lease = stage.lease(holder, 3);
    stage.election.observe(*lease, stage.at.now);
    stage
}

#[test]
fn unknown_lease_has_no_holder_and_does_not_expire() {
    let Stage { election, .. } = Stage::new();
    assert_eq!(election.holder(), None);
    assert_eq!(election.transitions(), 0);
    assert_eq!((election.expires(), election.silent_until()), (None, None));
    assert_eq!((election.version(), election.slow_renewals()), (None, 0));
}

#[test]
fn free_lease_has_no_holder_and_does_not_expire() {
    let Stage { election, .. } = observed("");
    assert_eq!(election.holder(), None);
    assert_eq!((election.expires(), election.silent_until()), (None, None));
    assert_eq!((election.version(), election.transitions()), (Some("2"), 3));
}

#[test]
fn held_lease_has_a_holder_and_an_expiry() {
    let Stage { election, at, .. } = observed("other");
    assert_eq!(election.holder().map(|holder| &**holder), Some("other"));
    assert_eq!((election.version(), election.transitions()), (Some("2"), 3));
    assert_eq!(election.expires(), Some(at.now + 15 * SECOND));
    assert_eq!(election.silent_until(), Some(at.now + 5 * SECOND));
}

#[test]
fn watch_may_be_silent_until_the_lease_expires_at_most() {
    let mut stage = observed("other");
    let expires = stage.at.now + 15 * SECOND;
    let theirs = stage.election.observed.as_ref().map(|it| it.object.clone());
    let theirs = theirs.expect("it was observed");
    stage.advance(12 * SECOND);
    stage.election.observe(theirs, stage.at.now);
    assert_eq!(stage.election.expires(), Some(expires));
    assert_eq!(stage.election.silent_until(), Some(expires));
}

#[test]
fn observed_lease_ages_during_a_short_suspension() {
    for (away, age) in [(10, 10), (11, 0)] {
        let mut stage = observed("other");
        let theirs = stage.election.observed.as_ref().map(|it| it.object.clone());
        stage.suspend(away * SECOND);
        let now = stage.at.now;
        stage
            .election
            .observe(theirs.expect("it was observed"), now);
        assert_eq!(stage.election.expires(), Some(now + (15 - age) * SECOND));
    }
}

#[test]
fn release_of_a_deleted_lease_forgets_its_holder() {
    let mut stage = Stage::new();
    assert_eq!(stage.attempt(None, &[]), Next::Held);
    assert_eq!(stage.election.release(), Some(Request::Get));
    let next = stage.election.answered(Answer::Absent, stage.at);
    assert_eq!(next, Next::Released);
    assert_eq!(
        (stage.election.holds(), stage.election.holder()),
        (false, None)
    );
}

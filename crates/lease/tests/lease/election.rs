//! Elections on the embedded cluster and its faults, in virtual time.

use std::time::Duration;

use crate::bench::{Bench, Replica, SECOND};
use futures::poll;
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_lease::{LeadershipState, Lease, LeaseError};
use serde_json::json;
use tokio::time::{Instant, advance, sleep};

#[tokio::test(start_paused = true)]
async fn one_of_three_leads_and_the_others_know_whom_they_wait_for() {
    let bench = Bench::new().await;
    let replicas = ["one", "two", "three"].map(|name| bench.replica(name));
    sleep(60 * SECOND).await;
    let leaders: Vec<&Replica> = replicas.iter().filter(|it| it.leads()).collect();
    let [leader] = leaders[..] else {
        panic!("{} leaders", leaders.len());
    };
    let holder = Some(leader.name.into());
    for other in replicas.iter().filter(|it| !it.leads()) {
        let standing = other.leadership.state();
        assert_eq!(
            standing,
            LeadershipState::Standby {
                holder: holder.clone()
            }
        );
    }
    assert_eq!(bench.holder().await, leader.name);
}

#[tokio::test(start_paused = true)]
async fn at_rest_the_leader_renews_and_those_on_standby_only_watch() {
    let bench = Bench::new().await;
    let _one = bench.led_by("one").await;
    let _two = bench.replica("two");
    sleep(10 * SECOND).await;
    bench.cluster.journal().clear();
    sleep(240 * SECOND).await;
    let requests = |client: &str| bench.cluster.journal().select().client(client).count();
    assert_eq!(requests("one"), 120, "one renewal every two seconds");
    assert_eq!(requests("two"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_released_is_taken_at_once() {
    let bench = Bench::new().await;
    let mut one = bench.led_by("one").await;
    let two = bench.replica("two");
    sleep(60 * SECOND).await;
    let began = Instant::now();
    assert!(one.stop().await.is_ok());
    assert!(two.leadership.acquired().await);
    assert_eq!(began.elapsed(), Duration::ZERO);
    let lease = bench.lease().await;
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_kept_is_taken_when_it_has_expired() {
    let bench = Bench::new().await;
    let mut one = bench.replica_with("one", Lease::keep_on_stop);
    assert!(one.leadership.acquired().await);
    let two = bench.replica("two");
    sleep(60 * SECOND).await;
    let began = Instant::now();
    assert!(one.stop().await.is_ok());
    assert!(two.leadership.acquired().await);
    let waited = began.elapsed();
    assert!(waited > 12 * SECOND && waited <= 15 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_killed_leader_is_taken_when_it_has_expired() {
    let bench = Bench::new().await;
    let one = bench.led_by("one").await;
    let two = bench.replica("two");
    sleep(60 * SECOND).await;
    drop(one);
    let began = Instant::now();
    assert!(two.leadership.acquired().await);
    let waited = began.elapsed();
    assert!(waited > 12 * SECOND && waited <= 15 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn leadership_ends_when_its_run_is_dropped() {
    let bench = Bench::new().await;
    let one = bench.led_by("one").await;
    let leadership = one.leadership.clone();
    assert!(leadership.leads());
    drop(one);
    sleep(SECOND).await;
    assert_eq!(leadership.state(), LeadershipState::Ended);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_released_right_after_a_take_over_is_taken_at_once_too() {
    let bench = Bench::new().await;
    let one = bench.led_by("one").await;
    let [mut two, mut three] = ["two", "three"].map(|name| bench.replica(name));
    sleep(60 * SECOND).await;
    drop(one);
    // Both try as soon as it has expired, and one of them meets a conflict.
    while !two.leads() && !three.leads() {
        sleep(SECOND / 100).await;
    }
    if three.leads() {
        std::mem::swap(&mut two, &mut three);
    }
    sleep(SECOND / 100).await;
    let began = Instant::now();
    two.stop().await.expect("released");
    assert!(three.leadership.acquired().await);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// The leader is cut off by a fault; returns how long before the other led it had noticed.
async fn cut_off(fault: impl FnOnce(&Bench)) -> Duration {
    let bench = Bench::new().await;
    let mut one = bench.led_by("one").await;
    let two = bench.replica("two");
    sleep(61 * SECOND).await;
    fault(&bench);
    let began = Instant::now();
    one.leadership.lost().await;
    let lost = began.elapsed();
    assert!(lost <= 10 * SECOND, "it noticed after {lost:?}");
    assert!(!two.leads());
    assert!(matches!(one.ended().await, Err(LeaseError::Lost { .. })));
    assert!(two.leadership.acquired().await);
    let taken = began.elapsed();
    assert!(taken <= 17 * SECOND, "it took over after {taken:?}");
    taken - lost
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewals_are_swallowed_ends_before_another_begins() {
    let apart = cut_off(|bench| {
        bench.cluster.faults().block_leases("one");
    })
    .await;
    assert!(apart >= 4 * SECOND, "{apart:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_ends_before_another_begins() {
    for is_silent in [false, true] {
        let apart = cut_off(|bench| {
            let faults = bench.cluster.faults();
            if is_silent {
                faults.blackhole("one");
            } else {
                faults.partition("one");
            }
        });
        let apart = apart.await;
        assert!(apart >= 4 * SECOND, "{apart:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_meets_a_conflict_or_an_error_is_tried_again() {
    for action in [
        Action::Conflict,
        Action::LoseReply,
        Action::Refuse(Refusal::too_many_requests()),
    ] {
        let bench = Bench::new().await;
        let one = bench.led_by("one").await;
        let rule = Rule::new(action.clone())
            .verb("update")
            .resource("leases")
            .times(2);
        let rule = bench.cluster.faults().add(rule);
        sleep(30 * SECOND).await;
        assert_eq!(bench.cluster.faults().hits(rule), 2, "{action:?}");
        assert!(one.leads(), "{action:?}");
        assert!(one.leadership.status().slow_renewals > 0, "{action:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_deleted_by_hand_is_created_again() {
    let bench = Bench::new().await;
    let one = bench.led_by("one").await;
    let two = bench.replica_with("two", |lease| lease);
    sleep(9 * SECOND).await;
    bench.delete().await;
    // Its holder does not know yet, so no other process takes it.
    for _ in 0..600 {
        assert!(one.leads() && !two.leads());
        sleep(SECOND / 10).await;
    }
    assert_eq!(bench.holder().await, "one");
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_a_dead_leader_that_is_deleted_is_taken_a_duration_later() {
    let bench = Bench::new().await;
    let one = bench.led_by("one").await;
    let two = bench.replica("two");
    sleep(9 * SECOND).await;
    drop(one);
    bench.delete().await;
    let began = Instant::now();
    assert!(two.leadership.acquired().await);
    let waited = began.elapsed();
    assert!(waited >= 15 * SECOND && waited < 18 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_given_to_another_by_hand_ends_at_its_next_renewal() {
    let bench = Bench::new().await;
    let mut one = bench.led_by("one").await;
    sleep(9 * SECOND).await;
    bench
        .patch(json!({"spec": {"holderIdentity": "someone"}}))
        .await;
    let began = Instant::now();
    let error = one.ended().await.expect_err("it is lost");
    assert!(error.to_string().contains("someone holds it"), "{error}");
    assert!(began.elapsed() <= 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn elector_that_stood_still_says_no_renewal_was_attempted() {
    let bench = Bench::new().await;
    let mut one = bench.led_by("one").await;
    // Its task is not polled meanwhile.
    advance(60 * SECOND).await;
    let error = one.ended().await.expect_err("it is lost").to_string();
    assert!(
        error.contains("no renewal was attempted for 60.0s"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn elector_that_stood_still_during_a_renewal_says_so() {
    let bench = Bench::new().await;
    let mut one = bench.led_by("one").await;
    let silence = Rule::new(Action::NoAnswer).client("one");
    bench.cluster.faults().add(silence);
    // The renewal is on its way: it began two seconds after the last one, and has five.
    sleep(3 * SECOND).await;
    advance(60 * SECOND).await;
    let error = one.ended().await.expect_err("it is lost").to_string();
    assert!(error.contains("stood still for at least 5"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn elector_without_answers_says_the_lease_was_not_renewed() {
    let bench = Bench::new().await;
    let mut one = bench.led_by("one").await;
    let silence = Rule::new(Action::NoAnswer).client("one");
    bench.cluster.faults().add(silence);
    let error = one.ended().await.expect_err("it is lost").to_string();
    assert!(error.contains("it was not renewed within 10s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_freed_by_hand_stays_with_whoever_takes_it_first() {
    let bench = Bench::new().await;
    let _one = bench.led_by("one").await;
    let two = bench.replica("two");
    sleep(9 * SECOND).await;
    bench.patch(json!({"spec": {"holderIdentity": ""}})).await;
    assert!(two.leadership.acquired().await);
    assert_eq!(bench.holder().await, "two");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_for_longer_than_the_lease_ends_the_leader_and_another_follows() {
    let bench = Bench::new().await;
    let mut one = bench.led_by("one").await;
    let two = bench.replica("two");
    sleep(9 * SECOND).await;
    let away = bench.cluster.faults().partition("");
    assert!(one.ended().await.is_err());
    sleep(60 * SECOND).await;
    assert!(!two.leads());
    bench.cluster.faults().remove(away);
    let began = Instant::now();
    assert!(two.leadership.acquired().await);
    assert!(began.elapsed() <= 5 * SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_for_a_moment_changes_nothing() {
    let bench = Bench::new().await;
    let one = bench.led_by("one").await;
    let two = bench.replica("two");
    sleep(9 * SECOND).await;
    let away = bench.cluster.faults().partition("");
    sleep(6 * SECOND).await;
    bench.cluster.faults().remove(away);
    sleep(60 * SECOND).await;
    assert!(one.leads() && !two.leads());
}

#[tokio::test(start_paused = true)]
async fn after_a_restored_backup_one_leads() {
    let bench = Bench::new().await;
    let mut one = bench.led_by("one").await;
    let backup = bench.cluster.snapshot();
    one.stop().await.expect("released");
    let two = bench.led_by("two").await;
    sleep(30 * SECOND).await;
    // The backup says that the first holds the lease, which has ended long ago.
    bench.cluster.restore(&backup).await.expect("restored");
    let three = bench.replica("three");
    sleep(60 * SECOND).await;
    assert!(!two.leads(), "the server says that another holds it");
    assert!(three.leads());
    assert_eq!(bench.holder().await, "three");
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_a_renewal_has_no_answer_still_releases() {
    let bench = Bench::new().await;
    let mut one = bench.led_by("one").await;
    let late = Action::DelayReply(3 * SECOND);
    let rule = Rule::new(late).verb("update").resource("leases").times(1);
    let rule = bench.cluster.faults().add(rule);
    while bench.cluster.faults().hits(rule) == 0 {
        sleep(SECOND / 10).await;
    }
    assert!(one.stop().await.is_ok());
    assert_eq!(bench.holder().await, "");
}

#[tokio::test(start_paused = true)]
async fn a_stop_on_standby_leaves_the_lease_alone() {
    let bench = Bench::new().await;
    let _one = bench.led_by("one").await;
    let mut two = bench.replica("two");
    sleep(9 * SECOND).await;
    assert!(two.stop().await.is_ok());
    assert_eq!(bench.holder().await, "one");
    let writes = bench
        .cluster
        .journal()
        .select()
        .client("two")
        .verb("update")
        .count();
    assert_eq!(writes, 0);
}

#[tokio::test(start_paused = true)]
async fn the_health_check_fails_only_for_a_leader_that_does_not_renew() {
    let bench = Bench::new().await;
    let one = bench.led_by("one").await;
    let two = bench.replica("two");
    sleep(9 * SECOND).await;
    for replica in [&one, &two] {
        assert_eq!(replica.leadership.check(Duration::ZERO), Ok(()));
    }
    bench.cluster.faults().blackhole("one");
    sleep(60 * SECOND).await;
    assert_eq!(
        one.leadership.check(Duration::ZERO),
        Ok(()),
        "it has given up"
    );

    // The first poll moves the clock, and the elector is not polled before the check.
    sleep(60 * SECOND).await;
    let mut hangs = Box::pin(advance(60 * SECOND));
    assert!(poll!(hangs.as_mut()).is_pending());
    let error = two.leadership.check(15 * SECOND);
    let error = error.expect_err("it has the lease, and does not renew it");
    assert!(error.contains("was not renewed for 6"), "{error}");
}

use lariat_core::Cause;

use super::*;
use crate::check::due::promise::backoff;
use crate::check::harness::{CheckHarness, key, kind, sample};

fn harness() -> CheckHarness<Promises> {
    let mut harness = CheckHarness::of(Promises::default());
    harness.starts(0);
    harness.registered("h", None);
    harness.act(1, ActivityKind::Sampled(vec![sample(Some(1))]));
    harness
}

fn enqueue(harness: &mut CheckHarness<Promises>, after: Duration) {
    enqueue_at(harness, 10, after);
}

fn enqueue_at(harness: &mut CheckHarness<Promises>, millis: u64, after: Duration) {
    let (kind, key) = (kind(), key("a"));
    harness.act(millis, ActivityKind::Enqueued { kind, key, after });
}

#[test]
fn an_enqueued_key_without_a_call_is_found_and_not_while_the_factory_is_stopped() {
    let mut harness = harness();
    enqueue(&mut harness, Duration::from_secs(5));
    harness.calls(4000, "h", "a", Cause::Resync);
    harness.act(5500, ActivityKind::Sampled(vec![sample(Some(1))]));
    harness.act(6000, ActivityKind::Sampled(vec![sample(None)]));
    harness.starts(60_000);
    harness.act(60_500, ActivityKind::Sampled(vec![sample(Some(1))]));
    harness.act(61_400, ActivityKind::Sampled(vec![sample(Some(1))]));
    assert_eq!(harness.found(), 0, "an early call does not do");
    harness.act(61_600, ActivityKind::Sampled(vec![sample(Some(1))]));
    assert_eq!(harness.found(), 1);
}

#[test]
fn an_enqueued_key_that_calls_its_handler_is_not_found() {
    let mut harness = harness();
    enqueue(&mut harness, Duration::from_secs(5));
    harness.calls(5011, "h", "a", Cause::Resync);
    harness.act(60_000, ActivityKind::Sampled(vec![sample(Some(1))]));
    assert_eq!(harness.found(), 0);
}

#[test]
fn of_two_delays_the_earlier_wins() {
    let mut harness = harness();
    enqueue(&mut harness, Duration::from_secs(5));
    enqueue(&mut harness, Duration::from_secs(9));
    harness.calls(5010, "h", "a", Cause::Resync);
    harness.act(60_000, ActivityKind::Sampled(vec![sample(Some(1))]));
    assert_eq!(harness.found(), 0);
}

/// Registers the first handler two minutes after a delay began.
///
/// The delay ends after another one that begins at that time.
fn late_handler() -> CheckHarness<Promises> {
    let mut harness = CheckHarness::of(Promises::default());
    harness.starts(0);
    enqueue(&mut harness, Duration::from_secs(205));
    harness.act(
        120_000,
        ActivityKind::Registered {
            kind: kind(),
            name: Arc::from("h"),
            limit: None,
        },
    );
    harness.act(120_001, ActivityKind::Sampled(vec![sample(Some(1))]));
    let (kind, key, after) = (kind(), key("a"), Duration::from_secs(30));
    harness.act(200_000, ActivityKind::Enqueued { kind, key, after });
    harness
}

#[test]
fn a_delay_that_waited_for_a_handler_in_vain_may_be_forgotten() {
    let mut forgotten = late_handler();
    forgotten.act(210_000, ActivityKind::Sampled(vec![sample(Some(1))]));
    forgotten.calls(230_000, "h", "a", Cause::Resync);
    let mut kept = late_handler();
    kept.calls(205_010, "h", "a", Cause::Resync);
    for harness in [&mut forgotten, &mut kept] {
        harness.act(290_000, ActivityKind::Sampled(vec![sample(Some(1))]));
        assert_eq!(harness.found(), 0);
    }
    let mut lost = late_handler();
    lost.act(290_000, ActivityKind::Sampled(vec![sample(Some(1))]));
    assert_eq!(lost.found(), 1);
}

#[test]
fn a_delay_that_has_ended_is_not_the_earlier_of_two() {
    for (called, is_found) in [(15_010, false), (14_000, true)] {
        let mut harness = harness();
        enqueue(&mut harness, Duration::from_secs(5));
        // The key has ended its delay, and waits for a worker.
        enqueue_at(&mut harness, 6_000, Duration::from_secs(9));
        harness.calls(6_500, "h", "a", Cause::Resync);
        enqueue_at(&mut harness, 7_000, Duration::from_secs(20));
        harness.calls(called, "h", "a", Cause::Resync);
        harness.act(60_000, ActivityKind::Sampled(vec![sample(Some(1))]));
        assert_eq!(harness.found() > 0, is_found, "called at {called}");
    }
}

#[test]
fn a_busy_controller_is_not_found() {
    let mut harness = harness();
    enqueue(&mut harness, Duration::ZERO);
    let held = Sample {
        held: 1,
        ..sample(Some(1))
    };
    let ready = Sample {
        ready: 1,
        ..sample(Some(1))
    };
    harness.act(60_000, ActivityKind::Sampled(vec![held]));
    harness.act(61_000, ActivityKind::Sampled(vec![ready]));
    assert_eq!(harness.found(), 0);
}

#[test]
fn a_failed_call_that_is_not_repeated_is_found() {
    for (next, found) in [
        (Next::Retry(None), 1),
        (Next::Retry(Some(Duration::from_secs(90))), 0),
        (Next::Again(Duration::from_secs(1)), 1),
        (Next::Panicked, 1),
        (Next::Dropped, 1),
        (Next::Done, 0),
    ] {
        let mut harness = harness();
        harness.begins(10, "h", "a", Cause::Resync.into());
        harness.ends(20, "h", "a", next);
        harness.act(60_000, ActivityKind::Sampled(vec![sample(Some(1))]));
        assert_eq!(harness.found(), found, "{next:?}");
    }
}

#[test]
fn the_curve_is_the_default_limiters() {
    let millis = |attempt| backoff(attempt).as_millis();
    assert_eq!(
        [1, 2, 13, 14, 30, 31].map(millis),
        [5, 10, 20_480, 30_000, 30_000, 120_000]
    );
}

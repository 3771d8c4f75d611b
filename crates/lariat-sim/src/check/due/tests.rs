use lariat_core::Cause;

use super::*;
use crate::check::due::promise::backoff;
use crate::check::testing::{Story, key, kind, sample};

fn story() -> Story<Promises> {
    let mut story = Story::of(Promises::default());
    story.starts(0);
    story.registered("h", None);
    story.act(1, Act::Sampled(vec![sample(Some(1))]));
    story
}

fn enqueue(story: &mut Story<Promises>, after: Duration) {
    enqueue_at(story, 10, after);
}

fn enqueue_at(story: &mut Story<Promises>, millis: u64, after: Duration) {
    let (kind, key) = (kind(), key("a"));
    story.act(millis, Act::Enqueued { kind, key, after });
}

#[test]
fn an_enqueued_key_without_a_call_is_found_and_not_while_the_factory_is_stopped() {
    let mut story = story();
    enqueue(&mut story, Duration::from_secs(5));
    story.calls(4000, "h", "a", Cause::Resync);
    story.act(5500, Act::Sampled(vec![sample(Some(1))]));
    story.act(6000, Act::Sampled(vec![sample(None)]));
    story.starts(60_000);
    story.act(60_500, Act::Sampled(vec![sample(Some(1))]));
    story.act(61_400, Act::Sampled(vec![sample(Some(1))]));
    assert_eq!(story.found(), 0, "an early call does not do");
    story.act(61_600, Act::Sampled(vec![sample(Some(1))]));
    assert_eq!(story.found(), 1);
}

#[test]
fn an_enqueued_key_that_calls_its_handler_is_not_found() {
    let mut story = story();
    enqueue(&mut story, Duration::from_secs(5));
    story.calls(5011, "h", "a", Cause::Resync);
    story.act(60_000, Act::Sampled(vec![sample(Some(1))]));
    assert_eq!(story.found(), 0);
}

#[test]
fn of_two_delays_the_earlier_wins() {
    let mut story = story();
    enqueue(&mut story, Duration::from_secs(5));
    enqueue(&mut story, Duration::from_secs(9));
    story.calls(5010, "h", "a", Cause::Resync);
    story.act(60_000, Act::Sampled(vec![sample(Some(1))]));
    assert_eq!(story.found(), 0);
}

/// Registers the first handler two minutes after a delay began.
///
/// The delay ends after another one that begins at that time.
fn late_handler() -> Story<Promises> {
    let mut story = Story::of(Promises::default());
    story.starts(0);
    enqueue(&mut story, Duration::from_secs(205));
    story.act(
        120_000,
        Act::Registered {
            kind: kind(),
            name: Arc::from("h"),
            limit: None,
        },
    );
    story.act(120_001, Act::Sampled(vec![sample(Some(1))]));
    let (kind, key, after) = (kind(), key("a"), Duration::from_secs(30));
    story.act(200_000, Act::Enqueued { kind, key, after });
    story
}

#[test]
fn a_delay_that_waited_for_a_handler_in_vain_may_be_forgotten() {
    let mut forgotten = late_handler();
    forgotten.act(210_000, Act::Sampled(vec![sample(Some(1))]));
    forgotten.calls(230_000, "h", "a", Cause::Resync);
    let mut kept = late_handler();
    kept.calls(205_010, "h", "a", Cause::Resync);
    for story in [&mut forgotten, &mut kept] {
        story.act(290_000, Act::Sampled(vec![sample(Some(1))]));
        assert_eq!(story.found(), 0);
    }
    let mut lost = late_handler();
    lost.act(290_000, Act::Sampled(vec![sample(Some(1))]));
    assert_eq!(lost.found(), 1);
}

#[test]
fn a_delay_that_has_ended_is_not_the_earlier_of_two() {
    for (called, is_found) in [(15_010, false), (14_000, true)] {
        let mut story = story();
        enqueue(&mut story, Duration::from_secs(5));
        // The key has ended its delay, and waits for a worker.
        enqueue_at(&mut story, 6_000, Duration::from_secs(9));
        story.calls(6_500, "h", "a", Cause::Resync);
        enqueue_at(&mut story, 7_000, Duration::from_secs(20));
        story.calls(called, "h", "a", Cause::Resync);
        story.act(60_000, Act::Sampled(vec![sample(Some(1))]));
        assert_eq!(story.found() > 0, is_found, "called at {called}");
    }
}

#[test]
fn a_busy_or_slowed_controller_is_not_found() {
    let mut story = story();
    enqueue(&mut story, Duration::ZERO);
    let held = Sample {
        held: 1,
        ..sample(Some(1))
    };
    let ready = Sample {
        ready: 1,
        ..sample(Some(1))
    };
    let slowed = Sample {
        slowed: [key("a")].into(),
        ..sample(Some(1))
    };
    story.act(60_000, Act::Sampled(vec![held]));
    story.act(61_000, Act::Sampled(vec![ready]));
    story.act(62_000, Act::Sampled(vec![slowed]));
    assert_eq!(story.found(), 0);
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
        let mut story = story();
        story.begins(10, "h", "a", Cause::Resync.into());
        story.ends(20, "h", "a", next);
        story.act(60_000, Act::Sampled(vec![sample(Some(1))]));
        assert_eq!(story.found(), found, "{next:?}");
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

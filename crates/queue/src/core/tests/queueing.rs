//! The rules of client-go's work queue.

use std::time::Duration;

use super::bench::{Bench, SECOND, lane, now_add};
use crate::*;

#[test]
fn keys_leave_in_the_order_in_which_they_came() {
    let mut bench = Bench::new();
    bench.add("cabd");
    assert_eq!(bench.drain(), "cabd");
}

#[test]
fn a_key_added_twice_is_dequeued_once_with_both_payloads() {
    let mut bench = Bench::new();
    bench.add_with('a', now_add().payload(vec![1]));
    bench.add_with('a', now_add().payload(vec![2]));
    assert_eq!(bench.queue.stats(bench.now).depth(), 1);
    assert_eq!(bench.queue.stats(bench.now).adds, 1);
    let item = bench.get().unwrap();
    assert_eq!(item.payload, [1, 2]);
    assert!(bench.get().is_none());
}

#[test]
fn a_key_in_processing_is_not_dequeued_again_and_goes_to_the_end() {
    let mut bench = Bench::new();
    bench.add("a");
    let item = bench.get().unwrap();
    bench.add("aaaaab");
    assert_eq!(bench.queue.stats(bench.now).adds, 3);
    let other = bench.get().unwrap();
    assert_eq!(other.key, 'b');
    assert!(bench.get().is_none());
    bench.add("c");
    bench.done(&item);
    assert_eq!(bench.drain(), "ca");
}

#[test]
fn finished_keys_are_forgotten() {
    let mut bench = Bench::new();
    bench.add("abc");
    bench.drain();
    assert_eq!(bench.queue.entries.len(), 0);
}

#[test]
fn payloads_merge_the_older_before_the_later() {
    let mut bench = Bench::new();
    bench.add_with('a', now_add().payload(vec![1]));
    let item = bench.get().unwrap();
    bench.add_with('a', now_add().payload(vec![2]));
    let failed = Verdict::Failed {
        after: Duration::ZERO,
        payload: vec![1],
        priority: None,
    };
    bench.done_with(&item, &[(lane(1), failed)]);
    let item = bench.get().unwrap();
    assert_eq!(item.payload, [1, 2]);

    bench.add_with('a', now_add().payload(vec![3]));
    let failed = Verdict::Failed {
        after: SECOND,
        payload: vec![2],
        priority: None,
    };
    bench.done_with(&item, &[(lane(1), failed)]);
    assert_eq!(bench.get().unwrap().payload, [3]);
}

#[test]
fn work_given_back_is_due_as_before_and_without_a_failure() {
    let mut bench = Bench::new();
    bench.add_with('a', now_add().lanes(lane(1)).payload(vec![1]));
    let item = bench.get().unwrap();
    bench.add_with('a', now_add().lanes(lane(2)).payload(vec![2]));
    bench.queue.give_back(item, bench.now);
    let again = bench.get().unwrap();
    assert_eq!(again.lanes, [lane(1), lane(2)].into_iter().collect());
    assert_eq!(again.payload, [1, 2]);
    assert!(again.failures.is_empty());
}

#[test]
fn a_duplicate_does_not_make_the_line_longer() {
    let mut bench = Bench::new();
    assert!(bench.queue.is_empty());
    bench.add("a");
    assert_eq!(bench.queue.len(), 1);
    bench.add("b");
    bench.add("a");
    assert_eq!(bench.queue.len(), 2);
    assert!(!bench.queue.is_empty());
}

#[test]
fn a_key_can_be_added_again_while_it_is_processed_and_after() {
    let mut bench = Bench::new();
    bench.add("a");
    let item = bench.get().unwrap();
    bench.add("a");
    bench.done(&item);
    let item = bench.get().unwrap();
    bench.done(&item);
    assert!(bench.get().is_none());
    bench.add("a");
    assert_eq!(bench.drain(), "a");
}

#[test]
fn a_key_in_processing_is_skipped_and_dequeued_right_after_it_is_done() {
    let mut bench = Bench::new();
    bench.add_with('a', now_add().priority(Priority::High));
    let item = bench.get().unwrap();
    bench.add_with('a', now_add().priority(Priority::High));
    bench.add("b");
    assert_eq!(bench.get().unwrap().key, 'b');
    assert!(bench.get().is_none());
    bench.done(&item);
    assert_eq!(bench.get().unwrap().key, 'a');
}

#[test]
fn requests_with_a_limit_are_counted_for_the_key_apart_from_failures_of_lanes() {
    let mut bench = Bench::new();
    let asks = |bench: &mut Bench, key, lanes: LaneId, expected| {
        let add = now_add().lanes(lanes);
        let delay = |requests| {
            assert_eq!(requests, expected);
            SECOND
        };
        bench.queue.add_failed(key, add, delay, bench.now);
    };
    asks(&mut bench, 'a', lane(1), 1);
    asks(&mut bench, 'a', lane(1), 2);
    asks(&mut bench, 'a', lane(2), 3);
    asks(&mut bench, 'b', lane(1), 1);
    assert_eq!(bench.queue.failures(&'a', lane(1)), 0);
    assert_eq!(bench.queue.failures(&'a', LaneId::WHOLE), 3);
    bench.queue.forget(&'a', LaneId::WHOLE);
    asks(&mut bench, 'a', lane(1), 1);
    assert_eq!(bench.queue.failures(&'b', LaneId::WHOLE), 1);
    assert_eq!(bench.queue.failures(&'c', LaneId::WHOLE), 0);
    assert_eq!(bench.queue.stats(bench.now).retries, 5);
    // Forgetting is about the history only: what waits still comes.
    bench.advance(SECOND);
    assert_eq!(bench.drain(), "ab");
}

#[test]
fn count_of_limited_requests_ends_with_a_run_in_which_no_lane_fails() {
    let failed = Verdict::Failed {
        after: SECOND,
        payload: vec![],
        priority: None,
    };
    let postponed = Verdict::Postponed {
        after: SECOND,
        payload: vec![],
        priority: None,
    };
    let runs = [
        (vec![], 1),
        (vec![(lane(1), failed.clone())], 1),
        (vec![(lane(1), Verdict::Done), (lane(2), failed)], 1),
        (vec![(lane(2), postponed), (lane(1), Verdict::Done)], 1),
        (vec![(lane(1), Verdict::Done)], 0),
    ];
    for (verdicts, expected) in runs {
        let mut bench = Bench::new();
        bench
            .queue
            .add_failed('a', now_add(), |_| SECOND, bench.now);
        // Another delay, so that the key is not removed with its failures.
        bench.add_with('a', Add::after(9 * SECOND));
        bench.add_with('a', Add::after(90 * SECOND).lanes(lane(3)));
        bench.advance(SECOND);
        let item = bench.get().unwrap();
        bench.done_with(&item, &verdicts);
        let left = bench.queue.failures(&'a', LaneId::WHOLE);
        assert_eq!(left, expected, "{verdicts:?}");
    }
}

#[test]
fn add_that_merges_with_an_earlier_one_reads_no_clock() {
    let mut bench = Bench::new();
    bench.add("a");
    let hash = bench.queue.hasher().hash(&'a');
    let clock = || panic!("the clock is read");
    let woken = bench.queue.add_lazily('a', hash, now_add(), clock);
    assert_eq!((woken, bench.drain().as_str()), (None, "a"));
}

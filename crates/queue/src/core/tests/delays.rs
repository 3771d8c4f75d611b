//! Delayed adds.

use std::time::Duration;

use super::bench::{Bench, SECOND, lane, now_add};
use crate::*;

#[test]
fn a_delayed_key_comes_not_before_its_time_and_never_twice() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(5 * SECOND));
    bench.advance(5 * SECOND - Duration::from_nanos(1));
    assert_eq!(bench.drain(), "");
    bench.advance(Duration::from_nanos(1));
    assert_eq!(bench.drain(), "a");
    bench.advance(100 * SECOND);
    assert_eq!(bench.drain(), "");
}

#[test]
fn the_earlier_of_two_deadlines_wins_in_both_orders() {
    for delays in [[2, 9], [9, 2]] {
        let mut bench = Bench::new();
        for delay in delays {
            bench.add_with('a', Add::after(delay * SECOND));
        }
        bench.advance(2 * SECOND);
        assert_eq!(bench.drain(), "a", "{delays:?}");
        bench.advance(100 * SECOND);
        assert_eq!(bench.drain(), "", "{delays:?}");
    }
}

#[test]
fn expired_keys_come_in_the_order_of_their_times() {
    let mut bench = Bench::new();
    for (key, delay) in [('a', 3), ('b', 1), ('c', 2)] {
        bench.add_with(key, Add::after(delay * SECOND));
    }
    bench.advance(5 * SECOND);
    assert_eq!(bench.drain(), "bca");
}

#[test]
fn add_now_leaves_the_delay_in_both_orders() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(5 * SECOND).payload(vec![1]));
    bench.add_with('a', now_add().payload(vec![2]));
    let item = bench.get().unwrap();
    assert_eq!(item.payload, [2]);
    bench.done(&item);
    bench.advance(5 * SECOND);
    let item = bench.get().unwrap();
    assert_eq!(item.payload, [1]);
    bench.done(&item);

    bench.add("a");
    bench.add_with('a', Add::after(5 * SECOND));
    assert_eq!(bench.drain(), "a");
    bench.advance(5 * SECOND);
    assert_eq!(bench.drain(), "a");
    bench.advance(10 * SECOND);
    assert_eq!(bench.drain(), "");
}

#[test]
fn delay_ends_at_the_earlier_deadline_after_an_earlier_run() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(5 * SECOND));
    bench.add("a");
    bench.add_with('a', Add::after(7 * SECOND));
    assert_eq!(bench.drain(), "a");
    bench.advance(5 * SECOND);
    assert_eq!(bench.drain(), "a");
    bench.advance(5 * SECOND);
    assert_eq!(bench.drain(), "");
}

#[test]
fn delay_does_not_end_with_one_that_ended_before_the_add() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(5 * SECOND));
    // All workers have keys meanwhile, so it stays in line.
    bench.advance(6 * SECOND);
    bench.add_with('a', Add::after(7 * SECOND));
    assert_eq!(bench.drain(), "a");
    bench.advance(6 * SECOND);
    assert_eq!(bench.drain(), "");
    bench.advance(SECOND);
    assert_eq!(bench.drain(), "a");
}

#[test]
fn retry_does_not_come_with_a_delay_that_ended_during_the_run() {
    let mut bench = Bench::new();
    bench.add("a");
    let item = bench.get().unwrap();
    bench.add_with('a', Add::after(SECOND).lanes(lane(1)));
    bench.advance(2 * SECOND);
    let failed = Verdict::Failed {
        after: 5 * SECOND,
        payload: vec![],
        priority: None,
    };
    bench.done_with(&item, &[(lane(1), failed)]);
    assert_eq!(bench.drain(), "a");
    bench.advance(4 * SECOND);
    assert_eq!(bench.drain(), "");
    bench.advance(SECOND);
    assert_eq!(bench.drain(), "a");
}

#[test]
fn a_delay_too_long_for_any_clock_means_never() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(Duration::MAX));
    bench.add("b");
    let item = bench.get().unwrap();
    let again = Verdict::Again {
        after: Duration::MAX,
        payload: vec![],
        priority: None,
    };
    bench.done_with(&item, &[(LaneId::WHOLE, again)]);
    bench.advance(1_000_000 * SECOND);
    assert_eq!(bench.drain(), "");
}

#[test]
fn a_key_added_later_for_an_earlier_time_comes_first() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(5 * SECOND));
    bench.add_with('b', Add::after(3 * SECOND));
    bench.advance(4 * SECOND);
    assert_eq!(bench.drain(), "b");
    bench.advance(SECOND);
    assert_eq!(bench.drain(), "a");
}

#[test]
fn a_delayed_key_counts_as_waiting_only_once_it_is_ready() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(SECOND));
    let stats = bench.queue.stats(bench.now);
    assert_eq!((bench.queue.len(), stats.depth(), stats.delayed), (0, 0, 1));
    bench.advance(SECOND);
    let stats = bench.queue.stats(bench.now);
    assert_eq!((bench.queue.len(), stats.depth(), stats.delayed), (1, 1, 0));
}

#[test]
fn delay_of_all_lanes_and_delay_of_one_end_separately() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(10 * SECOND));
    bench.add_with('a', Add::after(5 * SECOND).lanes(lane(1)));
    bench.advance(5 * SECOND);
    assert_eq!(bench.drain(), "a");
    bench.advance(5 * SECOND);
    assert_eq!(bench.drain(), "a");
}

#[test]
fn of_a_delay_and_the_limiter_s_the_shorter_counts() {
    for (asked, limited, expected) in [(2, 5, 2), (5, 2, 2), (0, 3, 3)] {
        let mut bench = Bench::new();
        let add = Add::after(asked * SECOND);
        bench
            .queue
            .add_failed('a', add, |_| limited * SECOND, bench.now);
        assert_eq!(
            bench.queue.next_deadline(),
            Some(bench.now + expected * SECOND)
        );
    }
}

#[test]
fn many_delays_that_end_together_get_in_line_in_portions_and_in_order() {
    let mut bench = Bench::new();
    let keys: Vec<char> = ('\u{4e00}'..).take(1_000).collect();
    for (millis, key) in (1..).zip(&keys) {
        bench.add_with(*key, Add::after(Duration::from_millis(millis)));
    }
    bench.advance(2 * SECOND);
    let first = bench.get().unwrap();
    assert_eq!((first.key, bench.queue.len()), (keys[0], 255));
    bench.done(&first);
    assert!(bench.drain().chars().eq(keys[1..].iter().copied()));
}

#[test]
fn each_call_ends_256_delays_at_most_although_no_key_is_free() {
    let mut bench = Bench::new();
    let keys: Vec<char> = ('\u{4e00}'..).take(1_000).collect();
    let processing = keys[1..].iter().map(|key| {
        bench.add_with(*key, now_add());
        bench.add_with(*key, Add::after(SECOND));
        bench.get().unwrap()
    });
    let processing: Vec<_> = processing.collect();
    bench.add_with(keys[0], Add::after(2 * SECOND));
    bench.advance(2 * SECOND);
    let (left, now) = (|bench: &Bench| bench.queue.deadlines.len(), bench.now);
    assert!(bench.get().is_none());
    assert_eq!(left(&bench), 744);
    assert!(!bench.queue.has_ready(now));
    assert_eq!(left(&bench), 488);
    assert_eq!(bench.queue.stats(now).depth(), 768);
    assert_eq!(left(&bench), 232);
    // Keys of workers whose delays have not been released are delayed again, each alone.
    bench.add_with(keys[999], Add::after(9 * SECOND));
    assert_eq!((left(&bench), bench.queue.counters.dirty), (232, 769));
    assert!(bench.queue.next_deadline() <= Some(now));
    let item = bench.get().expect("behind those that workers have");
    assert_eq!(
        (item.key, left(&bench), processing.len()),
        (keys[0], 1, 999)
    );
}

#[test]
fn delays_that_end_together_are_queued_in_pieces() {
    let mut bench = Bench::new();
    let keys = ('\u{4e00}'..).take(1000);
    keys.for_each(|key| bench.add_with(key, Add::after(SECOND)));
    bench.advance(SECOND);
    bench.add_with('a', Add::after(SECOND));
    assert_eq!(bench.queue.len(), 0);
    assert!(bench.queue.has_ready(bench.now));
    assert_eq!(bench.queue.len(), 256);
    assert_eq!(bench.queue.stats(bench.now).depth(), 512);
    let first = bench.get().expect("keys are due");
    assert_eq!((first.key, bench.queue.len()), ('\u{4e00}', 767));
    // A key whose own delay has ended is delayed again: that key alone is queued.
    bench.add_with('\u{51e7}', Add::after(SECOND));
    assert_eq!(bench.queue.len(), 768);
}

#[test]
fn delay_is_kept_up_to_thirty_years() {
    let years = |number: u32| number * 365 * 24 * 3600 * SECOND;
    for (delay, kept) in [(years(29), 29), (years(30), 30), (years(31), 30)] {
        let mut bench = Bench::new();
        bench.add_with('a', Add::after(delay));
        let queued = bench.queue.queued(&'a', bench.now).unwrap();
        assert_eq!(queued.lanes[0].due_in, years(kept));
    }
}

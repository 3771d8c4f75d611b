//! Lanes: the independent work of one key.

use super::bench::{Bench, SECOND, lane, now_add};
use crate::*;

#[test]
fn only_the_lanes_that_failed_come_again_each_at_its_own_time() {
    let mut bench = Bench::new();
    bench.add("a");
    let item = bench.get().unwrap();
    assert!(item.lanes.is_all());
    let failed = |seconds: u32| Verdict::Failed {
        after: seconds * SECOND,
        payload: vec![seconds],
        priority: None,
    };
    let verdicts = [
        (lane(1), failed(5)),
        (lane(2), Verdict::Done),
        (lane(3), failed(2)),
    ];
    bench.done_with(&item, &verdicts);

    bench.advance(2 * SECOND);
    let item = bench.get().unwrap();
    assert_eq!(
        (item.lanes.clone(), &*item.payload),
        (lane(3).into(), &[2][..])
    );
    assert_eq!(item.failures[..], [(lane(1), 1), (lane(3), 1)]);
    bench.done_with(&item, &[(lane(3), failed(4))]);

    bench.advance(3 * SECOND);
    let item = bench.get().unwrap();
    assert_eq!(item.lanes, lane(1).into());
    bench.done_with(&item, &[(lane(1), Verdict::Done)]);

    bench.advance(SECOND);
    let item = bench.get().unwrap();
    assert_eq!(
        (item.lanes.clone(), &item.failures[..]),
        (lane(3).into(), &[(lane(3), 2)][..])
    );
    bench.done_with(&item, &[(lane(3), Verdict::Done)]);
    assert_eq!(bench.queue.entries.len(), 0);
}

#[test]
fn a_postponed_lane_is_retried_with_the_failures_it_had() {
    let mut bench = Bench::new();
    bench.add("a");
    let failed = Verdict::Failed {
        after: SECOND,
        payload: vec![1],
        priority: None,
    };
    let postponed = Verdict::Postponed {
        after: SECOND,
        payload: vec![2],
        priority: None,
    };
    let item = bench.get().unwrap();
    bench.done_with(&item, &[(lane(1), failed), (lane(2), postponed.clone())]);
    for _ in 0..3 {
        bench.advance(SECOND);
        let item = bench.get().unwrap();
        assert_eq!(item.failures[..], [(lane(1), 1)]);
        bench.done_with(&item, &[(lane(1), postponed.clone())]);
    }
    assert_eq!(bench.queue.stats(bench.now).retries, 5);
}

#[test]
fn change_of_all_lanes_leaves_the_delay_of_one() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(5 * SECOND).lanes(lane(1)).payload(vec![1]));
    bench.add_with('a', now_add().payload(vec![2]));
    let item = bench.get().unwrap();
    assert!(item.lanes.is_all());
    bench.done(&item);
    bench.advance(5 * SECOND);
    assert_eq!(bench.get().unwrap().lanes, lane(1).into());
}

#[test]
fn a_lane_added_alone_does_not_bring_the_others() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(5 * SECOND).lanes(lane(1)));
    bench.add_with('a', now_add().lanes(lane(2)));
    let item = bench.get().unwrap();
    assert_eq!(item.lanes, lane(2).into());
    bench.done(&item);
    bench.advance(5 * SECOND);
    assert_eq!(bench.get().unwrap().lanes, lane(1).into());
}

#[test]
fn a_lane_that_comes_due_during_processing_runs_after_it() {
    let mut bench = Bench::new();
    bench.add("a");
    let item = bench.get().unwrap();
    bench.add_with('a', Add::after(SECOND).lanes(lane(7)));
    bench.advance(2 * SECOND);
    assert!(bench.get().is_none());
    bench.done(&item);
    assert_eq!(bench.get().unwrap().lanes, lane(7).into());
}

#[test]
fn key_in_line_keeps_its_place_when_added_again() {
    let mut bench = Bench::limited(1);
    bench.add("xab");
    let (_, x) = bench.enter();
    assert_eq!((bench.wait(), bench.wait()), ('a', 'b'));
    bench.add("a");
    assert_eq!(bench.wait(), 'a');
    bench.leave(&x);
    let (next, _) = bench.enter();
    assert_eq!(next, 'a');
}

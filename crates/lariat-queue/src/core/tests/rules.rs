//! The rules one by one, in virtual time.

use std::time::{Duration, Instant};

use super::super::*;

/// A queue of numbered lanes over letters, with a clock that is moved by hand.
struct Bench {
    queue: QueueCore<char, Vec<u32>>,
    now: Instant,
}

impl Payload for Vec<u32> {
    fn merge(&mut self, later: Self) {
        self.extend(later);
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn lane(number: u32) -> LaneId {
    LaneId::new(number)
}

fn now_add() -> Add<Vec<u32>> {
    Add::now()
}

impl Bench {
    #[allow(
        clippy::disallowed_methods,
        reason = "an arbitrary origin of virtual time"
    )]
    fn new() -> Self {
        Self {
            queue: QueueCore::new(Ageing::new(10 * SECOND, 4)),
            now: Instant::now(),
        }
    }

    fn add(&mut self, keys: &str) {
        for key in keys.chars() {
            self.queue.add(key, now_add(), self.now);
        }
    }

    fn add_with(&mut self, key: char, add: Add<Vec<u32>>) {
        self.queue.add(key, add, self.now);
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
    }

    fn take(&mut self) -> Option<Taken<char, Vec<u32>>> {
        self.queue.take(self.now)
    }

    fn finish(&mut self, taken: &Taken<char, Vec<u32>>, verdicts: &[(LaneId, Verdict<Vec<u32>>)]) {
        self.queue.finish(
            taken.slot,
            taken.priority,
            verdicts.iter().cloned(),
            self.now,
        );
    }

    fn done(&mut self, taken: &Taken<char, Vec<u32>>) {
        self.finish(taken, &[(LaneId::WHOLE, Verdict::Done)]);
    }

    /// Takes and finishes everything that is ready.
    fn drain(&mut self) -> String {
        let mut keys = String::new();
        while let Some(taken) = self.take() {
            keys.push(taken.key);
            self.done(&taken);
        }
        keys
    }
}

#[test]
fn keys_leave_in_the_order_in_which_they_came() {
    let mut bench = Bench::new();
    bench.add("cabd");
    assert_eq!(bench.drain(), "cabd");
}

#[test]
fn a_key_added_twice_is_handed_out_once_with_both_payloads() {
    let mut bench = Bench::new();
    bench.add_with('a', now_add().payload(vec![1]));
    bench.add_with('a', now_add().payload(vec![2]));
    assert_eq!(bench.queue.stats().depth(), 1);
    assert_eq!(bench.queue.stats().adds, 1);
    let taken = bench.take().unwrap();
    assert_eq!(taken.payload, [1, 2]);
    assert!(bench.take().is_none());
}

#[test]
fn a_held_key_is_not_handed_out_twice_and_comes_again_at_the_end() {
    let mut bench = Bench::new();
    bench.add("a");
    let taken = bench.take().unwrap();
    bench.add("aaaaab");
    assert_eq!(bench.queue.stats().adds, 3);
    let other = bench.take().unwrap();
    assert_eq!(other.key, 'b');
    assert!(bench.take().is_none());
    bench.add("c");
    bench.done(&taken);
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
fn what_is_ready_beats_what_waits() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(5 * SECOND).payload(vec![1]));
    bench.add_with('a', now_add().payload(vec![2]));
    let taken = bench.take().unwrap();
    assert_eq!(taken.payload, [1, 2]);
    bench.done(&taken);
    bench.advance(10 * SECOND);
    assert_eq!(bench.drain(), "");

    bench.add("a");
    bench.add_with('a', Add::after(5 * SECOND));
    assert_eq!(bench.drain(), "a");
    bench.advance(10 * SECOND);
    assert_eq!(bench.drain(), "");
}

#[test]
fn a_kept_delay_ends_at_its_time_whatever_happened_before() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(5 * SECOND).kept());
    bench.add("a");
    bench.add_with('a', Add::after(7 * SECOND).kept());
    assert_eq!(bench.drain(), "a");
    bench.advance(5 * SECOND);
    assert_eq!(bench.drain(), "a");
    bench.advance(5 * SECOND);
    assert_eq!(bench.drain(), "");
}

#[test]
fn a_delay_no_clock_can_hold_means_never() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(Duration::MAX));
    bench.add("b");
    let taken = bench.take().unwrap();
    let again = Verdict::Again {
        after: Duration::MAX,
        payload: vec![],
    };
    bench.finish(&taken, &[(LaneId::WHOLE, again)]);
    bench.advance(1_000_000 * SECOND);
    assert_eq!(bench.drain(), "");
    bench.add("ab");
    assert_eq!(bench.drain(), "ab");
}

#[test]
fn payloads_merge_the_older_before_the_later() {
    let mut bench = Bench::new();
    bench.add_with('a', now_add().payload(vec![1]));
    let taken = bench.take().unwrap();
    bench.add_with('a', now_add().payload(vec![2]));
    let failed = Verdict::Failed {
        after: Duration::ZERO,
        payload: vec![1],
    };
    bench.finish(&taken, &[(lane(1), failed)]);
    let taken = bench.take().unwrap();
    assert_eq!(taken.payload, [1, 2]);

    bench.add_with('a', now_add().payload(vec![3]));
    let failed = Verdict::Failed {
        after: SECOND,
        payload: vec![2],
    };
    bench.finish(&taken, &[(lane(1), failed)]);
    assert_eq!(bench.take().unwrap().payload, [2, 3]);
}

#[test]
fn a_drain_hands_out_what_was_due_before_it_and_the_rest_after_it() {
    let mut bench = Bench::new();
    bench.add("abc");
    bench.add_with('d', Add::after(SECOND));
    let (a, b) = (bench.take().unwrap(), bench.take().unwrap());
    bench.add("a");
    bench.queue.drain(bench.now);
    bench.add("bef");
    let again = Verdict::Again {
        after: Duration::ZERO,
        payload: vec![],
    };
    bench.finish(&b, &[(lane(1), again.clone())]);
    bench.finish(&a, &[(lane(1), again)]);
    bench.advance(5 * SECOND);
    assert_eq!(bench.queue.next_deadline(), None);
    assert!(!bench.queue.is_finished());
    assert_eq!(bench.drain(), "ca");
    assert!(bench.queue.is_finished());

    bench.queue.resume(bench.now);
    assert_eq!(bench.drain(), "efbd");
}

#[test]
fn a_low_key_that_is_given_back_stays_low() {
    let mut bench = Bench::new();
    bench.add_with('a', now_add().priority(Priority::Low));
    let taken = bench.take().unwrap();
    bench.queue.give_back(taken, bench.now);
    bench.add("b");
    assert_eq!(bench.drain(), "ba");
}

#[test]
fn only_the_lanes_that_failed_come_again_each_at_its_own_time() {
    let mut bench = Bench::new();
    bench.add("a");
    let taken = bench.take().unwrap();
    assert!(taken.lanes.is_all());
    let failed = |seconds: u32| Verdict::Failed {
        after: seconds * SECOND,
        payload: vec![seconds],
    };
    let verdicts = [
        (lane(1), failed(5)),
        (lane(2), Verdict::Done),
        (lane(3), failed(2)),
    ];
    bench.finish(&taken, &verdicts);

    bench.advance(2 * SECOND);
    let taken = bench.take().unwrap();
    assert_eq!(
        (taken.lanes.clone(), &*taken.payload),
        (lane(3).into(), &[2][..])
    );
    assert_eq!(taken.failures[..], [(lane(1), 1), (lane(3), 1)]);
    bench.finish(&taken, &[(lane(3), failed(4))]);

    bench.advance(3 * SECOND);
    let taken = bench.take().unwrap();
    assert_eq!(taken.lanes, lane(1).into());
    bench.finish(&taken, &[(lane(1), Verdict::Done)]);

    bench.advance(SECOND);
    let taken = bench.take().unwrap();
    assert_eq!(
        (taken.lanes.clone(), &taken.failures[..]),
        (lane(3).into(), &[(lane(3), 2)][..])
    );
    bench.finish(&taken, &[(lane(3), Verdict::Done)]);
    assert_eq!(bench.queue.entries.len(), 0);
}

#[test]
fn a_change_makes_delayed_lanes_due_at_once() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(5 * SECOND).lanes(lane(1)).payload(vec![1]));
    bench.add_with('a', now_add().payload(vec![2]));
    let taken = bench.take().unwrap();
    assert!(taken.lanes.is_all());
    bench.done(&taken);
    bench.advance(10 * SECOND);
    assert_eq!(bench.drain(), "");
}

#[test]
fn a_lane_added_alone_does_not_bring_the_others() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(5 * SECOND).lanes(lane(1)));
    bench.add_with('a', now_add().lanes(lane(2)));
    let taken = bench.take().unwrap();
    assert_eq!(taken.lanes, lane(2).into());
    bench.done(&taken);
    bench.advance(5 * SECOND);
    assert_eq!(bench.take().unwrap().lanes, lane(1).into());
}

#[test]
fn a_lane_that_comes_due_while_the_key_is_held_runs_after_it_is_given_back() {
    let mut bench = Bench::new();
    bench.add("a");
    let taken = bench.take().unwrap();
    bench.add_with('a', Add::after(SECOND).lanes(lane(7)));
    bench.advance(2 * SECOND);
    assert!(bench.take().is_none());
    bench.done(&taken);
    assert_eq!(bench.take().unwrap().lanes, lane(7).into());
}

#[test]
fn work_given_back_is_due_as_before_and_without_a_failure() {
    let mut bench = Bench::new();
    bench.add_with('a', now_add().lanes(lane(1)).payload(vec![1]));
    let taken = bench.take().unwrap();
    bench.add_with('a', now_add().lanes(lane(2)).payload(vec![2]));
    bench.queue.give_back(taken, bench.now);
    let again = bench.take().unwrap();
    assert_eq!(again.lanes, [lane(1), lane(2)].into_iter().collect());
    assert_eq!(again.payload, [1, 2]);
    assert!(again.failures.is_empty());
}

#[test]
fn higher_priorities_leave_first_and_levels_are_fifo() {
    let mut bench = Bench::new();
    for (key, priority) in [
        ('a', Priority::Low),
        ('b', Priority::Normal),
        ('c', Priority::High),
        ('d', Priority::Low),
        ('e', Priority::Normal),
    ] {
        bench.add_with(key, now_add().priority(priority));
    }
    assert_eq!(bench.queue.stats().depth_of(Priority::Low), 2);
    assert_eq!(bench.drain(), "cbead");
}

#[test]
fn a_priority_rises_but_never_falls_and_a_risen_key_stands_behind_its_new_level() {
    let mut bench = Bench::new();
    bench.add_with('a', now_add().priority(Priority::Low));
    bench.add_with('b', now_add().priority(Priority::Low));
    bench.add("c");
    bench.add("b");
    bench.add_with('c', now_add().priority(Priority::Low));
    assert_eq!(bench.drain(), "cba");
}

#[test]
fn a_low_key_leaves_within_its_bound_under_any_load_of_higher_keys() {
    let mut bench = Bench::new();
    bench.add_with('z', now_add().priority(Priority::Low));
    let mut hand_outs = 0;
    loop {
        bench.add("a");
        let taken = bench.take().unwrap();
        bench.done(&taken);
        hand_outs += 1;
        if taken.key == 'z' {
            break;
        }
        bench.advance(SECOND);
    }
    // Ten seconds of patience at a hand-out per second, then the fourth hand-out after it.
    assert_eq!(hand_outs, 11 + 4);
}

#[test]
fn shutdown_refuses_adds_drops_delays_and_drains_what_is_ready() {
    let mut bench = Bench::new();
    bench.add("ab");
    bench.add_with('d', Add::after(SECOND));
    let taken = bench.take().unwrap();
    bench.queue.add('a', now_add(), bench.now);
    bench.queue.shut_down();
    bench.add("c");
    assert!(!bench.queue.is_finished());
    assert_eq!(bench.drain(), "b");
    assert!(!bench.queue.is_finished());
    // The key was dirtied before the shutdown, so it is drained too; its failure is not retried.
    bench.done(&taken);
    let taken = bench.take().unwrap();
    let failed = Verdict::Failed {
        after: SECOND,
        payload: vec![],
    };
    bench.finish(&taken, &[(LaneId::WHOLE, failed)]);
    assert!(bench.queue.is_finished());
    bench.advance(5 * SECOND);
    assert!(bench.take().is_none());
    assert_eq!(bench.queue.entries.len(), 0);

    bench.queue.reopen();
    bench.add("e");
    assert_eq!(bench.drain(), "e");
}

#[test]
fn superseded_deadlines_and_tickets_do_not_pile_up() {
    let mut bench = Bench::new();
    for round in 0..100_000 {
        bench.add_with(
            'a',
            Add::after(1_000_000 * SECOND - Duration::from_nanos(round)),
        );
    }
    assert!(
        bench.queue.waiting.len() < 3_000,
        "{}",
        bench.queue.waiting.len()
    );

    bench.add_with('z', now_add().priority(Priority::Low));
    for _ in 0..100_000 {
        bench.add_with('b', now_add().priority(Priority::Low));
        bench.add("b");
        let taken = bench.take().unwrap();
        bench.done(&taken);
    }
    assert!(
        bench.queue.ready.tickets() < 300,
        "{}",
        bench.queue.ready.tickets()
    );
}

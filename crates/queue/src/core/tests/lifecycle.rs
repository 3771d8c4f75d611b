//! Draining and shutting down, and what is left in memory.

use std::time::{Duration, Instant};

use super::bench::{Bench, SECOND, lane, now_add};
use crate::*;

#[test]
fn a_drain_dequeues_what_was_due_before_it_and_the_rest_after_it() {
    let mut bench = Bench::new();
    bench.add("abc");
    bench.add_with('d', Add::after(SECOND));
    let (a, b) = (bench.get().unwrap(), bench.get().unwrap());
    bench.add("a");
    bench.queue.drain(bench.now);
    bench.add("bef");
    let again = Verdict::Again {
        after: Duration::ZERO,
        payload: vec![],
        priority: None,
    };
    bench.done_with(&b, &[(lane(1), again.clone())]);
    bench.done_with(&a, &[(lane(1), again)]);
    bench.advance(5 * SECOND);
    assert_eq!(bench.queue.next_deadline(), None);
    assert!(!bench.queue.is_finished());
    assert_eq!(bench.drain(), "ca");
    assert!(bench.queue.is_finished());

    bench.queue.resume(bench.now);
    assert_eq!(bench.drain(), "efbd");
}

#[test]
fn shutdown_refuses_adds_drops_delays_and_drains_what_is_ready() {
    let mut bench = Bench::new();
    bench.add("ab");
    bench.add_with('d', Add::after(SECOND));
    let item = bench.get().unwrap();
    bench.queue.add('a', now_add(), bench.now);
    bench.queue.shut_down();
    bench.add("c");
    assert!(!bench.queue.is_finished());
    assert_eq!(bench.drain(), "b");
    assert!(!bench.queue.is_finished());
    // The key was dirtied before the shutdown, so it is drained too; its failure is not retried.
    bench.done(&item);
    let item = bench.get().unwrap();
    let failed = Verdict::Failed {
        after: SECOND,
        payload: vec![],
        priority: None,
    };
    bench.done_with(&item, &[(LaneId::WHOLE, failed)]);
    assert!(bench.queue.is_finished());
    bench.advance(5 * SECOND);
    assert!(bench.get().is_none());
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
    assert_eq!(bench.queue.deadlines.len(), 1);

    bench.add_with('z', now_add().priority(Priority::Low));
    for _ in 0..100_000 {
        bench.add_with('b', now_add().priority(Priority::Low));
        bench.add("b");
        let item = bench.get().unwrap();
        bench.done(&item);
    }
    assert!(
        bench.queue.ready.tickets() < 300,
        "{}",
        bench.queue.ready.tickets()
    );
}

#[test]
fn a_shutdown_without_drain_drops_what_is_ready() {
    let mut bench = Bench::new();
    bench.add("abc");
    bench.add_with('d', Add::after(SECOND));
    let item = bench.get().unwrap();
    bench.add("a");
    bench.queue.shut_down_now();
    assert!(bench.get().is_none());
    assert!(!bench.queue.is_finished(), "a key is with a worker");
    bench.done(&item);
    assert!(bench.queue.is_finished());
    assert_eq!(bench.queue.entries.len(), 0);
    bench.queue.reopen();
    bench.add("e");
    assert_eq!(bench.drain(), "e");
}

#[test]
fn key_returned_after_a_shutdown_and_a_reopening_is_dropped_but_not_its_adds() {
    let mut bench = Bench::new();
    bench.add("abc");
    let [a, b, c] = std::array::from_fn(|_| bench.get().unwrap());
    bench.queue.shut_down_now();
    bench.queue.reopen();
    bench.add("c");
    let failed = Verdict::Failed {
        after: SECOND,
        payload: Default::default(),
        priority: None,
    };
    bench.queue.give_back(a, bench.now);
    let verdicts = [(LaneId::WHOLE, failed)];
    bench.queue.done(b.slot, b.priority, verdicts, bench.now);
    bench.queue.give_back(c, bench.now);
    assert_eq!(bench.queue.entries.len(), 1);
    let again = bench.get().expect("it was added after the reopening");
    assert_eq!(again.key, 'c');
    bench.queue.give_back(again, bench.now);
    assert_eq!(bench.drain(), "c", "this run is not dropped");
    assert_eq!(bench.queue.entries.len(), 0);
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "an arbitrary origin of virtual time"
)]
fn a_crowd_that_has_left_leaves_no_memory_behind() {
    let mut now = Instant::now();
    let mut queue: QueueCore<u32, ()> = QueueCore::new(Ageing::default());
    for key in 0..200_000 {
        queue.add(key, Add::now(), now);
        queue.add(key + 200_000, Add::after(SECOND), now);
    }
    assert!(queue.entries.room() >= 400_000);
    now += SECOND;
    while let Some(item) = queue.get(now) {
        queue.done(item.slot, item.priority, [], now);
    }
    assert_eq!(queue.entries.len(), 0);
    assert!(queue.entries.room() < 32_000, "{}", queue.entries.room());
    assert!(queue.ready.room() < 32_000 && queue.deadlines.len() == 0);
}

#[test]
fn tickets_of_keys_that_rose_do_not_outlive_those_before_them() {
    let mut bench = Bench::new();
    let key = |number: u32| char::from_u32(0x1_0000 + number).unwrap();
    for number in 0..2_000 {
        bench.add_with(key(number), now_add().priority(Priority::Low));
    }
    for number in 1_000..2_000 {
        bench.add_with(key(number), now_add().priority(Priority::High));
    }
    for _ in 0..2_000 {
        let item = bench.get().unwrap();
        bench.done(&item);
    }
    let tickets = bench.queue.ready.tickets();
    assert!(tickets <= 64, "{tickets} of no key");
    assert!(tickets <= bench.queue.ready.most_tickets());
}

/// Letters of no alphabet in particular; enough that no two hash tables have them in one order by chance.
fn letters(range: std::ops::Range<u32>) -> String {
    range.filter_map(char::from_u32).collect()
}

#[test]
fn the_order_of_ready_keys_comes_from_the_calls() {
    let (first, second) = (letters(0x4e00..0x4e40), letters(0x5e00..0x5e40));
    let ready = |bench: &Bench| bench.queue.ready_keys().into_iter().collect::<String>();
    let mut bench = Bench::new();
    bench.add(&first);
    assert_eq!(ready(&bench), first);
    bench.queue.shut_down_now();
    bench.queue.reopen();
    bench.add(&second);
    assert_eq!(ready(&bench), second);
}

/// Panics in a merge, as a user's payload may.
#[derive(Debug, Clone, Default)]
struct Mine(bool);

impl Payload for Mine {
    fn merge(&mut self, later: Self) {
        assert!(!later.0, "the payload is mined");
    }
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "an arbitrary origin of virtual time"
)]
fn a_panic_in_a_merge_does_not_lose_the_key_for_good() {
    let now = Instant::now();
    let mut queue: QueueCore<char, Mine> = QueueCore::new(Ageing::default());
    let mined = || Add::now().payload(Mine(true));
    let panics = |step: &mut dyn FnMut()| {
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(step)).is_err());
    };
    panics(&mut || queue.add('a', mined(), now));
    queue.add('a', Add::now(), now);
    let item = queue.get(now).expect("the next add puts it in line");
    queue.add('a', Add::now(), now);
    let failed = Verdict::Failed {
        after: Duration::ZERO,
        payload: Mine(true),
        priority: None,
    };
    panics(&mut || {
        let verdicts = [(LaneId::WHOLE, failed.clone())];
        queue.done(item.slot, item.priority, verdicts, now);
    });
    queue.add('a', Add::now(), now);
    assert!(queue.get(now).is_some());
}

/// Returns a queue of ready keys.
fn crowd(keys: u32, now: Instant) -> QueueCore<u32, ()> {
    let mut queue = QueueCore::new(Ageing::default());
    (0..keys).for_each(|key| queue.add(key, Add::now(), now));
    queue
}

#[test]
fn room_for_tickets_is_freed_once_an_eighth_is_used() {
    let now = Bench::new().now;
    let mut queue = crowd(20_000, now);
    let room = queue.ready.room();
    while queue.len() > room / 8 {
        assert!(queue.get(now).is_some());
        assert_eq!(queue.ready.room(), room);
    }
    assert!(queue.get(now).is_some());
    assert_eq!(queue.ready.room(), room / 4);
}

#[test]
fn room_for_tickets_of_a_small_queue_is_kept() {
    let now = Bench::new().now;
    let mut queue = crowd(16 * 1024, now);
    let room = queue.ready.room();
    while queue.get(now).is_some() {}
    assert_eq!((queue.ready.room(), room), (16 * 1024, 16 * 1024));
}

#[test]
fn key_deferred_by_a_drain_is_not_dequeued_when_it_rises() {
    let mut bench = Bench::new();
    bench.add("a");
    bench.queue.drain(bench.now);
    bench.add("b");
    bench.add_with('b', now_add().priority(Priority::High));
    assert_eq!(bench.drain(), "a");
    bench.queue.resume(bench.now);
    assert_eq!(bench.drain(), "b");
}

//! What the queue counts, as client-go's metrics do.

use std::time::Duration;

use super::bench::{Bench, SECOND, now_add};
use crate::*;

const MICRO: Duration = Duration::from_micros(1);

#[test]
fn one_add_is_counted_and_its_wait_measured() {
    let mut bench = Bench::new();
    bench.add("a");
    let stats = bench.queue.stats(bench.now);
    assert_eq!((stats.adds, stats.depth(), stats.waits.count()), (1, 1, 0));
    bench.advance(50 * MICRO);
    let item = bench.get().unwrap();
    assert_eq!(item.waited, 50 * MICRO);
    let stats = bench.queue.stats(bench.now);
    assert_eq!((stats.depth(), stats.processing, stats.dequeued), (0, 1, 1));
    assert_eq!(
        (stats.waits.count(), stats.waits.sum(), stats.waits.max()),
        (1, 50 * MICRO, 50 * MICRO)
    );
    bench.advance(25 * MICRO);
    bench.done(&item);
    let stats = bench.queue.stats(bench.now);
    assert_eq!(
        (stats.works.count(), stats.works.sum(), stats.processing),
        (1, 25 * MICRO, 0)
    );
}

#[test]
fn five_adds_of_a_processed_key_are_one_and_wait_from_the_first_on() {
    let mut bench = Bench::new();
    bench.add("a");
    let item = bench.get().unwrap();
    for _ in 0..5 {
        bench.add("a");
        bench.advance(MICRO);
    }
    let stats = bench.queue.stats(bench.now);
    assert_eq!((stats.adds, stats.depth(), stats.dirty), (2, 1, 1));
    assert_eq!(bench.queue.len(), 0, "it is not in line yet");
    bench.done(&item);
    let stats = bench.queue.stats(bench.now);
    assert_eq!((stats.depth(), stats.dirty), (1, 0));
    assert_eq!(bench.get().unwrap().waited, 5 * MICRO);
}

#[test]
fn unfinished_work_and_the_longest_of_it_grow_while_keys_are_processed() {
    let mut bench = Bench::new();
    bench.add("ab");
    let first = bench.get().unwrap();
    bench.advance(1000 * MICRO);
    let stats = bench.queue.stats(bench.now);
    assert_eq!(
        (stats.unfinished, stats.longest),
        (1000 * MICRO, 1000 * MICRO)
    );
    let second = bench.get().unwrap();
    bench.advance(500 * MICRO);
    let stats = bench.queue.stats(bench.now);
    assert_eq!(
        (stats.unfinished, stats.longest),
        (2000 * MICRO, 1500 * MICRO)
    );
    bench.done(&first);
    let stats = bench.queue.stats(bench.now);
    assert_eq!(
        (stats.unfinished, stats.longest),
        (500 * MICRO, 500 * MICRO)
    );
    bench.done(&second);
    let stats = bench.queue.stats(bench.now);
    assert_eq!(
        (stats.unfinished, stats.longest),
        (Duration::ZERO, Duration::ZERO)
    );
}

#[test]
fn nothing_is_counted_after_a_shutdown() {
    let mut bench = Bench::new();
    bench.queue.shut_down();
    bench.add("a");
    bench
        .queue
        .add_failed('b', now_add(), |_| SECOND, bench.now);
    let stats = bench.queue.stats(bench.now);
    assert_eq!(
        (stats.adds, stats.retries, stats.depth(), stats.delayed),
        (0, 0, 0, 0)
    );
}

#[test]
fn retries_and_requeues_are_counted_apart_and_depths_by_priority() {
    let mut bench = Bench::new();
    bench.add("ab");
    let (a, b) = (bench.get().unwrap(), bench.get().unwrap());
    let (after, payload) = (SECOND, Vec::new());
    let failed = Verdict::Failed {
        after,
        payload: Vec::clone(&payload),
        priority: None,
    };
    bench.done_with(&a, &[(LaneId::WHOLE, failed)]);
    bench.done_with(
        &b,
        &[(
            LaneId::WHOLE,
            Verdict::Again {
                after,
                payload,
                priority: None,
            },
        )],
    );
    let stats = bench.queue.stats(bench.now);
    assert_eq!((stats.retries, stats.requeues, stats.delayed), (1, 1, 2));
    bench.add_with('c', now_add().priority(Priority::High));
    let stats = bench.queue.stats(bench.now);
    assert_eq!(
        (
            stats.depth_of(Priority::High),
            stats.depth_of(Priority::Normal)
        ),
        (1, 0)
    );
}

#[test]
fn a_dirty_key_in_processing_is_in_the_depth_of_its_priority() {
    let mut bench = Bench::new();
    bench.add("ba");
    let (_b, a) = (bench.get().unwrap(), bench.get().unwrap());
    // It is dequeued twice at one moment, behind another that is being processed.
    bench.done(&a);
    bench.add("a");
    let a = bench.get().unwrap();
    let depths = |bench: &mut Bench| {
        let stats = bench.queue.stats(bench.now);
        assert_eq!(
            stats.depth(),
            Priority::ALL.map(|each| stats.depth_of(each)).iter().sum()
        );
        Priority::ALL.map(|each| stats.depth_of(each))
    };
    assert_eq!(depths(&mut bench), [0, 0, 0]);
    bench.add_with('a', now_add().priority(Priority::Low));
    assert_eq!(depths(&mut bench), [1, 0, 0]);
    bench.add_with('a', now_add().priority(Priority::High));
    bench.add_with('c', now_add());
    assert_eq!(depths(&mut bench), [0, 1, 1], "it is urgent by now");
    bench.done(&a);
    assert_eq!(depths(&mut bench), [0, 1, 1], "it is in line by now");
}

#[test]
fn waiting_key_does_not_count_as_delayed() {
    let mut bench = Bench::limited(1);
    bench.add("ab");
    let (_, _a) = bench.enter();
    bench.wait();
    let stats = bench.queue.stats(bench.now);
    assert_eq!((stats.processing, stats.waiting, stats.delayed), (1, 1, 0));
}

#[test]
fn memory_of_raised_keys_is_freed_once_most_tickets_are_stale() {
    let of_key = |key: &char| u64::from(*key) % 3;
    let fair = QueueCore::fair(Ageing::default(), of_key);
    for queue in [Bench::new().queue, fair] {
        let mut bench = Bench::new();
        bench.queue = queue;
        let keys: Vec<char> = ('\u{4e00}'..).take(100).collect();
        let raise = |bench: &mut Bench, key| {
            bench.add_with(key, now_add().priority(Priority::High));
            let [_, tickets, _] = bench.queue.memory();
            assert_eq!(tickets.name, "queue tickets");
            tickets.entries
        };
        for key in &keys {
            bench.add_with(*key, now_add().priority(Priority::Low));
        }
        for (raised, key) in (1..=82).zip(&keys) {
            assert_eq!(raise(&mut bench, *key), 100 + raised);
        }
        // Of the low tickets, 83 are stale, more than half and 64.
        assert_eq!(raise(&mut bench, keys[82]), 100);
        let mut drained: Vec<char> = bench.drain().chars().collect();
        drained.sort_unstable();
        assert_eq!(drained, keys);
        assert_eq!(bench.queue.memory()[1].entries, 0);
    }
}

#[test]
fn debug_text_shows_the_number_of_ready_keys() {
    let mut bench = Bench::new();
    bench.add("ab");
    let text = format!("{:?}", bench.queue);
    assert!(text.contains("ready: 2, processing: 0"), "{text}");
}

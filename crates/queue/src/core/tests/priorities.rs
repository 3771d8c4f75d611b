//! Priorities, ageing and fairness.

use super::bench::{Bench, SECOND, now_add};
use crate::*;

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
    assert_eq!(bench.queue.stats(bench.now).depth_of(Priority::Low), 2);
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
    let mut dequeues = 0;
    loop {
        bench.add("a");
        let item = bench.get().unwrap();
        bench.done(&item);
        dequeues += 1;
        if item.key == 'z' {
            break;
        }
        bench.advance(SECOND);
    }
    // The threshold of ten seconds at a dequeue per second, then the fourth dequeue after it.
    assert_eq!(dequeues, 11 + 4);
}

#[test]
fn a_low_key_that_is_given_back_stays_low() {
    let mut bench = Bench::new();
    bench.add_with('a', now_add().priority(Priority::Low));
    let item = bench.get().unwrap();
    bench.queue.give_back(item, bench.now);
    bench.add("b");
    assert_eq!(bench.drain(), "ba");
}

#[test]
fn what_becomes_ready_first_does_not_overtake_a_higher_priority() {
    let mut bench = Bench::new();
    bench.add_with('a', Add::after(SECOND).priority(Priority::Low));
    bench.add_with('b', Add::after(2 * SECOND).priority(Priority::High));
    bench.advance(3 * SECOND);
    assert_eq!(bench.drain(), "ba");
}

#[test]
fn a_busy_level_never_starves_the_one_below() {
    // controller-runtime #3496: with a level that is never empty, the initial list is never handled.
    let mut bench = Bench::new();
    for key in 'A'..='Z' {
        bench.add_with(key, now_add().priority(Priority::Low));
    }
    let (mut low, mut dequeues) = (String::new(), 0);
    while low.len() < 26 {
        bench.add("ab");
        let item = bench.get().unwrap();
        bench.done(&item);
        bench.advance(SECOND / 10);
        dequeues += 1;
        low.extend(Some(item.key).filter(char::is_ascii_uppercase));
    }
    assert_eq!(low, ('A'..='Z').collect::<String>());
    // The threshold of ten seconds at ten dequeues a second, then every fourth.
    assert!(dequeues <= 101 + 4 * 26, "{dequeues}");
}

/// A queue whose keys belong to the group of their case.
fn fair() -> Bench {
    let mut bench = Bench::new();
    let group = |key: &char| u64::from(key.is_ascii_uppercase());
    bench.queue = QueueCore::fair(Ageing::new(10 * SECOND, 4), group);
    bench
}

#[test]
fn groups_take_turns_however_many_keys_one_of_them_has() {
    let mut bench = fair();
    bench.add("abcdefgh");
    bench.add("AB");
    assert_eq!(bench.drain(), "aAbBcdefgh");
    // One that comes later has the next turn but one.
    bench.add("abcd");
    let item = bench.get().unwrap();
    bench.done(&item);
    bench.add("A");
    assert_eq!(bench.drain(), "bAcd");
}

#[test]
fn groups_take_turns_within_a_priority() {
    let mut bench = fair();
    for (keys, priority) in [
        ("abc", Priority::Low),
        ("ABC", Priority::High),
        ("d", Priority::High),
    ] {
        for key in keys.chars() {
            bench.add_with(key, now_add().priority(priority));
        }
    }
    assert_eq!(bench.drain(), "AdBCabc");
    // A key that rises leaves its turn to the others of its group.
    bench.add_with('a', now_add().priority(Priority::Low));
    bench.add_with('b', now_add().priority(Priority::Low));
    bench.add_with('A', now_add().priority(Priority::Low));
    bench.add("a");
    assert_eq!(bench.drain(), "abA");
}

/// Groups letters as they are, and has no answer for `x`.
fn broken() -> Bench {
    let mut bench = Bench::new();
    let group = |key: &char| match key {
        'x' => panic!("no idea"),
        key => u64::from(*key),
    };
    bench.queue = QueueCore::fair(Ageing::new(10 * SECOND, 4), group);
    bench
}

#[test]
fn a_group_function_that_panics_loses_no_key_however_the_key_gets_in_line() {
    let mut bench = broken();
    bench.add("axb");
    assert_eq!(bench.drain(), "axb", "added");
    bench.add_with('x', Add::after(SECOND));
    bench.add_with('c', Add::after(SECOND));
    bench.advance(SECOND);
    assert_eq!(bench.drain(), "xc", "delayed");
    bench.queue.drain(bench.now);
    bench.add("xd");
    bench.queue.resume(bench.now);
    assert_eq!(bench.drain(), "xd", "kept aside during a drain");
}

#[test]
fn ageing_returns_its_threshold_and_share() {
    let ageing = Ageing::new(10 * SECOND, 4);
    assert_eq!((ageing.threshold(), ageing.share()), (10 * SECOND, 4));
    assert_eq!(Ageing::new(SECOND, 0).share(), 1);
}

//! What a snapshot shows, and what it leaves out.

use std::time::Duration;

use super::bench::{Bench, SECOND, lane, now_add};
use crate::*;

fn keys(snapshot: &QueueSnapshot<char>) -> String {
    snapshot.keys.iter().map(|each| each.key).collect()
}

#[test]
fn keys_come_in_the_order_in_which_they_are_due() {
    let mut bench = Bench::new();
    bench.add("p");
    let item = bench.get().unwrap();
    bench.add_with('e', Add::after(9 * SECOND));
    bench.add_with('d', Add::after(5 * SECOND));
    bench.add_with('c', now_add().priority(Priority::Low));
    bench.add("b");
    bench.add_with('a', now_add().priority(Priority::High));
    let snapshot = bench.queue.snapshot(10, bench.now);
    assert_eq!((keys(&snapshot).as_str(), snapshot.total), ("abcpde", 6));
    let states: Vec<_> = snapshot.keys.iter().map(|each| each.state).collect();
    let (ready, delayed) = (KeyState::Ready, KeyState::Delayed);
    assert_eq!(
        states,
        [ready, ready, ready, KeyState::Processing, delayed, delayed]
    );
    assert_eq!(keys(&bench.queue.snapshot(2, bench.now)), "ab");
    assert_eq!(keys(&bench.queue.snapshot(5, bench.now)), "abcpd");
    bench.done(&item);
    assert_eq!(bench.drain(), "abc");
}

#[test]
fn lanes_are_shown_with_their_times_and_failures() {
    let mut bench = Bench::new();
    bench.add_with('a', now_add().lanes(lane(1)));
    let item = bench.get().unwrap();
    let failed = Verdict::Failed {
        after: 8 * SECOND,
        payload: vec![],
        priority: None,
    };
    bench.done_with(&item, &[(lane(1), failed)]);
    bench.add_with('a', Add::after(3 * SECOND).lanes(lane(2)));
    bench.advance(SECOND);
    let seen = bench.queue.queued(&'a', bench.now).unwrap();
    let lanes: Vec<_> = seen.lanes.iter().map(|l| (l.lane, l.due_in)).collect();
    assert_eq!(lanes, [(lane(2), 2 * SECOND), (lane(1), 7 * SECOND)]);
    assert_eq!(
        (seen.failures_of(lane(1)), seen.failures_of(lane(2))),
        (1, 0)
    );
    assert_eq!(
        (seen.state, seen.due_for),
        (KeyState::Delayed, Duration::ZERO)
    );
    assert!(bench.queue.queued(&'b', bench.now).is_none());

    bench.add_with('a', now_add().lanes(lane(3)));
    bench.advance(SECOND);
    let seen = bench.queue.queued(&'a', bench.now).unwrap();
    let lanes: Vec<_> = seen.lanes.iter().map(|l| (l.lane, l.due_in)).collect();
    assert_eq!(lanes[0], (lane(3), Duration::ZERO));
    assert_eq!((seen.state, seen.due_for), (KeyState::Ready, SECOND));
}

#[test]
fn a_key_in_processing_shows_what_is_due_again() {
    let mut bench = Bench::new();
    bench.add("a");
    let item = bench.get().unwrap();
    bench.advance(SECOND);
    let seen = bench.queue.queued(&'a', bench.now).unwrap();
    assert_eq!((seen.processing_for, seen.lanes.len()), (Some(SECOND), 0));
    bench.add_with('a', now_add().priority(Priority::High));
    bench.advance(SECOND);
    let seen = bench.queue.queued(&'a', bench.now).unwrap();
    assert_eq!(seen.processing_for, Some(2 * SECOND));
    assert_eq!((seen.due_for, seen.priority), (SECOND, Priority::High));
    assert_eq!(seen.lanes[0].lane, LaneId::WHOLE);
    bench.done(&item);
}

#[test]
fn a_drain_shows_what_waits_for_its_end() {
    let mut bench = Bench::new();
    bench.add("a");
    bench.add_with('d', Add::after(SECOND));
    bench.queue.drain(bench.now);
    bench.add("b");
    bench.advance(2 * SECOND);
    let snapshot = bench.queue.snapshot(10, bench.now);
    assert_eq!(keys(&snapshot), "abd");
    assert_eq!(snapshot.keys[1].state, KeyState::Deferred);
    // Its delay has ended, and it is not dequeued before the end of the drain either.
    assert_eq!(snapshot.keys[2].state, KeyState::Deferred);
    assert_eq!(snapshot.keys[2].due_for, SECOND);
}

#[test]
fn looking_changes_nothing() {
    let mut bench = Bench::new();
    bench.add_with('d', Add::after(SECOND));
    bench.advance(2 * SECOND);
    let snapshot = bench.queue.snapshot(10, bench.now);
    // No worker has looked for a key since the delay ended.
    assert_eq!(snapshot.keys[0].state, KeyState::Ready);
    assert_eq!(bench.queue.len(), 0);
    assert_eq!(bench.drain(), "d");
    let snapshot = bench.queue.snapshot(10, bench.now);
    assert_eq!((snapshot.keys.len(), snapshot.total), (0, 0));
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "an arbitrary origin of virtual time"
)]
fn at_most_so_many_deadlines_and_tickets_are_looked_at() {
    let now = std::time::Instant::now();
    let mut queue: QueueCore<usize, Vec<u32>> = QueueCore::new(Ageing::default());
    let most = 16_384;
    let many = 2 * most;
    for key in 0..many {
        queue.add(key, Add::now(), now);
        queue.add(many + key, Add::after(SECOND), now);
    }
    let snapshot = queue.snapshot(usize::MAX, now);
    assert_eq!(snapshot.total, 2 * many);
    assert_eq!(snapshot.keys.len(), 2 * most);
    assert_eq!((snapshot.keys[0].key, snapshot.keys[7].key), (0, 7));
}

#[test]
fn waiting_key_is_shown_as_ready_once_its_delay_ends() {
    let mut bench = Bench::limited(1);
    bench.add("ab");
    let (_, _a) = bench.enter();
    bench.wait();
    bench.add_with('b', Add::after(SECOND).lanes(lane(2)));
    let state = |bench: &Bench| bench.queue.queued(&'b', bench.now).unwrap().state;
    assert_eq!(state(&bench), KeyState::Waiting);
    bench.advance(SECOND);
    assert_eq!(state(&bench), KeyState::Ready);
}

#[test]
fn priority_of_a_delay_is_shown_only_while_nothing_is_due() {
    let mut bench = Bench::new();
    let priority = |bench: &Bench| bench.queue.queued(&'a', bench.now).unwrap().priority;
    let high = || Add::after(SECOND).lanes(lane(2)).priority(Priority::High);
    bench.add_with('a', now_add().lanes(lane(1)));
    bench.add_with('a', high());
    assert_eq!(priority(&bench), Priority::Normal, "ready");
    let item = bench.get().unwrap();
    assert_eq!(priority(&bench), Priority::Normal, "in processing");
    bench.done_with(&item, &[(lane(1), Verdict::Done)]);
    assert_eq!(priority(&bench), Priority::High, "delayed");
}

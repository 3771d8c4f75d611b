//! What client-go's tests demand of a work queue, on paused time.

use std::time::Duration;

use lariat_queue::{Add, Exponential, LaneId, WorkQueue};
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use crate::{Queue, SECOND, get_and_done};

#[tokio::test(start_paused = true)]
async fn a_second_worker_waits_until_a_key_is_done() {
    let queue = Queue::default();
    queue.add(1, Add::now());
    let work = queue.get().await.unwrap();
    queue.add(1, Add::now());
    queue.add(1, Add::now());
    let mut second = JoinSet::new();
    let item = queue.clone();
    second.spawn(async move { get_and_done(&item).await });
    time::sleep(SECOND).await;
    assert!(second.try_join_next().is_none());
    work.done();
    assert_eq!(second.join_all().await, [1]);
    assert_eq!(queue.stats().dequeued, 2, "two adds merged into one");
}

#[tokio::test(start_paused = true)]
async fn a_drain_on_shutdown_waits_for_keys_with_workers_and_for_what_they_were_added_again() {
    let queue = Queue::default();
    queue.add(1, Add::now());
    let work = queue.get().await.unwrap();
    queue.add(1, Add::now());
    let mut drain = JoinSet::new();
    let draining = queue.clone();
    drain.spawn(async move { draining.shut_down_with_drain().await });
    time::sleep(SECOND).await;
    assert!(drain.try_join_next().is_none(), "a key is with a worker");
    work.done();
    time::sleep(SECOND).await;
    assert!(drain.try_join_next().is_none(), "it came again");
    assert_eq!(get_and_done(&queue).await, 1);
    drain.join_all().await;
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_plain_shutdown_waits_for_no_worker_and_ends_the_wait_of_a_drain() {
    let queue = Queue::default();
    queue.add(1, Add::now());
    let work = queue.get().await.unwrap();
    let mut drain = JoinSet::new();
    let draining = queue.clone();
    drain.spawn(async move { draining.shut_down_with_drain().await });
    time::sleep(SECOND).await;
    assert!(drain.try_join_next().is_none());
    queue.shut_down();
    drain.join_all().await;
    work.done();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_without_drain_ends_workers_although_keys_are_ready() {
    let queue = Queue::default();
    queue.add_all((0..10).map(|key| (key, Add::now())));
    let work = queue.get().await.unwrap();
    queue.shut_down_now();
    work.done();
    assert!(queue.get().await.is_none());
    assert_eq!(queue.stats().dequeued, 1);
}

#[tokio::test(start_paused = true)]
async fn a_rate_limited_add_comes_after_the_delay_of_its_key() {
    let curve = Exponential::new(Duration::from_millis(1), SECOND);
    let queue: Queue = WorkQueue::builder().limiter(curve).build();
    for expected in [1, 2, 4, 8, 16] {
        let start = Instant::now();
        queue.add_rate_limited(1, Add::now());
        let work = queue.get().await.unwrap();
        assert_eq!(start.elapsed().as_millis(), expected);
        // Another lane is delayed, so that the key is not removed.
        queue.add(1, Add::after(3600 * SECOND));
        work.done_with([]);
    }
    assert_eq!(queue.failures(&1, LaneId::WHOLE), 5);

    // Another key has failures of its own, and forgetting resets the delay.
    let start = Instant::now();
    queue.add_rate_limited(2, Add::now());
    assert_eq!(get_and_done(&queue).await, 2);
    assert_eq!(start.elapsed().as_millis(), 1);
    queue.forget(&1, LaneId::WHOLE);
    let start = Instant::now();
    queue.add_rate_limited(1, Add::now());
    assert_eq!(get_and_done(&queue).await, 1);
    assert_eq!(start.elapsed().as_millis(), 1);
}

#[tokio::test(start_paused = true)]
async fn reopening_ends_the_wait_of_a_drain() {
    let queue = Queue::default();
    queue.add(1, Add::now());
    let work = queue.get().await.unwrap();
    let mut drain = JoinSet::new();
    let draining = queue.clone();
    drain.spawn(async move { draining.shut_down_with_drain().await });
    time::sleep(SECOND).await;
    work.done();
    queue.reopen();
    drain.join_all().await;
    queue.add(2, Add::now());
    assert_eq!(get_and_done(&queue).await, 2);
}

#[tokio::test(start_paused = true)]
async fn work_may_be_dropped_and_the_queue_be_asked_while_keys_are_collected() {
    let queue = Queue::default();
    queue.add_all((0..3).map(|key| (key, Add::now())));
    let works = [queue.try_get(), queue.try_get()];
    queue.add_all(works.into_iter().flatten().map(|work| {
        assert!(queue.len() <= 3);
        (work.key() + 10, Add::now())
    }));
    assert_eq!(queue.len(), 5);
}

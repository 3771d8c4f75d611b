//! Many producers and many workers, on real time and threads: nothing is lost, and no key is processed
//! by two workers.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lariat_queue::{Add, Priority, WorkQueue};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::Queue;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_producers_and_ten_workers_handle_every_key() {
    const PRODUCERS: u32 = 50;
    const KEYS: u32 = 200;
    let queue = Queue::default();
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        let queue = queue.clone();
        producers.spawn(async move {
            for key in 0..KEYS {
                let delay = Duration::from_micros(u64::from(key % 3) * 500);
                queue.add((producer % 10) * KEYS + key, Add::after(delay));
                tokio::task::yield_now().await;
            }
        });
    }
    let mut workers = JoinSet::new();
    let processing = Arc::new(Mutex::new(HashSet::new()));
    for _ in 0..10 {
        let (queue, processing) = (queue.clone(), Arc::clone(&processing));
        workers.spawn(async move {
            let mut seen = HashSet::new();
            while let Some(work) = queue.get().await {
                seen.insert(*work.key());
                assert!(processing.lock().insert(*work.key()), "one worker per key");
                tokio::task::yield_now().await;
                assert!(processing.lock().remove(work.key()));
                work.done();
            }
            seen
        });
    }
    producers.join_all().await;
    while queue.stats().delayed + queue.stats().depth() + queue.stats().processing > 0 {
        tokio::task::yield_now().await;
    }
    queue.shut_down();
    let seen: HashSet<u32> = workers.join_all().await.into_iter().flatten().collect();
    assert_eq!(seen.len() as u32, 10 * KEYS);
    queue.add(0, Add::now());
    assert!(
        queue.get().await.is_none(),
        "nothing comes after a shutdown"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keys_added_while_they_are_processed_come_again() {
    let queue = Queue::default();
    let counts: Arc<Vec<AtomicUsize>> = Arc::new((0..20).map(|_| AtomicUsize::new(0)).collect());
    let mut workers = JoinSet::new();
    for _ in 0..10 {
        let (queue, counts) = (queue.clone(), Arc::clone(&counts));
        workers.spawn(async move {
            while let Some(work) = queue.get().await {
                // Each key is added again by its worker until it has come three times.
                if counts[*work.key() as usize].fetch_add(1, Ordering::Relaxed) < 2 {
                    queue.add(*work.key(), Add::now());
                }
                tokio::task::yield_now().await;
                work.done();
            }
        });
    }
    queue.add_all((0..20).map(|key| (key, Add::now())));
    while counts.iter().any(|count| count.load(Ordering::Relaxed) < 3) {
        tokio::task::yield_now().await;
    }
    queue.shut_down_with_drain().await;
    workers.join_all().await;
    assert!(
        counts
            .iter()
            .all(|count| count.load(Ordering::Relaxed) == 3)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_workers_get_what_twenty_producers_add_at_all_priorities() {
    let queue = Queue::default();
    let mut workers = JoinSet::new();
    for _ in 0..100 {
        let queue = queue.clone();
        workers.spawn(async move {
            let mut keys = HashSet::new();
            while let Some(work) = queue.get().await {
                keys.insert(*work.key());
                work.done();
            }
            keys
        });
    }
    let mut producers = JoinSet::new();
    for producer in 0..20_u32 {
        let queue = queue.clone();
        producers.spawn(async move {
            let levels = [Priority::Low, Priority::Normal, Priority::High];
            for key in 0..1000 {
                let add = Add::now().priority(levels[key as usize % 3]);
                queue.add(producer * 1000 + key, add);
            }
        });
    }
    producers.join_all().await;
    queue.shut_down_with_drain().await;
    let keys: HashSet<u32> = workers.join_all().await.into_iter().flatten().collect();
    assert_eq!(keys.len(), 20_000);
    let stats = queue.stats();
    assert_eq!((stats.depth(), stats.processing, stats.delayed), (0, 0, 0));
}

/// A key whose hash is made by code that may fail.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Odd(u32);

impl Hash for Odd {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert_ne!(self.0, 2, "a key without a hash");
        self.0.hash(state);
    }
}

#[test]
fn keys_are_hashed_before_the_first_of_them_is_added() {
    let queue: WorkQueue<Odd> = WorkQueue::default();
    let add = || queue.add_all((0..4).map(|key| (Odd(key), Add::now())));
    assert!(catch_unwind(AssertUnwindSafe(add)).is_err());
    assert_eq!(queue.len(), 0, "outside the lock, and all or none");
}

#[test]
fn a_group_function_that_panics_does_not_lose_the_rest_of_a_batch() {
    let queue: Queue = WorkQueue::builder()
        .fair_by(|key| match key {
            2 => panic!("no idea"),
            key => u64::from(*key),
        })
        .build();
    queue.add_all((0..4).map(|key| (key, Add::now())));
    assert_eq!(queue.len(), 4);
}

//! Lariat's queue, with priorities, ageing and lanes as they are by default.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lariat_queue::{Add, LaneId, Payload, Verdict, Work, WorkQueue};
use tokio::task::JoinSet;

use super::load::{Delayed, Key, TASKS, one_thread as one_thread_runtime, share, two_threads};

/// Gives a key back and gets the next, as a controller's worker does.
async fn next<P: Payload>(
    queue: &WorkQueue<Key, P>,
    work: Option<Work<Key, P>>,
) -> Option<Work<Key, P>> {
    let done = [(LaneId::WHOLE, Verdict::Done)];
    match work.and_then(|work| work.done_and_try_get(done)) {
        Some(next) => {
            // As a controller's worker does: without it this loop would never yield to other tasks.
            tokio::task::consume_budget().await;
            Some(next)
        }
        None => queue.get().await,
    }
}

/// Adds all keys, then takes and finishes them.
pub(super) fn one_thread<P: Payload>(keys: Vec<Key>) -> impl FnOnce() {
    let runtime = one_thread_runtime();
    move || {
        runtime.block_on(async {
            let queue: WorkQueue<Key, P> = WorkQueue::default();
            for key in &keys {
                queue.add(Key::clone(key), Add::now());
            }
            let mut work = None;
            for _ in &keys {
                work = next(&queue, work).await;
                assert!(work.is_some(), "there are more");
            }
        });
    }
}

/// Producers add while workers dequeue, until each add had a dequeue after it.
pub(super) fn many(keys: Vec<Key>, n: usize) -> impl FnOnce() {
    let runtime = two_threads();
    let keys = Arc::new(keys);
    move || {
        runtime.block_on(async {
            let queue: WorkQueue<Key> = WorkQueue::default();
            let mut workers = JoinSet::new();
            let taken = Arc::new(AtomicUsize::new(0));
            for _ in 0..TASKS {
                let (queue, taken) = (queue.clone(), Arc::clone(&taken));
                workers.spawn(async move {
                    let mut work = next(&queue, None).await;
                    while work.is_some() {
                        taken.fetch_add(1, Ordering::Relaxed);
                        work = next(&queue, work).await;
                    }
                });
            }
            let mut producers = JoinSet::new();
            for producer in 0..TASKS {
                let (queue, adds) = (queue.clone(), share(&keys, n, producer));
                producers.spawn(async move {
                    for (at, key) in adds.enumerate() {
                        queue.add(key, Add::now());
                        // A producer in a program waits for its watch now and then.
                        if at % 1024 == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                });
            }
            producers.join_all().await;
            // It waits until all keys were processed, so the run ends with the last of them.
            queue.shut_down_with_drain().await;
            workers.join_all().await;
            assert!(taken.load(Ordering::Relaxed) >= keys.len().min(n));
        });
    }
}

/// Adds all keys delayed, and notes when each was dequeued.
pub(super) fn delayed(delayed: &Arc<Delayed>) {
    let runtime = two_threads();
    runtime.block_on(async {
        let queue: WorkQueue<Key> = WorkQueue::default();
        let mut worker = JoinSet::new();
        let (taken, noted) = (queue.clone(), Arc::clone(delayed));
        worker.spawn(async move {
            let mut work = None;
            for _ in &noted.adds {
                work = next(&taken, work).await;
                noted.came(work.as_ref().expect("it is open").key());
            }
        });
        let add = |key, delay| queue.add(key, Add::after(delay));
        delayed.feed(add).await;
        worker.join_all().await;
    });
}

/// As large as what a controller lets travel with a key: why it is here.
#[derive(Debug, Clone, Default)]
pub(super) struct Causes([u64; 6]);

impl Payload for Causes {
    fn merge(&mut self, later: Self) {
        for (mine, theirs) in self.0.iter_mut().zip(later.0) {
            *mine = mine.wrapping_add(theirs);
        }
    }
}

/// Lets keys wait in the queue.
pub(super) fn wait<P: Payload>(keys: Vec<Key>) -> WorkQueue<Key, P> {
    let queue = WorkQueue::default();
    for key in keys {
        queue.add(key, Add::now());
    }
    queue
}

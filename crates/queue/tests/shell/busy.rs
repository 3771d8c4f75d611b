//! Workers that give a key back and get the next in one step.

use lariat_queue::{Add, LaneId, Verdict};
use tokio::task::JoinSet;

use crate::Queue;

#[tokio::test(start_paused = true)]
async fn a_busy_worker_gives_back_and_gets_in_one_step() {
    let queue = Queue::default();
    for key in [1, 2] {
        queue.add(key, Add::now());
    }
    let work = queue.get().await.unwrap();
    queue.add(1, Add::now());
    let done = || [(LaneId::WHOLE, Verdict::Done)];
    let work = work.done_and_try_get(done()).unwrap();
    assert_eq!(*work.key(), 2);
    let work = work.done_and_try_get(done()).unwrap();
    assert_eq!(*work.key(), 1, "it was added while it was processed");
    assert!(work.done_and_try_get(done()).is_none());
    assert_eq!(queue.stats().processing, 0);
    queue.add(3, Add::now());
    drop(queue.get().await.unwrap().done_and_try_get(done()));
    queue.add(4, Add::now());
    queue.add(5, Add::now());
    let next = queue.get().await.unwrap().done_and_try_get(done());
    drop(next);
    assert_eq!(
        *queue.try_get().unwrap().key(),
        5,
        "a dropped one is due again"
    );
}

/// The worker that ends a drain with this step has nothing to wait for, and the others are woken.
#[tokio::test(start_paused = true)]
async fn giving_back_and_getting_ends_a_shutdown_for_all_workers() {
    let queue = Queue::default();
    queue.add(1, Add::now());
    let work = queue.get().await.unwrap();
    let (other, mut others) = (queue.clone(), JoinSet::new());
    others.spawn(async move { other.get().await.is_none() });
    tokio::task::yield_now().await;
    queue.shut_down();
    let drained = queue.shut_down_with_drain();
    assert!(work.done_and_try_get([]).is_none());
    assert!(others.join_next().await.unwrap().unwrap());
    drained.await;
}

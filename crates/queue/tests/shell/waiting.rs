//! Waiting workers: which are woken, when, and what a cancelled one leaves behind.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use lariat_queue::{Add, LaneId};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use crate::{Queue, SECOND, get_and_done};

/// Polls a future once with a waker that does nothing.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_gets_a_delayed_key_at_its_time() {
    let queue = Queue::default();
    let start = Instant::now();
    queue.add(1, Add::after(30 * SECOND));
    let work = queue.get().await.unwrap();
    assert_eq!((*work.key(), start.elapsed()), (1, 30 * SECOND));
    work.done();
}

#[tokio::test(start_paused = true)]
async fn an_earlier_deadline_wakes_a_worker_that_sleeps_until_a_later_one() {
    let queue = Queue::default();
    let start = Instant::now();
    queue.add(1, Add::after(30 * SECOND));
    let mut workers = JoinSet::new();
    for _ in 0..2 {
        let queue = queue.clone();
        workers.spawn(async move { get_and_done(&queue).await });
    }
    time::sleep(SECOND).await;
    queue.add(2, Add::after(5 * SECOND));
    assert_eq!(workers.join_next().await.unwrap().unwrap(), 2);
    assert_eq!(start.elapsed(), 6 * SECOND);
    assert_eq!(workers.join_next().await.unwrap().unwrap(), 1);
    assert_eq!(start.elapsed(), 30 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn when_the_worker_that_owns_the_timer_is_cancelled_another_takes_it_over() {
    let queue = Queue::default();
    queue.add(1, Add::after(30 * SECOND));
    let mut holder = Box::pin(queue.get());
    assert!(poll_once(holder.as_mut()).is_pending());
    let mut other = Box::pin(queue.get());
    assert!(poll_once(other.as_mut()).is_pending());
    drop(holder);
    assert_eq!(*other.await.unwrap().key(), 1);
}

/// Gets keys as they come and processes each for an hour.
async fn hold_each(queue: Queue, item: Arc<Mutex<Vec<(u32, Duration)>>>, start: Instant) {
    while let Some(work) = queue.get().await {
        item.lock().push((*work.key(), start.elapsed()));
        time::sleep(3600 * SECOND).await;
        work.done();
    }
}

#[tokio::test(start_paused = true)]
async fn keys_added_together_reach_every_waiting_worker() {
    let (queue, item, start) = (Queue::default(), Arc::default(), Instant::now());
    let mut workers = JoinSet::new();
    for _ in 0..3 {
        workers.spawn(hold_each(queue.clone(), Arc::clone(&item), start));
    }
    time::sleep(SECOND).await;
    queue.add_all((0..3).map(|key| (key, Add::now())));
    time::sleep(SECOND).await;
    assert_eq!(*item.lock(), [0, 1, 2].map(|key| (key, SECOND)));
}

#[tokio::test(start_paused = true)]
async fn when_the_worker_that_owns_the_timer_gets_a_key_another_takes_the_timer_over() {
    let (queue, item, start) = (Queue::default(), Arc::default(), Instant::now());
    queue.add(1, Add::after(30 * SECOND));
    let mut workers = JoinSet::new();
    for _ in 0..2 {
        workers.spawn(hold_each(queue.clone(), Arc::clone(&item), start));
        time::sleep(SECOND).await;
    }
    queue.add(2, Add::now());
    time::sleep(60 * SECOND).await;
    assert_eq!(*item.lock(), [(2, 2 * SECOND), (1, 30 * SECOND)]);
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_woken_get_loses_nothing() {
    let queue = Queue::default();
    let mut first = Box::pin(queue.get());
    let mut second = Box::pin(queue.get());
    assert!(poll_once(first.as_mut()).is_pending());
    assert!(poll_once(second.as_mut()).is_pending());
    queue.add(1, Add::now());
    // The wake-up went to the worker that joined last, which is dropped before it looks.
    drop(second);
    let work = time::timeout(SECOND, first)
        .await
        .expect("the wake-up was passed on")
        .unwrap();
    assert_eq!(*work.key(), 1);
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_every_waiting_worker_once_all_keys_are_done() {
    let queue = Queue::default();
    queue.add(1, Add::now());
    let work = queue.get().await.unwrap();
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let queue = queue.clone();
        workers.spawn(async move { queue.get().await.is_none() });
    }
    time::sleep(SECOND).await;
    queue.shut_down();
    time::sleep(SECOND).await;
    assert!(
        workers.try_join_next().is_none(),
        "a key in processing may still come back"
    );
    work.done();
    assert_eq!(workers.join_all().await, [true; 4]);
    queue.add(2, Add::now());
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn work_that_is_dropped_comes_back() {
    let queue = Queue::default();
    queue.add(1, Add::now());
    drop(queue.get().await.unwrap());
    let panicking = queue.clone();
    let mut worker = JoinSet::new();
    worker.spawn(async move {
        let _work = panicking.get().await.unwrap();
        panic!("a worker that panics");
    });
    assert!(worker.join_next().await.unwrap().unwrap_err().is_panic());
    assert_eq!(*queue.get().await.unwrap().key(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_retry_backs_off_and_success_forgets() {
    let queue = Queue::default();
    queue.add(1, Add::now());
    for expected in [5, 10, 20] {
        let work = queue.get().await.unwrap();
        let start = Instant::now();
        work.retry();
        let work = queue.get().await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(expected));
        drop(work);
    }
    let work = queue.get().await.unwrap();
    assert_eq!(work.failures(LaneId::WHOLE), 3);
    work.done();
    queue.add(1, Add::now());
    assert_eq!(queue.get().await.unwrap().failures(LaneId::WHOLE), 0);
}

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_with_nothing_to_do_is_not_woken() {
    let queue = Queue::default();
    for key in 0..100 {
        queue.add(key, Add::after(3600 * SECOND));
    }
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut get = pin!(queue.get());
    let poll = get.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(poll.is_pending());
    let before = wakes.0.load(Ordering::Relaxed);
    time::sleep(1800 * SECOND).await;
    assert_eq!(wakes.0.load(Ordering::Relaxed), before);
}

#[tokio::test(start_paused = true)]
async fn each_key_wakes_one_worker() {
    let queue = Queue::default();
    let wakes: Vec<Arc<Wakes>> = (0..5).map(|_| Arc::default()).collect();
    let mut gets: Vec<_> = wakes.iter().map(|_| Box::pin(queue.get())).collect();
    for (get, wakes) in gets.iter_mut().zip(&wakes) {
        let waker = Waker::from(Arc::clone(wakes));
        assert!(
            get.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    let woken = || {
        wakes
            .iter()
            .filter(|wakes| wakes.0.load(Ordering::Relaxed) > 0)
            .count()
    };
    queue.add(1, Add::now());
    assert_eq!(woken(), 1);
    queue.add(1, Add::now());
    assert_eq!(woken(), 1, "nothing new is due");
    // The woken worker may run late, so others are woken for other keys.
    queue.add(2, Add::now());
    assert_eq!(woken(), 2);
}

#[tokio::test(start_paused = true)]
async fn workers_end_with_a_drain_and_take_again_after_it() {
    let queue = Queue::default();
    let mut workers = JoinSet::new();
    for _ in 0..2 {
        let queue = queue.clone();
        workers.spawn(async move { queue.get().await.is_none() });
    }
    time::sleep(SECOND).await;
    queue.drain();
    assert_eq!(workers.join_all().await, [true; 2]);
    queue.add(1, Add::now());
    queue.add(2, Add::after(SECOND));
    assert!(queue.get().await.is_none());
    time::sleep(10 * SECOND).await;

    let start = Instant::now();
    queue.add(3, Add::after(5 * SECOND));
    queue.resume();
    let mut keys = vec![get_and_done(&queue).await, get_and_done(&queue).await];
    keys.sort_unstable();
    assert_eq!((keys, start.elapsed()), (vec![1, 2], Duration::ZERO));
    assert_eq!(
        (get_and_done(&queue).await, start.elapsed()),
        (3, 5 * SECOND)
    );
}

#[test]
fn a_key_whose_verdicts_panic_is_given_back() {
    let queue = Queue::default();
    queue.add(1, Add::now());
    for is_last in [false, true] {
        let work = queue.try_get().expect("the key is due");
        let verdicts = std::iter::from_fn(|| panic!("no verdict"));
        let done = AssertUnwindSafe(|| {
            if is_last {
                work.done_with(verdicts);
            } else {
                drop(work.done_and_try_get(verdicts));
            }
        });
        assert!(catch_unwind(done).is_err());
    }
    assert_eq!(queue.len(), 1, "it is due again");
}

#[tokio::test(start_paused = true)]
async fn a_limiter_that_panics_delays_its_key_by_thirty_seconds_and_nothing_else() {
    let broken = |failures: u32| -> Duration { panic!("no delay for {failures} failures") };
    let queue: Queue = lariat_queue::WorkQueue::builder().limiter(broken).build();
    let start = Instant::now();
    queue.add_rate_limited(1, Add::now());
    queue.add(2, Add::now());
    assert_eq!(get_and_done(&queue).await, 2);
    let work = queue.get().await.unwrap();
    assert_eq!((*work.key(), start.elapsed()), (1, 30 * SECOND));
    work.done();
    assert_eq!(queue.len(), 0, "no entry is left");
}

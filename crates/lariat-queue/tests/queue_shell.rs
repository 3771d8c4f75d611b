//! The async shell through its public API, on paused time unless said otherwise.

use std::collections::HashSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use lariat_queue::{Add, LaneId, Verdict, Work, WorkQueue};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

const SECOND: Duration = Duration::from_secs(1);

type Queue = WorkQueue<u32>;

/// Polls a future once with a waker that does nothing.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

async fn take_and_finish(queue: &Queue) -> u32 {
    let work = queue.take().await.expect("the queue is open");
    let key = *work.key();
    work.done();
    key
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_gets_a_delayed_key_at_its_time() {
    let queue = Queue::default();
    let start = Instant::now();
    queue.add(1, Add::after(30 * SECOND));
    let work = queue.take().await.unwrap();
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
        workers.spawn(async move { take_and_finish(&queue).await });
    }
    time::sleep(SECOND).await;
    queue.add(2, Add::after(5 * SECOND));
    assert_eq!(workers.join_next().await.unwrap().unwrap(), 2);
    assert_eq!(start.elapsed(), 6 * SECOND);
    assert_eq!(workers.join_next().await.unwrap().unwrap(), 1);
    assert_eq!(start.elapsed(), 30 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn when_the_worker_that_holds_the_timer_is_cancelled_another_takes_it_over() {
    let queue = Queue::default();
    queue.add(1, Add::after(30 * SECOND));
    let mut holder = Box::pin(queue.take());
    assert!(poll_once(holder.as_mut()).is_pending());
    let mut other = Box::pin(queue.take());
    assert!(poll_once(other.as_mut()).is_pending());
    drop(holder);
    assert_eq!(*other.await.unwrap().key(), 1);
}

/// Takes keys as they come and holds each for an hour.
async fn hold_each(queue: Queue, taken: Arc<Mutex<Vec<(u32, Duration)>>>, start: Instant) {
    while let Some(work) = queue.take().await {
        taken.lock().push((*work.key(), start.elapsed()));
        time::sleep(3600 * SECOND).await;
        work.done();
    }
}

#[tokio::test(start_paused = true)]
async fn keys_added_together_reach_every_waiting_worker() {
    let (queue, taken, start) = (Queue::default(), Arc::default(), Instant::now());
    let mut workers = JoinSet::new();
    for _ in 0..3 {
        workers.spawn(hold_each(queue.clone(), Arc::clone(&taken), start));
    }
    time::sleep(SECOND).await;
    queue.add_all((0..3).map(|key| (key, Add::now())));
    time::sleep(SECOND).await;
    assert_eq!(*taken.lock(), [0, 1, 2].map(|key| (key, SECOND)));
}

#[tokio::test(start_paused = true)]
async fn when_the_worker_that_holds_the_timer_gets_a_key_another_takes_the_timer_over() {
    let (queue, taken, start) = (Queue::default(), Arc::default(), Instant::now());
    queue.add(1, Add::after(30 * SECOND));
    let mut workers = JoinSet::new();
    for _ in 0..2 {
        workers.spawn(hold_each(queue.clone(), Arc::clone(&taken), start));
        time::sleep(SECOND).await;
    }
    queue.add(2, Add::now());
    time::sleep(60 * SECOND).await;
    assert_eq!(*taken.lock(), [(2, 2 * SECOND), (1, 30 * SECOND)]);
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_woken_take_loses_nothing() {
    let queue = Queue::default();
    let mut first = Box::pin(queue.take());
    let mut second = Box::pin(queue.take());
    assert!(poll_once(first.as_mut()).is_pending());
    assert!(poll_once(second.as_mut()).is_pending());
    queue.add(1, Add::now());
    // The wake-up went to the first, which is dropped before it looks.
    drop(first);
    let work = time::timeout(SECOND, second)
        .await
        .expect("the wake-up was passed on")
        .unwrap();
    assert_eq!(*work.key(), 1);
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_every_waiting_worker_once_held_keys_are_back() {
    let queue = Queue::default();
    queue.add(1, Add::now());
    let held = queue.take().await.unwrap();
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let queue = queue.clone();
        workers.spawn(async move { queue.take().await.is_none() });
    }
    time::sleep(SECOND).await;
    queue.shut_down();
    time::sleep(SECOND).await;
    assert!(
        workers.try_join_next().is_none(),
        "a held key may still come back"
    );
    held.done();
    assert_eq!(workers.join_all().await, [true; 4]);
    queue.add(2, Add::now());
    assert!(queue.take().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn work_that_is_dropped_comes_back() {
    let queue = Queue::default();
    queue.add(1, Add::now());
    drop(queue.take().await.unwrap());
    let panicking = queue.clone();
    let mut worker = JoinSet::new();
    worker.spawn(async move {
        let _work = panicking.take().await.unwrap();
        panic!("a worker that panics");
    });
    assert!(worker.join_next().await.unwrap().unwrap_err().is_panic());
    assert_eq!(*queue.take().await.unwrap().key(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_retry_backs_off_and_success_forgets() {
    let queue = Queue::default();
    queue.add(1, Add::now());
    for expected in [5, 10, 20] {
        let work = queue.take().await.unwrap();
        let start = Instant::now();
        work.retry();
        let work = queue.take().await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(expected));
        drop(work);
    }
    let work = queue.take().await.unwrap();
    assert_eq!(work.failures(LaneId::WHOLE), 3);
    work.done();
    queue.add(1, Add::now());
    assert_eq!(queue.take().await.unwrap().failures(LaneId::WHOLE), 0);
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
    let mut take = pin!(queue.take());
    // The adds left one permit at most; after it is used up the worker sleeps.
    for _ in 0..2 {
        assert!(
            take.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    let before = wakes.0.load(Ordering::Relaxed);
    time::sleep(1800 * SECOND).await;
    assert_eq!(wakes.0.load(Ordering::Relaxed), before);
}

/// Real time and threads: nothing is lost and nothing handed out twice at once.
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
    let held = Arc::new(Mutex::new(HashSet::new()));
    for _ in 0..10 {
        let (queue, held) = (queue.clone(), Arc::clone(&held));
        workers.spawn(async move {
            let mut seen = HashSet::new();
            while let Some(work) = queue.take().await {
                seen.insert(*work.key());
                assert!(held.lock().insert(*work.key()), "one holder per key");
                tokio::task::yield_now().await;
                assert!(held.lock().remove(work.key()));
                work.done();
            }
            seen
        });
    }
    producers.join_all().await;
    while queue.stats().delayed + queue.stats().depth() + queue.stats().held > 0 {
        tokio::task::yield_now().await;
    }
    queue.shut_down();
    let seen: HashSet<u32> = workers.join_all().await.into_iter().flatten().collect();
    assert_eq!(seen.len() as u32, 10 * KEYS);
}

#[test]
fn public_types_are_send_and_sync() {
    fn check<T: Send + Sync + 'static>() {}
    check::<WorkQueue<String>>();
    check::<Work<String>>();
    check::<Add>();
    check::<Verdict<()>>();
}

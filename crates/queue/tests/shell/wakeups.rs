//! Under any order of polls, wake-ups, cancellations and adds: as long as a key is ready and a worker
//! waits, a waiting worker has been woken.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use lariat_queue::{Add, LaneId, Verdict, Work};
use proptest::prelude::*;
use tokio::time;

use crate::Queue;

#[derive(Debug, Clone)]
enum QueueAction {
    Add {
        key: u32,
        after: u64,
    },
    Wait,
    /// Polls a waiting worker, woken or not.
    Poll(usize),
    Cancel(usize),
    Done(usize),
    DoneAndTryGet(usize),
    GiveBack(usize),
    Advance(u64),
    Drain,
    Resume,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A call of `get` that was polled at least once and got nothing.
struct Waiting<'a> {
    get: Pin<Box<dyn Future<Output = Option<Work<u32>>> + 'a>>,
    woken: Arc<Flag>,
}

impl Waiting<'_> {
    fn poll(&mut self) -> Poll<Option<Work<u32>>> {
        self.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&self.woken));
        self.get.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

struct Crowd<'a> {
    queue: &'a Queue,
    waiting: Vec<Waiting<'a>>,
    holding: Vec<Work<u32>>,
}

impl Crowd<'_> {
    async fn step(&mut self, step: &QueueAction) {
        match *step {
            QueueAction::Add { key, after } => {
                self.queue.add(key, Add::after(Duration::from_secs(after)));
            }
            QueueAction::Wait => {
                let queue = self.queue;
                self.waiting.push(Waiting {
                    get: Box::pin(queue.get()),
                    woken: Arc::default(),
                });
                self.poll(self.waiting.len() - 1);
            }
            QueueAction::Poll(which) if !self.waiting.is_empty() => {
                self.poll(which % self.waiting.len())
            }
            QueueAction::Cancel(which) if !self.waiting.is_empty() => {
                drop(self.waiting.swap_remove(which % self.waiting.len()));
            }
            QueueAction::Done(which) if !self.holding.is_empty() => {
                self.holding.swap_remove(which % self.holding.len()).done();
            }
            QueueAction::DoneAndTryGet(which) if !self.holding.is_empty() => {
                let work = self.holding.swap_remove(which % self.holding.len());
                let done = [(LaneId::WHOLE, Verdict::Done)];
                self.holding.extend(work.done_and_try_get(done));
            }
            QueueAction::GiveBack(which) if !self.holding.is_empty() => {
                drop(self.holding.swap_remove(which % self.holding.len()));
            }
            QueueAction::Advance(seconds) => time::advance(Duration::from_secs(seconds)).await,
            QueueAction::Drain => self.queue.drain(),
            QueueAction::Resume => self.queue.resume(),
            _ => {}
        }
        // Timers have a granularity of a millisecond.
        time::advance(Duration::from_millis(2)).await;
    }

    fn poll(&mut self, which: usize) {
        if let Poll::Ready(item) = self.waiting[which].poll() {
            drop(self.waiting.swap_remove(which));
            self.holding.extend(item);
        }
    }

    fn check(&self) {
        let stats = self.queue.stats();
        let in_line = stats.depth() - stats.dirty;
        let woken = |waiting: &Waiting<'_>| waiting.woken.0.load(Ordering::Relaxed);
        if in_line > 0 && !self.waiting.is_empty() {
            assert!(
                self.waiting.iter().any(woken),
                "{in_line} keys, no worker woken"
            );
        }
    }

    /// Polls only woken workers, until every added key was dequeued.
    async fn finish(mut self) {
        self.queue.resume();
        if self.waiting.is_empty() {
            self.step(&QueueAction::Wait).await;
        }
        for _ in 0..200 {
            time::advance(Duration::from_secs(1)).await;
            self.holding.drain(..).for_each(Work::done);
            let woken = |waiting: &Waiting<'_>| waiting.woken.0.load(Ordering::Relaxed);
            while let Some(which) = self.waiting.iter().position(woken) {
                self.poll(which);
            }
            if self.waiting.is_empty() {
                self.step(&QueueAction::Wait).await;
            }
        }
        self.holding.drain(..).for_each(Work::done);
        let stats = self.queue.stats();
        assert_eq!((stats.depth(), stats.processing, stats.delayed), (0, 0, 0));
    }
}

fn step() -> impl Strategy<Value = QueueAction> {
    prop_oneof![
        6 => (0_u32..4, prop_oneof![Just(0), 1_u64..6]).prop_map(|(key, after)| QueueAction::Add { key, after }),
        4 => Just(QueueAction::Wait),
        4 => any::<usize>().prop_map(QueueAction::Poll),
        3 => any::<usize>().prop_map(QueueAction::Cancel),
        3 => any::<usize>().prop_map(QueueAction::Done),
        3 => any::<usize>().prop_map(QueueAction::DoneAndTryGet),
        1 => any::<usize>().prop_map(QueueAction::GiveBack),
        3 => (1_u64..4).prop_map(QueueAction::Advance),
        1 => Just(QueueAction::Drain),
        2 => Just(QueueAction::Resume),
    ]
}

proptest! {
    #[test]
    fn no_wake_up_is_lost(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let queue = Queue::default();
            let (waiting, holding) = (Vec::new(), Vec::new());
            let mut crowd = Crowd { queue: &queue, waiting, holding };
            for step in &steps {
                crowd.step(step).await;
                crowd.check();
            }
            crowd.finish().await;
        });
    }
}

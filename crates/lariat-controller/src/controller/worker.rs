//! Workers: get a key, run its handlers, give it back.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use lariat_lease::Permit;
use parking_lot::Mutex;
use tokio::task;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::core::ControllerCore;
use super::run::{Taken, run};

/// The two steps of a stop.
#[derive(Debug, Clone)]
pub(crate) struct Stopping {
    /// Finish what is due, then end.
    pub(crate) drain: CancellationToken,
    /// End now; calls under way are dropped.
    pub(crate) abort: CancellationToken,
}

impl Stopping {
    pub(crate) fn new() -> Self {
        Self {
            drain: CancellationToken::new(),
            abort: CancellationToken::new(),
        }
    }
}

/// How long a worker waits that may not call a handler, because the deadline of the lease has passed.
const FENCED_PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn work(core: Arc<ControllerCore>, stopping: Stopping) {
    let draining = Arc::new(stopping.drain.clone());
    let worker = core.activity().add_worker();
    let mut next = None;
    loop {
        let work = match next.take() {
            Some(work) => {
                // A worker that never waits would keep its thread from all other tasks.
                task::consume_budget().await;
                work
            }
            None => tokio::select! {
                biased;
                () = stopping.abort.cancelled() => return,
                () = core.ended().cancelled() => return,
                work = get(&core, &stopping) => match work {
                    Some(work) => work,
                    None => return,
                },
            },
        };
        if stopping.abort.is_cancelled() || core.ended().is_cancelled() {
            return;
        }
        if !core.may_call() {
            // The key stays in line. What ends the workers is about to come, or the answer to a renewal that was under way.
            drop(work);
            tokio::select! {
                biased;
                () = stopping.abort.cancelled() => return,
                () = core.ended().cancelled() => return,
                () = time::sleep(FENCED_PAUSE) => continue,
            }
        }
        let permit = match core.own_keys().permit(&core, &work) {
            Some(None) => {
                pass_on(&core, work);
                continue;
            }
            permit => permit.flatten(),
        };
        worker.begin(work.key());
        let run = run(&core, work, &draining, &worker);
        // The run comes first: one that is done at once waits for nothing, and its worker looks at `abort` above. The others are
        // polled while a handler waits; all workers of all kinds share what they wait for.
        let done = tokio::select! {
            biased;
            done = run => done,
            // The activity shows what was dropped.
            () = stopping.abort.cancelled() => return,
            // What is dropped goes back into the queue, and is passed on when it is handed out again.
            () = revoked(permit.as_ref()) => None,
        };
        worker.end();
        next = done.and_then(|(work, verdicts)| work.done_and_try_get(verdicts));
    }
}

/// Gives back a key that belongs to another member of the ring, which enqueues it when it gets it.
fn pass_on(core: &ControllerCore, work: Taken) {
    for lane in core.lanes().list().iter() {
        core.pass(lane, work.key());
    }
    work.done_with([]);
}

async fn revoked(permit: Option<&Permit>) {
    match permit {
        Some(permit) => permit.revoked().await,
        None => std::future::pending().await,
    }
}

/// Waits for the next key. While there is no handler keys stay in the queue, for one that may be registered.
async fn get(core: &ControllerCore, stopping: &Stopping) -> Option<Taken> {
    tokio::select! {
        biased;
        () = core.lanes().any() => {}
        () = stopping.drain.cancelled() => return None,
    }
    core.queue().get().await
}

/// What the workers of a kind are doing.
#[derive(Default)]
pub(crate) struct Activity(Mutex<Vec<Arc<Mutex<Option<InProgress>>>>>);

/// A key that a worker handles, or was handling when it was stopped.
#[derive(Debug, Clone)]
pub(crate) struct InProgress {
    pub(crate) key: ObjectKey,
    /// The handler that is being called, or is about to be.
    pub(crate) handler: Option<Arc<str>>,
    began: Instant,
}

impl InProgress {
    /// Returns how long the handler has taken by now.
    pub(crate) fn lasts(&self) -> Duration {
        self.began.elapsed()
    }
}

/// What one worker is doing.
pub(super) struct WorkerActivity<'a> {
    activity: &'a Activity,
    doing: Arc<Mutex<Option<InProgress>>>,
}

impl Activity {
    /// Adds a worker.
    pub(super) fn add_worker(&self) -> WorkerActivity<'_> {
        let doing = Arc::default();
        let mut activity = self.0.lock();
        // A stop that was dropped leaves what its workers were doing, and nothing asks for that any more.
        activity.retain(|worker| Arc::strong_count(worker) > 1);
        activity.push(Arc::clone(&doing));
        drop(activity);
        WorkerActivity {
            activity: self,
            doing,
        }
    }

    /// Returns what is under way, or was when workers were stopped.
    pub(crate) fn in_progress(&self) -> Vec<InProgress> {
        let activity = self.0.lock();
        activity
            .iter()
            .filter_map(|worker| worker.lock().clone())
            .collect()
    }

    /// Forgets what was under way when workers were stopped.
    pub(crate) fn clear(&self) {
        self.0.lock().retain(|worker| Arc::strong_count(worker) > 1);
    }
}

impl WorkerActivity<'_> {
    /// Notes that work on a key begins.
    pub(super) fn begin(&self, key: &ObjectKey) {
        *self.doing.lock() = Some(InProgress {
            key: key.clone(),
            handler: None,
            began: Instant::now(),
        });
    }

    /// Notes that a handler is about to be called.
    pub(super) fn calls(&self, handler: &Arc<str>) {
        if let Some(doing) = &mut *self.doing.lock() {
            doing.handler = Some(Arc::clone(handler));
            doing.began = Instant::now();
        }
    }

    /// Notes that work on the key has ended.
    pub(super) fn end(&self) {
        *self.doing.lock() = None;
    }
}

impl Drop for WorkerActivity<'_> {
    fn drop(&mut self) {
        // What was stopped in the middle is left to be seen.
        if self.doing.lock().is_none() || std::thread::panicking() {
            let mut activity = self.activity.0.lock();
            activity.retain(|worker| !Arc::ptr_eq(worker, &self.doing));
        }
    }
}

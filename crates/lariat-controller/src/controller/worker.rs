//! Workers: get a key, run its handlers, mark it done.

use std::sync::Arc;
use std::time::Duration;

use lariat_lease::Permit;
use tokio::task;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::core::ControllerCore;
use super::run::run;
use crate::payload::Taken;

/// The two stages of a stop.
#[derive(Debug, Clone)]
pub(crate) struct Stopping {
    /// Process what is due, then end.
    pub(crate) drain: CancellationToken,
    /// End immediately; running calls are dropped.
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

/// The pause of a worker that may not call handlers because the renew deadline has passed.
const FENCED_PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn work(core: Arc<ControllerCore>, stopping: Stopping) {
    let draining = Arc::new(stopping.drain.clone());
    let worker = core.activity().add_worker();
    let mut next = None;
    loop {
        let work = match next.take() {
            Some(work) => {
                // A worker that always finds a next key would never yield to other tasks.
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
            // The key keeps its place in the queue. Soon either the workers are aborted, or a renewal that is on its
            // way succeeds.
            drop(work);
            tokio::select! {
                biased;
                () = stopping.abort.cancelled() => return,
                () = core.ended().cancelled() => return,
                () = time::sleep(FENCED_PAUSE) => continue,
            }
        }
        let permit = match core.own_keys().permit(core.informer().store(), &work) {
            Some(None) => {
                pass_on(&core, work);
                continue;
            }
            permit => permit.flatten(),
        };
        worker.begin(work.key());
        let run = run(&core, work, &draining, &worker);
        // The run is polled first: one that completes immediately registers no wakers, and `abort` is checked above.
        // The other futures are polled only while a handler waits; all workers of all kinds share them.
        let done = tokio::select! {
            biased;
            done = run => done,
            // The activity entry stays and shows what was dropped.
            () = stopping.abort.cancelled() => return,
            // The dropped key goes back into the queue, and is passed on when it is dequeued again.
            () = revoked(permit.as_ref()) => None,
        };
        worker.end();
        next = done.and_then(|(work, verdicts)| work.done_and_try_get(verdicts));
    }
}

/// Drops a key that belongs to another member, which enqueues it when it gains it.
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

/// Waits for the next key.
///
/// While no handler is registered, keys stay in the queue for one that may come.
async fn get(core: &ControllerCore, stopping: &Stopping) -> Option<Taken> {
    tokio::select! {
        biased;
        () = core.lanes().any() => {}
        () = stopping.drain.cancelled() => return None,
    }
    core.queue().get().await
}

//! Workers: get a key, run its handlers, finish it.
//!
//! A worker owns a key from `get` to `done`. If the worker drops the key instead, because it is aborted or may not
//! process it, the key goes back into the queue with all its lanes, and nothing is lost.

use std::sync::Arc;
use std::time::Duration;

use tokio::task;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::core::ControllerCore;
use super::crew::Place;
use super::opened::Opened;
use super::run::{Worker, run};
use crate::payload::Taken;

/// The two stages of a stop.
#[derive(Debug, Clone)]
pub(crate) struct Stopping {
    /// Workers process the keys that are due, and then end.
    pub(crate) drain: CancellationToken,
    /// Workers end immediately; running calls are dropped at their next await.
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

/// The pause of a worker that may not call handlers after the renew deadline.
const FENCED_PAUSE: Duration = Duration::from_millis(100);

/// Runs a worker until a drain has ended, an abort, or the end of the use that it belongs to.
pub(super) async fn work(
    mut place: Place,
    core: Arc<ControllerCore>,
    opened: Arc<Opened>,
    stopping: Stopping,
) {
    let closed = opened.closed();
    let worker = Worker {
        core: &core,
        opened: &opened,
        draining: Arc::new(stopping.drain.clone()),
        activity: core.activity().add_worker(),
    };
    let mut next = None;
    loop {
        let work = match next.take() {
            Some(work) => {
                // A worker that finds a next key after each run, with handlers that never wait, would never yield.
                task::consume_budget().await;
                work
            }
            None => tokio::select! {
                biased;
                () = stopping.abort.cancelled() => return,
                () = closed.cancelled() => return,
                work = get(&core, &stopping) => match work {
                    Some(work) => work,
                    None => return,
                },
            },
        };
        // Also for a key that was got with the end of the previous run, without the `select!` above. Dropping it gives
        // it back.
        if stopping.abort.is_cancelled() || closed.is_cancelled() || place.leave_if_surplus() {
            return;
        }
        if !core.may_call() {
            // The renew deadline has passed, but the task that renews has not noticed or still awaits a response. Soon
            // it either aborts the workers, or succeeds. Until then no handler is called; the key goes back into the
            // queue.
            drop(work);
            tokio::select! {
                biased;
                () = stopping.abort.cancelled() => return,
                () = closed.cancelled() => return,
                () = time::sleep(FENCED_PAUSE) => continue,
            }
        }
        let Some(permit) = core.own_keys().permit(opened.informer().store(), &work) else {
            // A member enqueues the keys that it gains, for the handlers that want such objects. Past the renew deadline
            // the key goes back, as a late renewal brings no gain.
            if core.may_call() {
                work.done_with([]);
            }
            continue;
        };
        worker.activity.begin(work.key());
        let run = worker
            .activity
            .polling(run(&worker, &permit, &mut place, work));
        // The run is polled first. One that completes immediately never polls the other futures, which are shared by
        // all workers of all kinds, and whose wakers would contend for a lock. `abort` was checked above.
        next = tokio::select! {
            biased;
            next = run => next,
            // Drops the handler's call at its current await, and so the key, which goes back into the queue. The
            // activity entry stays: the error of the stop names the handler.
            () = stopping.abort.cancelled() => return,
            // The key moves to another member that has waited long enough for this call. Dropped, the key goes back
            // into the queue; when it is dequeued again, it is dropped.
            () = permit.revoked() => None,
        };
        // Also of a run that gave its key back.
        worker.activity.end();
        // Another worker has taken the place of this one, which was in a call of a deregistered handler. Its next key
        // goes back into the queue.
        if place.leave_if_surplus() {
            return;
        }
    }
}

/// Waits for the next key; none when the queue has drained.
///
/// While no handler is registered, keys stay in the queue, for a handler that may be registered.
async fn get(core: &ControllerCore, stopping: &Stopping) -> Option<Taken> {
    tokio::select! {
        biased;
        () = core.lanes().any() => {}
        () = stopping.drain.cancelled() => return None,
    }
    core.queue().get().await
}

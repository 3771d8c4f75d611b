//! What runs between a start and a stop.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use tokio::time;
use tokio_util::task::TaskTracker;

use crate::controller::{ControllerCore, Running as Controller, Slot, Stopping};
use crate::error::StopError;
use crate::many::Follower;

/// The running controllers. Dropping it aborts them.
pub(super) struct Running {
    /// How many workers a kind has that does not say otherwise, if that was said at the start.
    workers: (Option<usize>, Option<usize>),
    pub(super) stopping: Stopping,
    tasks: TaskTracker,
    controllers: Vec<Arc<ControllerCore>>,
}

impl Running {
    /// `workers` are what the start was given, and the default.
    pub(super) fn new(workers: (Option<usize>, Option<usize>)) -> Self {
        Self {
            workers,
            stopping: Stopping::new(),
            tasks: TaskTracker::new(),
            controllers: Vec::new(),
        }
    }

    /// Starts a controller, unless it runs or has ended.
    pub(super) fn spawn(&mut self, slot: &Arc<Slot>, core: &Arc<ControllerCore>) {
        let runs = self.controllers.iter().any(|each| Arc::ptr_eq(each, core));
        if runs || core.ended().is_cancelled() {
            return;
        }
        self.controllers.push(Arc::clone(core));
        let controller = Controller {
            slot: Arc::clone(slot),
            core: Arc::clone(core),
            workers: core.workers(self.workers.0, self.workers.1),
            stopping: self.stopping.clone(),
        };
        self.tasks.spawn(controller.run());
    }

    /// Starts to follow which kinds there are.
    pub(super) fn follow(&self, follower: &Arc<Follower>) {
        let follower = Arc::clone(follower);
        let stop = self.stopping.drain.clone();
        self.tasks.spawn(async move { follower.run(stop).await });
    }

    /// Forgets a controller that has ended; its task ends by itself.
    pub(super) fn forget(&mut self, core: &Arc<ControllerCore>) {
        self.controllers.retain(|each| !Arc::ptr_eq(each, core));
    }

    /// Lets handlers finish what is due, for as long as the grace period lasts, and joins every task.
    pub(super) async fn stop(self, grace: Duration) -> Result<(), StopError> {
        for core in &self.controllers {
            core.queue_all_waiting();
            core.queue().drain();
        }
        self.stopping.drain.cancel();
        self.tasks.close();
        if time::timeout(grace, self.tasks.wait()).await.is_ok() {
            return Ok(());
        }
        self.stopping.abort.cancel();
        self.tasks.wait().await;
        let unfinished = self.unfinished();
        if unfinished.is_empty() {
            return Ok(());
        }
        Err(StopError { unfinished, grace })
    }

    fn unfinished(&self) -> Vec<(Gvk, ObjectKey)> {
        let keys = |core: &Arc<ControllerCore>| {
            let gvk = core.gvk().clone();
            core.queue()
                .ready_keys()
                .into_iter()
                .map(move |key| (gvk.clone(), key))
        };
        self.controllers.iter().flat_map(keys).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopping.drain.cancel();
        self.stopping.abort.cancel();
        // What came due during the drain waits in line for the next start.
        for core in &self.controllers {
            core.queue().resume();
        }
    }
}

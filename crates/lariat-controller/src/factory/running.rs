//! What runs between a start and a stop.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use tokio::time;
use tokio_util::task::TaskTracker;

use crate::controller::{ControllerCore, Stopping, run_workers};
use crate::error::StopError;

/// The running controllers. Dropping it aborts them.
pub(super) struct Running {
    workers: usize,
    pub(super) stopping: Stopping,
    tasks: TaskTracker,
    controllers: Vec<Arc<ControllerCore>>,
}

impl Running {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            workers,
            stopping: Stopping::new(),
            tasks: TaskTracker::new(),
            controllers: Vec::new(),
        }
    }

    /// Starts a controller, unless it runs.
    pub(super) fn spawn(&mut self, core: &Arc<ControllerCore>) {
        if self.controllers.iter().any(|each| Arc::ptr_eq(each, core)) {
            return;
        }
        self.controllers.push(Arc::clone(core));
        self.tasks.spawn(run_workers(
            Arc::clone(core),
            self.workers,
            self.stopping.clone(),
        ));
    }

    /// Lets handlers finish what is due, for as long as the grace period lasts, and joins every task.
    pub(super) async fn stop(self, grace: Duration) -> Result<(), StopError> {
        for core in &self.controllers {
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

//! Tracks which handler calls are running, so that a stop can log them.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The keys and handlers that the workers of a kind are processing.
#[derive(Default)]
pub(crate) struct Activity(Mutex<Vec<Arc<Mutex<Option<Doing>>>>>);

/// A key that a worker is processing, or was when it was aborted.
#[derive(Debug, Clone)]
pub(crate) struct Doing {
    pub(crate) key: ObjectKey,
    /// The handler of the running call, or of the next one; none before the first.
    pub(crate) handler: Option<Arc<str>>,
    began: Instant,
}

impl Doing {
    /// Returns how long the handler has been running.
    pub(crate) fn lasts(&self) -> Duration {
        self.began.elapsed()
    }
}

/// The entry of one worker.
///
/// Dropping it removes the entry, unless the worker was aborted while it processed a key.
pub(super) struct WorkerActivity<'a> {
    activity: &'a Activity,
    doing: Arc<Mutex<Option<Doing>>>,
}

impl Activity {
    /// Adds a worker.
    pub(super) fn add_worker(&self) -> WorkerActivity<'_> {
        let doing = Arc::default();
        let mut activity = self.0.lock();
        // An aborted worker leaves its entry behind, to be named in the error of the stop. If the future of that stop
        // was dropped, nothing has read the entry; it is removed here. A count of one means that its worker has ended.
        activity.retain(|worker| Arc::strong_count(worker) > 1);
        activity.push(Arc::clone(&doing));
        drop(activity);
        WorkerActivity {
            activity: self,
            doing,
        }
    }

    /// Returns the calls that are running, and those that were aborted.
    pub(crate) fn in_progress(&self) -> Vec<Doing> {
        let activity = self.0.lock();
        activity
            .iter()
            .filter_map(|worker| worker.lock().clone())
            .collect()
    }

    /// Returns the calls that are running, without those that were aborted.
    pub(super) fn running(&self) -> Vec<Doing> {
        let activity = self.0.lock();
        let live = activity
            .iter()
            .filter(|worker| Arc::strong_count(worker) > 1);
        live.filter_map(|worker| worker.lock().clone()).collect()
    }

    /// Removes the entries of aborted workers.
    pub(crate) fn clear(&self) {
        self.0.lock().retain(|worker| Arc::strong_count(worker) > 1);
    }
}

impl WorkerActivity<'_> {
    /// Records that the worker starts to process a key.
    pub(super) fn begin(&self, key: &ObjectKey) {
        *self.doing.lock() = Some(Doing {
            key: key.clone(),
            handler: None,
            began: Instant::now(),
        });
    }

    /// Records that a handler is called next.
    pub(super) fn calls(&self, handler: &Arc<str>) {
        if let Some(doing) = &mut *self.doing.lock() {
            doing.handler = Some(Arc::clone(handler));
            doing.began = Instant::now();
        }
    }

    /// Records that the worker has finished the key.
    pub(super) fn end(&self) {
        *self.doing.lock() = None;
    }
}

impl Drop for WorkerActivity<'_> {
    fn drop(&mut self) {
        // The entry of an aborted worker stays, because the stop reports it as unfinished.
        if self.doing.lock().is_none() || std::thread::panicking() {
            let mut activity = self.activity.0.lock();
            activity.retain(|worker| !Arc::ptr_eq(worker, &self.doing));
        }
    }
}

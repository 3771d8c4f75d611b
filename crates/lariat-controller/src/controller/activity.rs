//! Which calls are under way, for the log of a stop.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

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

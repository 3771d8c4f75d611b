//! The related caches that a handler waits for.

use parking_lot::Mutex;
use tokio::time::Instant;

/// The relations whose caches a handler waits for before its first call.
///
/// The queue has the keys: its lane is closed meanwhile.
#[derive(Default)]
pub(crate) struct Awaited(Mutex<Option<Relations>>);

/// Relations whose caches were not synced when the handler was registered.
#[derive(Clone)]
pub(crate) struct Relations {
    /// The numbers of the relations.
    pub(crate) numbers: Vec<u64>,
    pub(crate) since: Instant,
    /// Whether a warning about the wait was logged.
    pub(crate) is_warned: bool,
}

impl Awaited {
    /// Begins the wait.
    pub(crate) fn begin(&self, numbers: Vec<u64>) {
        *self.0.lock() = Some(Relations {
            numbers,
            since: Instant::now(),
            is_warned: false,
        });
    }

    /// Returns the relations, if the handler waits for some.
    pub(crate) fn get(&self) -> Option<Relations> {
        self.0.lock().clone()
    }

    /// Records that a warning about the wait was logged.
    pub(crate) fn set_warned(&self) {
        if let Some(relations) = &mut *self.0.lock() {
            relations.is_warned = true;
        }
    }

    /// Ends the wait.
    pub(crate) fn end(&self) {
        *self.0.lock() = None;
    }
}

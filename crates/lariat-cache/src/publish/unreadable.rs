//! The time from which readers of a kind count their timeouts.

use parking_lot::Mutex;
use tokio::time::Instant;

/// The time at which a reader first found the kind's cache unreadable.
///
/// It is reset when the cache has synced and when a run begins. All readers share it. If each waited for the whole
/// timeout, many keys that read a kind which cannot be listed would occupy all workers in turn.
#[derive(Debug, Default)]
pub(super) struct UnreadableSince(Mutex<Option<Instant>>);

impl UnreadableSince {
    /// Returns when a reader first found the cache unreadable; now if it is readable.
    ///
    /// Whether it is readable is checked under the lock. Otherwise a reader that found the cache unreadable could store
    /// the time after the cache has synced and the time was reset, and the next outage would begin with an old time.
    pub(super) fn get(&self, is_readable: impl FnOnce() -> bool) -> Instant {
        let mut since = self.0.lock();
        if is_readable() {
            return Instant::now();
        }
        *since.get_or_insert_with(Instant::now)
    }

    /// Resets the time; a phase that makes the cache readable was published before.
    pub(super) fn reset(&self) {
        *self.0.lock() = None;
    }
}

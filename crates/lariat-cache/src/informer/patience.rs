//! Since when a cache has been found not filled.

use parking_lot::Mutex;
use tokio::time::Instant;

/// When a reader first found a kind's cache not readable, until the cache is filled or a run begins.
///
/// All readers share it: if each waited as long as the first, many keys that read a kind which cannot be listed would
/// hold all workers in turns.
#[derive(Debug, Default)]
pub(super) struct Patience(Mutex<Option<Instant>>);

impl Patience {
    /// Returns when a reader first found the cache not readable; now, if it is readable.
    ///
    /// Whether it is readable is asked under the lock. Otherwise a reader that has seen the cache not filled could
    /// note the time after the cache was filled and the notes were cleared, and the next outage would begin with it.
    pub(super) fn since(&self, is_readable: impl FnOnce() -> bool) -> Instant {
        let mut since = self.0.lock();
        if is_readable() {
            return Instant::now();
        }
        *since.get_or_insert_with(Instant::now)
    }

    /// Forgets the time; the phase that makes the cache readable is published before.
    pub(super) fn renew(&self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use lariat_core::Gvk;
    use tokio::sync::Notify;
    use tokio::time;

    use super::super::progress::Progress;
    use super::super::status::Phase;
    use super::super::user::Usage;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn readers_of_a_cache_that_is_not_filled_share_one_beginning() {
        let gvk = Gvk::new("", "v1", "Secret");
        let progress = Arc::new(Progress::new(gvk, Usage::new(Arc::new(Notify::new()))));
        let since = || progress.unreadable_since(|| progress.phase() == Phase::Synced);
        let begun = since();
        time::advance(SECOND).await;
        assert_eq!(since(), begun);
        // A run begins.
        progress.start();
        assert_eq!(since(), begun + SECOND);
        time::advance(SECOND).await;
        let segments = progress.begin(1);
        assert_eq!(since(), begun + SECOND, "the run is the same");
        // It is filled, and not any more when something else is to be read.
        segments[0].enter(Phase::Synced);
        assert_eq!(since(), begun + 2 * SECOND);
        time::advance(SECOND).await;
        progress.behind();
        assert_eq!(since(), begun + 3 * SECOND);
        time::advance(SECOND).await;
        assert_eq!(since(), begun + 3 * SECOND);
    }
}

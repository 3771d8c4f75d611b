//! A value that is computed at most once within some time.

use std::future::Future;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// The last value, as long as it is fresh.
///
/// However many requests come, values are computed rarely, and one at a time.
pub(crate) struct Recent<T> {
    fresh: Duration,
    /// Locked while a value is computed, so that others wait for that value.
    last: Mutex<Option<(Instant, T)>>,
}

impl<T: Clone> Recent<T> {
    pub(crate) fn new(fresh: Duration) -> Self {
        Self {
            fresh,
            last: Mutex::const_new(None),
        }
    }

    /// Returns the last value if it is fresh, or computes one.
    pub(crate) async fn get(&self, make: impl Future<Output = T>) -> T {
        // Whoever waits here gets the value that the holder of the lock computes.
        let mut last = self.last.lock().await;
        if let Some((at, value)) = &*last
            && at.elapsed() < self.fresh
        {
            return value.clone();
        }
        // If the request is dropped meanwhile, the lock is released and the next one computes the value.
        let value = make.await;
        *last = Some((Instant::now(), value.clone()));
        value
    }

    /// Forgets the last value.
    pub(crate) async fn forget(&self) {
        *self.last.lock().await = None;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_value_is_used_again_for_a_moment() {
        let recent = Recent::new(Duration::from_secs(1));
        assert_eq!(recent.get(async { 1 }).await, 1);
        assert_eq!(recent.get(async { 2 }).await, 1);
        time::advance(Duration::from_secs(1)).await;
        assert_eq!(recent.get(async { 3 }).await, 3);
        recent.forget().await;
        assert_eq!(recent.get(async { 4 }).await, 4);
    }
}

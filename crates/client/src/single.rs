//! Sharing attempts: one at a time, for all callers that need it.

use std::convert::Infallible;
use std::fmt;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;

/// Runs one attempt at a time and shares its result.
///
/// A caller during an attempt gets its result, also a failure. So a server that does not answer costs all callers one
/// timeout, and not one after the other. An attempt runs as long as a caller waits for it. A call with another key
/// starts another attempt, which replaces the previous one for later callers.
///
/// ```
/// use futures::FutureExt;
/// use lariat_client::Single;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let single = Single::new();
/// let ask = || single.join("uid", || async { 7 }.boxed());
/// assert_eq!(futures::join!(ask(), ask()), (7, 7));
/// # }
/// ```
pub struct Single<T: Clone, K = ()> {
    running: Mutex<Option<(K, WeakShared<BoxFuture<'static, T>>)>>,
}

impl<T: Clone, K: PartialEq> Single<T, K> {
    /// Creates a place for attempts, without one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            running: Mutex::new(None),
        }
    }

    /// Returns the running attempt, or starts one.
    ///
    /// `start` is called under a lock, so it must be quick and not call this.
    #[must_use = "an attempt runs as long as a caller waits for it"]
    pub fn join(
        &self,
        key: K,
        start: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> Shared<BoxFuture<'static, T>> {
        self.join_or(key, || Ok::<_, Infallible>(start()))
            .unwrap_or_else(|never| match never {})
    }

    /// Returns the running attempt, or starts one unless `start` refuses.
    ///
    /// While `start` decides, no other attempt can start.
    ///
    /// # Errors
    ///
    /// Fails if no attempt is running, and `start` refuses to start one.
    pub(crate) fn join_or<E>(
        &self,
        key: K,
        start: impl FnOnce() -> Result<BoxFuture<'static, T>, E>,
    ) -> Result<Shared<BoxFuture<'static, T>>, E> {
        let mut running = self.running.lock();
        let known = running
            .as_ref()
            .filter(|(known, _)| *known == key)
            .and_then(|(_, attempt)| attempt.upgrade());
        // The result of an ended attempt may be outdated.
        if let Some(known) = known.filter(|known| known.peek().is_none()) {
            return Ok(known);
        }
        // Under the lock, so that two callers cannot both start one.
        let attempt = start()?.shared();
        *running = attempt.downgrade().map(|attempt| (key, attempt));
        Ok(attempt)
    }
}

impl<T: Clone, K: PartialEq> Default for Single<T, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone, K> fmt::Debug for Single<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Single").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn callers_during_an_attempt_share_it_and_later_ones_do_not() {
        let (count, single) = (Arc::new(AtomicU32::new(0)), Single::new());
        let join = || {
            let count = Arc::clone(&count);
            single.join((), || {
                let number = count.fetch_add(1, Ordering::Relaxed);
                async move {
                    tokio::task::yield_now().await;
                    number
                }
                .boxed()
            })
        };
        assert_eq!(tokio::join!(join(), join(), join()), (0, 0, 0));
        assert_eq!(join().await, 1);
    }

    #[tokio::test]
    async fn an_attempt_without_waiters_is_dropped() {
        let single = Single::new();
        drop(single.join((), || std::future::pending::<u32>().boxed()));
        assert_eq!(single.join((), || async { 7 }.boxed()).await, 7);
    }

    #[tokio::test]
    async fn callers_with_different_keys_do_not_share_an_attempt() {
        let single = Single::new();
        let join = |key: u32| {
            single.join(key, || {
                async move {
                    tokio::task::yield_now().await;
                    key
                }
                .boxed()
            })
        };
        assert_eq!(
            tokio::join!(join(1), join(2), join(2), join(1)),
            (1, 2, 2, 1)
        );
    }
}

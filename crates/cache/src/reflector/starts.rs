//! The limit on loads, checks and new watches that are under way at the same time.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time;

/// How many requests of a factory are under way at the same time.
pub(crate) const STARTS: usize = 20;

/// How long a request counts.
///
/// A list that is large, or an answer that does not come, must not keep the other kinds from starting.
const COUNTED: Duration = Duration::from_secs(10);

/// The places for loads, checks and new watches: those of the factory, of which one kind takes at most half.
#[derive(Debug, Clone)]
pub(crate) struct Starts {
    factory: Arc<Semaphore>,
    kind: Arc<Semaphore>,
    most: usize,
}

impl Starts {
    /// Creates the places of a factory; at least one.
    pub(crate) fn new(most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            factory: Arc::new(Semaphore::new(most)),
            kind: places_of_kind(most),
            most,
        }
    }

    /// Returns the same places for another kind.
    pub(super) fn of_kind(&self) -> Self {
        Self {
            kind: places_of_kind(self.most),
            ..self.clone()
        }
    }

    /// Waits for a place and then for a request; the place is free again after the request, or after ten seconds.
    pub(super) async fn admit<T>(&self, request: impl Future<Output = T>) -> T {
        // Cannot fail: they are never closed. First that of the kind, so that a kind which waits takes none of others.
        let places = (self.kind.acquire().await, self.factory.acquire().await);
        let mut request = pin!(request);
        if let Ok(done) = time::timeout(COUNTED, request.as_mut()).await {
            return done;
        }
        drop(places);
        request.await
    }
}

fn places_of_kind(most: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(most.div_ceil(2)))
}

impl Default for Starts {
    fn default() -> Self {
        Self::new(STARTS)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::{BoxFuture, pending, ready};

    use super::*;

    /// Polls requests once; returns how many were sent.
    fn sent(starts: &Starts, count: usize, kept: &mut Vec<BoxFuture<'static, ()>>) -> usize {
        let begun = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        for _ in 0..count {
            let (starts, begun) = (starts.clone(), Arc::clone(&begun));
            let request = async move {
                let request = async {
                    begun.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    pending::<()>().await;
                };
                starts.admit(request).await;
            };
            let mut request = request.boxed();
            assert!((&mut request).now_or_never().is_none());
            kept.push(request);
        }
        begun.load(std::sync::atomic::Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn kind_takes_half_of_the_places() {
        let factory = Starts::new(20);
        let mut kept = Vec::new();
        assert_eq!(sent(&factory.of_kind(), 100, &mut kept), 10);
        assert_eq!(sent(&factory.of_kind(), 100, &mut kept), 10);
        assert_eq!(sent(&factory.of_kind(), 1, &mut kept), 0, "20 are sent");
        kept.clear();
        factory.admit(ready(())).await;
    }

    #[tokio::test(start_paused = true)]
    async fn request_without_answer_gives_its_place_back() {
        let starts = Starts::new(1);
        let hung = starts.clone();
        let mut hung = pin!(hung.admit(pending::<()>()));
        assert!(hung.as_mut().now_or_never().is_none());
        tokio::select! {
            () = &mut hung => panic!("it is not answered"),
            () = starts.admit(ready(())) => {}
        }
    }
}

//! The error of a write that a guard refused.
//!
//! It is below the guards, because modules below them handle the error too.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lariat_controller::HandlerError;
use lariat_core::debug_as_description;
use tokio::time::Instant;

/// The error of a write that a [`Guard`](crate::Guard) refused; it was not sent.
///
/// kube's methods return it inside [`kube::Error::Service`]; [`find`](Self::find) extracts it from any error.
///
/// ```
/// use lariat::operator::GuardError;
///
/// let error = std::io::Error::other("a disk is full");
/// assert!(GuardError::find(&error).is_none());
/// ```
#[derive(thiserror::Error)]
#[error("the guard of handler {handler} refused to {write}: {reason}; {then}")]
pub struct GuardError {
    pub(crate) handler: String,
    pub(crate) write: String,
    pub(crate) reason: Arc<str>,
    pub(crate) then: String,
    /// The time at which the guard resets itself; `None` if it is reset by hand.
    pub(crate) until: Option<Instant>,
}

debug_as_description!(GuardError);

/// The retry delay while a guard waits to be reset by hand.
///
/// A retry sends no request, so retries of many keys cost little, and a reset takes effect within this time.
const RETRY_WITHOUT_RESET: Duration = Duration::from_secs(60);

impl GuardError {
    /// Finds a guard's error among an error and its sources.
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut chain = std::iter::successors(Some(error), |each: &&'a (dyn Error + 'static)| {
            (**each).source()
        });
        chain.find_map(|each| each.downcast_ref())
    }

    /// Returns the time until a retry may succeed.
    ///
    /// This is the time until the guard resets itself, or one minute if it is reset by hand. Reconcilers are called
    /// again after it, unless their [policy](crate::Reconciler::on_error) sets another delay.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        let left = self.until.map(|until| until.duration_since(Instant::now()));
        left.unwrap_or(RETRY_WITHOUT_RESET)
    }
}

/// Delays the retry of a guard's error until the guard may admit writes.
///
/// Such a failure does not count for the limit of retries.
pub(crate) fn paced(error: HandlerError) -> HandlerError {
    let delay = GuardError::find(error.as_error()).map(GuardError::retry_after);
    match delay.filter(|_| error.is_retryable()) {
        // `uncounted` keeps the failure from counting towards the limit of retries.
        Some(delay) => error.retry_after(delay).uncounted(),
        None => error,
    }
}

tokio::task_local! {
    /// Set while guards ignore the writes of the task.
    static EXEMPT: ();
}

/// Runs a future whose writes are neither counted nor refused by guards.
pub(crate) async fn exempt<T>(future: impl Future<Output = T>) -> T {
    EXEMPT.scope((), future).await
}

/// Returns whether the calling future is exempt from guards.
pub(crate) fn is_exempt() -> bool {
    EXEMPT.try_with(|()| ()).is_ok()
}

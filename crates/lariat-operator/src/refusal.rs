//! The error of a write that a guard refused, for modules below the guards.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lariat_controller::HandlerError;
use lariat_core::debug_as_description;
use tokio::time::Instant;

/// A write that a [`Guard`](crate::Guard) refused; it was not sent.
///
/// kube's methods return it inside [`kube::Error::Service`]; [`find`](Self::find) extracts it.
#[derive(thiserror::Error)]
#[error("the guard of handler {handler} refused to {write}: {reason}; {then}")]
pub struct GuardError {
    pub(crate) handler: String,
    pub(crate) write: String,
    pub(crate) reason: Arc<str>,
    pub(crate) then: String,
    /// When the guard resets itself; none if it waits for a manual reset.
    pub(crate) until: Option<Instant>,
}

debug_as_description!(GuardError);

/// The retry delay while a guard waits for a manual reset.
///
/// With many keys this is a steady trickle of attempts, none of which sends anything, and a reset takes effect soon
/// enough.
const RETRY_WITHOUT_RESET: Duration = Duration::from_secs(60);

impl GuardError {
    /// Finds a guard's error in the chain of an error's sources.
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut chain = std::iter::successors(Some(error), |each: &&'a (dyn Error + 'static)| {
            (**each).source()
        });
        chain.find_map(|each| each.downcast_ref())
    }

    /// Returns the time until a retry may succeed.
    ///
    /// That is when the guard resets itself, or one minute if it waits for a manual reset. Reconcilers are called again
    /// by then, unless their [policy](crate::Reconciler::on_error) sets another delay.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        let left = self.until.map(|until| until.duration_since(Instant::now()));
        left.unwrap_or(RETRY_WITHOUT_RESET)
    }
}

/// Delays the retry of an error that a guard caused until the guard may admit writes.
pub(crate) fn paced(error: HandlerError) -> HandlerError {
    let delay = GuardError::find(error.source()).map(GuardError::retry_after);
    match delay.filter(|_| error.is_retryable()) {
        Some(delay) => error.retry_after(delay).held(),
        None => error,
    }
}

tokio::task_local! {
    /// Set while guards ignore writes.
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

//! Writes that a guard refuses, as far as modules know of them that know no guards.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lariat_controller::HandlerError;
use lariat_core::debug_as_description;
use tokio::time::Instant;

/// A write that a [`Guard`](crate::Guard) refused; it was not sent.
///
/// kube's methods return it inside of [`kube::Error::Service`]; [`find`](Self::find) finds it there.
#[derive(thiserror::Error)]
#[error("the guard of handler {handler} refused to {write}: {reason}; {then}")]
pub struct GuardError {
    pub(crate) handler: String,
    pub(crate) write: String,
    pub(crate) reason: Arc<str>,
    pub(crate) then: String,
    /// When the guard resets itself, if it does.
    pub(crate) until: Option<Instant>,
}

debug_as_description!(GuardError);

/// How long a reconciler waits that somebody has to do something about: with many keys that is a steady trickle of
/// attempts, none of which sends anything, and soon enough after a reset.
const UNTIL_SOMEBODY_ACTS: Duration = Duration::from_secs(60);

impl GuardError {
    /// Finds the error of a guard among an error and its causes.
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut chain = std::iter::successors(Some(error), |each: &&'a (dyn Error + 'static)| {
            (**each).source()
        });
        chain.find_map(|each| each.downcast_ref())
    }

    /// Returns when it is worth another try: when the guard resets itself, or, where somebody has to do something about
    /// it, in a minute. Reconcilers are called again by then, unless their [policy](crate::Reconciler::on_error) says
    /// otherwise.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        let left = self.until.map(|until| until.duration_since(Instant::now()));
        left.unwrap_or(UNTIL_SOMEBODY_ACTS)
    }
}

/// Delays the retry of an error that a guard caused until the guard may let writes through.
pub(crate) fn paced(error: HandlerError) -> HandlerError {
    let delay = GuardError::find(error.source()).map(GuardError::retry_after);
    match delay.filter(|_| error.is_retryable()) {
        Some(delay) => error.retry_after(delay).held(),
        None => error,
    }
}

tokio::task_local! {
    /// Set where guards do not look.
    static EXEMPT: ();
}

/// Runs a future whose writes guards neither count nor refuse.
pub(crate) async fn exempt<T>(future: impl Future<Output = T>) -> T {
    EXEMPT.scope((), future).await
}

/// Returns whether this is called by a future that is exempt.
pub(crate) fn is_exempt() -> bool {
    EXEMPT.try_with(|()| ()).is_ok()
}

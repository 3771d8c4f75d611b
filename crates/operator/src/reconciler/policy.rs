//! The policy for the errors of a reconciler.

use std::time::Duration;

use lariat_controller::HandlerError;

use crate::reconcile::Reconcile;

/// Decides about the retry after an error.
pub(crate) type ErrorPolicy<K> = dyn Fn(&HandlerError, &Reconcile<K>) -> Retry + Send + Sync;

/// The retry after an error, as a policy decides.
///
/// The error is logged and counts as a failure in any case. See [`Reconciler::on_error`](crate::Reconciler::on_error).
///
/// ```
/// use std::time::Duration;
/// use lariat::operator::Retry;
/// use lariat::HandlerError;
///
/// fn policy(error: &HandlerError) -> Retry {
///     if error.to_string().contains("quota") {
///         return Retry::after(Duration::from_secs(600));
///     }
///     Retry::backoff()
/// }
/// # let _ = policy;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a decision does nothing until the policy returns it"]
pub struct Retry(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Backoff,
    After(Duration),
    Never,
}

impl Retry {
    /// Retries with the backoff of the handler.
    pub fn backoff() -> Self {
        Self(Kind::Backoff)
    }

    /// Retries after this delay; zero means immediately.
    pub fn after(delay: Duration) -> Self {
        Self(Kind::After(delay))
    }

    /// Does not retry.
    ///
    /// The object is reconciled again when it changes or its key is enqueued, or after the
    /// [period](crate::Reconciler::requeue_after) of the reconciler.
    pub fn never() -> Self {
        Self(Kind::Never)
    }

    pub(super) fn apply(self, error: HandlerError) -> HandlerError {
        match self.0 {
            Kind::Backoff => error,
            Kind::After(delay) => error.retry_after(delay),
            Kind::Never => error.into_terminal(),
        }
    }
}

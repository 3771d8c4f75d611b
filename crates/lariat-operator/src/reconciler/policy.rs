//! What an error of a reconciler leads to.

use std::time::Duration;

use lariat_controller::HandlerError;

use crate::reconcile::Reconcile;

pub(crate) type ErrorPolicy<K> = dyn Fn(&HandlerError, &Reconcile<K>) -> Retry + Send + Sync;

/// What an error leads to. However it is chosen, the error is logged and counts as a failure.
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
    /// Tries again after a delay that grows with each failure in a row.
    pub fn backoff() -> Self {
        Self(Kind::Backoff)
    }

    /// Tries again after this delay; zero means at once.
    pub fn after(delay: Duration) -> Self {
        Self(Kind::After(delay))
    }

    /// Does not try again until something happens, or the
    /// [period](crate::Reconciler::requeue_after) of the reconciler is over.
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

//! A failed call, and whether it is retried.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use tracing::field::{debug, display};

use crate::notices;
use crate::panics::Panicked;

/// A call that failed.
pub(crate) struct Failed<'a> {
    pub(crate) kind: &'a Gvk,
    pub(crate) handler: &'a Arc<str>,
    pub(crate) key: &'a ObjectKey,
    pub(crate) error: &'a Arc<str>,
    pub(crate) attempt: u32,
    /// Whether the failure is not retried. The handler's options may still ask for a call after a delay.
    pub(crate) is_final: bool,
    /// The delay until the handler is called again; none if it is not.
    pub(crate) again_in: Option<Duration>,
    pub(crate) panicked: Option<Panicked>,
}

impl Failed<'_> {
    /// Logs the failure in a line of its own; at debug level if another line counts it.
    pub(super) fn log(&self, is_counted: bool) {
        let (kind, key, handler, error) = (self.kind, self.key, self.handler, &**self.error);
        let (attempt, retry_in) = (self.attempt, self.again_in.map(debug));
        if is_counted {
            tracing::debug!(%kind, %key, %handler, error, attempt, retry_in, "handler failed again, or for another key");
            return;
        }
        if let Some(panicked) = &self.panicked {
            let (at, backtrace) = (display(&panicked.at), panicked.backtrace().map(display));
            tracing::error!(%kind, %key, %handler, at, attempt, retry_in, backtrace, "handler {error}");
        } else if self.is_final {
            tracing::error!(%kind, %key, %handler, error, attempts = attempt, again_in = retry_in, "handler failed, not retrying");
        } else {
            tracing::warn!(%kind, %key, %handler, error, attempt, retry_in, "handler failed, retrying");
        }
        notices::failure_without_subscriber(kind, handler, error);
    }
}

//! The log lines about failures and recoveries.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};

use super::{Failed, Next};
use crate::notices;

/// What a log line reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// The first failure with an error; it is retried.
    First,
    /// The first panic with a message.
    Panicked,
    /// The first failure that is not retried.
    Finally,
    /// Further failures that are retried.
    Still,
    /// Further failures that are not retried, of keys that an earlier line names.
    FinallyAgain,
    /// Further failures that are not retried, also of other keys.
    FinallyMore,
    /// No key fails any more.
    Recovered,
}

/// A log line about failures of a handler.
pub(super) struct Line {
    pub(super) line_kind: LineKind,
    pub(super) handler: Arc<str>,
    pub(super) error: Arc<str>,
    /// The key that failed, or examples of failing keys.
    pub(super) keys: Vec<ObjectKey>,
    /// The number of failures the line reports.
    pub(super) failures: u64,
    /// The number of keys that fail now, as text.
    pub(super) failing: String,
    pub(super) lasted: Duration,
    pub(super) attempt: u32,
    pub(super) retry_in: Option<Duration>,
    pub(super) at: Option<String>,
    pub(super) backtrace: Option<String>,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            line_kind: LineKind::First,
            handler: "".into(),
            error: "".into(),
            keys: Vec::new(),
            failures: 1,
            failing: String::new(),
            lasted: Duration::ZERO,
            attempt: 0,
            retry_in: None,
            at: None,
            backtrace: None,
        }
    }
}

impl Line {
    pub(super) fn first(failed: &Failed<'_>) -> Self {
        let panicked = failed.panicked.as_ref();
        Self {
            line_kind: match failed.next {
                _ if panicked.is_some() => LineKind::Panicked,
                Next::Retry(_) => LineKind::First,
                Next::Final(_) => LineKind::Finally,
            },
            handler: Arc::clone(failed.handler),
            error: Arc::clone(failed.error),
            keys: vec![failed.key.clone()],
            attempt: failed.attempt,
            retry_in: failed.next.delay(),
            at: panicked.map(|panicked| panicked.at.clone()),
            backtrace: panicked.and_then(|panicked| panicked.backtrace()),
            ..Self::default()
        }
    }

    pub(super) fn log(&self, kind: &Gvk) {
        let Self {
            handler,
            failures,
            attempt,
            ..
        } = self;
        let (error, failing) = (&*self.error, &*self.failing);
        let (keys, lasted) = (self.keys(), format_args!("{:.1?}", self.lasted));
        let retry_in = self.retry_in.map(tracing::field::debug);
        match self.line_kind {
            LineKind::First => {
                tracing::warn!(%kind, key = %keys, %handler, error, attempt, retry_in, "handler failed, retrying");
            }
            LineKind::Panicked => {
                let at = self.at.as_ref().map(tracing::field::display);
                let backtrace = self.backtrace.as_ref().map(tracing::field::display);
                tracing::error!(%kind, key = %keys, %handler, at, attempt, retry_in, backtrace, "handler {error}");
            }
            LineKind::Finally => {
                tracing::error!(%kind, key = %keys, %handler, error, attempts = attempt, again_in = retry_in, "handler failed, not retrying");
            }
            LineKind::Still => {
                tracing::warn!(%kind, %handler, error, failures, %failing, %lasted, examples = %keys, "handler keeps failing");
            }
            LineKind::FinallyAgain => {
                tracing::error!(%kind, %handler, error, failures, %lasted, examples = %keys, "handler failed again, not retrying");
            }
            LineKind::FinallyMore => {
                tracing::error!(%kind, %handler, error, failures, %lasted, examples = %keys, "handler failed for more keys, not retrying");
            }
            LineKind::Recovered => {
                tracing::info!(%kind, %handler, error, failures, %lasted, "handler recovered");
            }
        }
        if self.line_kind != LineKind::Recovered {
            notices::failure_without_subscriber(kind, handler, &self.error);
        }
    }

    fn keys(&self) -> String {
        let keys: Vec<&str> = self.keys.iter().map(ObjectKey::as_str).collect();
        keys.join(", ")
    }
}

/// Logs a failure at debug level that a summary counts.
pub(super) fn log_folded(kind: &Gvk, failed: &Failed<'_>) {
    let Failed {
        handler,
        key,
        error,
        attempt,
        ..
    } = failed;
    let retry_in = failed.next.delay().map(tracing::field::debug);
    tracing::debug!(%kind, %key, %handler, %error, attempt, retry_in, "handler failed again, or for another key");
}

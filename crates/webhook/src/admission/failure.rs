//! The failures of a call, as opposed to a denial.

use std::any::Any;
use std::error::Error;
use std::time::Duration;

use lariat_core::{describe, without_credentials};

/// The error of a handler, of any type.
pub type ReviewError = Box<dyn Error + Send + Sync>;

/// The result of a handler.
///
/// An error is a failed call, not a denial: the API server applies the failure policy of the webhook. The exception is
/// [`Undecodable`](super::Undecodable), which is a denial.
pub type ReviewResult<T> = Result<T, ReviewError>;

/// The reason why a call of a handler failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("it panicked")]
    Panicked,
    #[error("it timed out after {0:?}")]
    TimedOut(Duration),
    /// The text of the error is logged, and sent to the client.
    #[error("{}", without_credentials(&describe(&**.0)))]
    Failed(ReviewError),
    #[error("its result cannot be serialized: {}", without_credentials(&.0.to_string()))]
    Unserializable(serde_json::Error),
}

/// Returns the message of a panic.
pub(crate) fn message(panic: &dyn Any) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

impl Failure {
    /// Returns the word for the failure in logs and metrics.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Panicked => "panic",
            Self::TimedOut(_) => "timeout",
            Self::Failed(_) => "error",
            Self::Unserializable(_) => "unserializable",
        }
    }
}

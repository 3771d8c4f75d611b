//! Errors that say what is to be done about them.

use std::time::Duration;

/// What is to be done about an error.
///
/// It is the error's cause, because wrappers that show an error as if it were their own, `#[error(transparent)]` and
/// `anyhow::Error`, pass on its causes, but not the error itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Directive {
    #[error("to be ignored")]
    Ignore,
    #[error("not to be tried again")]
    Terminal,
    #[error("to be tried again after {0:?}")]
    RetryAfter(Duration),
}

/// An error that says, from wherever it is returned, that the failure is to be ignored; see
/// [`HandlerError::ignore`](crate::HandlerError::ignore). It is found as the cause of another error too.
///
/// ```
/// use lariat_controller::{HandlerError, Ignore};
///
/// fn deep_inside() -> Result<(), Ignore> {
///     Err(Ignore::because("the object belongs to another controller"))
/// }
///
/// let error: HandlerError = deep_inside().unwrap_err().into();
/// assert!(!error.is_retryable());
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Ignore {
    reason: String,
    #[source]
    directive: Directive,
}

impl Ignore {
    /// Makes an error that is to be ignored.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            directive: Directive::Ignore,
        }
    }
}

/// An error that says, from wherever it is returned, that trying again does not help; see
/// [`HandlerError::terminal`](crate::HandlerError::terminal). It is found as the cause of another error too.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Terminal {
    reason: String,
    #[source]
    directive: Directive,
}

impl Terminal {
    /// Makes an error that is not tried again.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            directive: Directive::Terminal,
        }
    }
}

/// An error that says, from wherever it is returned, when to try again; see
/// [`HandlerError::retry_after`](crate::HandlerError::retry_after). It is found as the cause of another error too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not yet")]
pub struct RetryAfter {
    #[source]
    directive: Directive,
}

impl RetryAfter {
    /// Makes an error that is tried again after a delay; zero means at once.
    #[must_use]
    pub fn new(delay: Duration) -> Self {
        Self {
            directive: Directive::RetryAfter(delay),
        }
    }
}

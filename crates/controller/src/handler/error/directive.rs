//! Errors that set their own retry.

use std::time::Duration;

/// How an error is retried.
///
/// It is the cause of the public errors in this file rather than the errors themselves. Transparent wrappers, such as
/// `#[error(transparent)]` and `anyhow::Error`, pass on the causes of an error but hide the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Directive {
    #[error("ignored")]
    Ignore,
    #[error("not retried")]
    Terminal,
    #[error("retry after {0:?}")]
    RetryAfter(Duration),
    #[error("retried slowly")]
    RetrySlowly,
}

/// An error that counts as a success, from any depth of the call stack.
///
/// It is also found among the causes of another error. See [`HandlerError::ignore`](crate::HandlerError::ignore).
///
/// ```
/// use lariat::{HandlerError, Ignore};
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
    /// Creates an error that is ignored.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            directive: Directive::Ignore,
        }
    }
}

/// An error that must not be retried, from any depth of the call stack.
///
/// It is also found among the causes of another error. See [`HandlerError::terminal`](crate::HandlerError::terminal).
///
/// ```
/// use lariat::{HandlerError, Terminal};
///
/// fn port(text: &str) -> Result<u16, Terminal> {
///     text.parse().map_err(|_| Terminal::because(format!("{text:?} is not a port")))
/// }
///
/// let error: HandlerError = port("http").unwrap_err().into();
/// assert!(!error.is_retryable());
/// assert_eq!(error.to_string(), "\"http\" is not a port");
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Terminal {
    reason: String,
    #[source]
    directive: Directive,
}

impl Terminal {
    /// Creates an error that is not retried.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            directive: Directive::Terminal,
        }
    }
}

/// An error that sets the retry delay, from any depth of the call stack.
///
/// It is also found among the causes of another error. See
/// [`HandlerError::retry_after`](crate::HandlerError::retry_after).
///
/// ```
/// use std::time::Duration;
///
/// use lariat::{HandlerError, RetryAfter};
///
/// let error: HandlerError = RetryAfter::new(Duration::from_secs(30)).into();
/// assert!(error.is_retryable());
/// assert_eq!(error.delay(), Some(Duration::from_secs(30)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not ready yet")]
pub struct RetryAfter {
    #[source]
    directive: Directive,
}

impl RetryAfter {
    /// Creates an error that is retried after a delay; zero means immediately.
    #[must_use]
    pub fn new(delay: Duration) -> Self {
        Self {
            directive: Directive::RetryAfter(delay),
        }
    }
}

/// An error that a retry can hardly help, from any depth of the call stack.
///
/// It is also found among the causes of another error. The handler is called again after five minutes, or after the
/// delay of its [`requeue_final`](crate::HandlerOptions::requeue_final), such as the period of a reconciler, if that is
/// shorter. Use it if a user has to act where no change calls the handler; [`Terminal`] ends the calls until a change.
///
/// ```
/// use lariat::controller::RetrySlowly;
/// use lariat::HandlerError;
///
/// let error: HandlerError = RetrySlowly::because("the quota of the project is used up").into();
/// assert!(error.is_retryable() && error.delay().is_none());
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct RetrySlowly {
    reason: String,
    #[source]
    directive: Directive,
}

impl RetrySlowly {
    /// Creates an error that is retried slowly.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            directive: Directive::RetrySlowly,
        }
    }
}

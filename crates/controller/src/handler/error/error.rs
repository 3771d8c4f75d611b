//! The error of a handler.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use lariat_queue::Priority;
use serde::Serialize;

use super::chain::ErrorChain;
use super::directive::Directive;
use crate::current;
use crate::handler::outcome::Updated;
use crate::written;

/// The error of a handler, converted from any error.
///
/// Every error converts into a `HandlerError` with `?`, and is retried by default: the handler is called again for the
/// key after a growing delay, without the other handlers. Use [`terminal`](Self::terminal) for an error that a retry
/// cannot help, and [`ignore`](Self::ignore) for an error that counts as a success.
///
/// Some errors set their own retry. They are found at any depth among the causes, also if `anyhow::Error` or
/// `#[error(transparent)]` wraps them:
///
/// - A [`Terminal`](super::Terminal) is not retried, an [`Ignore`](super::Ignore) counts as a success, a
///   [`RetryAfter`](super::RetryAfter) is retried after its delay, and a [`RetrySlowly`](super::RetrySlowly) after
///   five minutes.
/// - A [`DecodeError`] of the object that the handler was called for is not retried until the object changes. A
///   [`DecodeError`] of another object is retried, because a correction of that object may not call this handler.
/// - A conflict (409) is retried, and logged at debug level only.
/// - A write that the API server refuses in any state is not retried if it is known to be a write of the object that
///   the handler was called for: a change of that object calls the handler again. Of another object, it is retried
///   [slowly](super::RetrySlowly), because no change may call this handler when a CRD, a policy or a webhook accepts it
///   again. A write is known if it was sent on the task of the call, and the response names the object, or the call has
///   written no other object.
/// - Refused in any state are requests that are too large ([`is_too_large`](lariat_client::is_too_large)), and objects
///   of which a field is missing, too long, of the wrong type or not a supported value, or whose name is invalid (422).
///   An invalid or forbidden value is retried as usual, because the API server reports that for a taken port, an
///   immutable field, and a rule that compares with the present state too. So are rejections by admission webhooks and
///   policies, and a JSON patch whose test fails.
/// - If the API server sets `retryAfterSeconds`, mostly with 429, 503 or 504, the retry comes no earlier, and later if
///   the handler's backoff is longer. A delay that the error sets itself ([`retry_after`](Self::retry_after)) replaces
///   both.
///
/// ```
/// use std::time::Duration;
///
/// use lariat::HandlerError;
///
/// let error = HandlerError::from("the volume is not attached yet");
/// assert!(error.is_retryable());
///
/// let error = error.retry_after(Duration::from_secs(5));
/// assert_eq!(error.delay(), Some(Duration::from_secs(5)));
///
/// let error = HandlerError::terminal("replicas is negative");
/// assert!(!error.is_retryable());
/// ```
///
/// [`DecodeError`]: lariat_cache::DecodeError
pub struct HandlerError {
    source: Box<dyn Error + Send + Sync>,
    class: Class,
    /// Settings that few errors have, so boxed.
    extra: Option<Box<Extra>>,
}

/// How a failure is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Retryable,
    Terminal,
    Ignored,
    /// The call exceeded the handler's timeout; retryable.
    TimedOut,
}

/// The settings of an error that few errors have.
#[derive(Default)]
struct Extra {
    updated: Option<Updated>,
    priority: Option<Priority>,
    retry_after: Option<Duration>,
    not_before: Option<Duration>,
    is_uncounted: bool,
    is_slow: bool,
}

impl HandlerError {
    /// Creates an error that is not retried.
    ///
    /// The handler is called again when the object changes, or its key is enqueued.
    #[must_use]
    pub fn terminal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(error.into(), Class::Terminal)
    }

    /// Creates an error that counts as a success.
    ///
    /// The handler is called again only if the error [sets a delay](Self::retry_after). The error is logged at debug
    /// level. lasso calls it `ErrIgnore`, wrangler `ErrSkip`.
    #[must_use]
    pub fn ignore(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(error.into(), Class::Ignored)
    }

    pub(crate) fn timed_out(limit: Duration) -> Self {
        let text = format!("timed out after {limit:?}");
        Self::new(text.into(), Class::TimedOut)
    }

    fn new(source: Box<dyn Error + Send + Sync>, class: Class) -> Self {
        Self {
            source,
            class,
            extra: None,
        }
    }

    /// Passes an updated object on to later handlers, although this one has failed.
    ///
    /// See [`Outcome::with_updated`](crate::Outcome::with_updated).
    #[must_use]
    pub fn with_updated<K>(mut self, object: impl Into<Arc<K>>) -> Self
    where
        K: Serialize + Send + Sync + 'static,
    {
        self.extra.get_or_insert_default().updated = Some(Updated::new(object.into()));
        self
    }

    /// Sets the priority of the retry (default: that of this call).
    #[must_use]
    pub fn at_priority(mut self, priority: Priority) -> Self {
        self.extra.get_or_insert_default().priority = Some(priority);
        self
    }

    /// Sets the delay of the retry; zero means immediately.
    ///
    /// By default it is the rate limiter's. Use it if the time is known, for example from a `Retry-After` header or the
    /// end of a maintenance window.
    ///
    /// The call still counts as a failure, or as a success if the error is [ignored](Self::ignore). A terminal error
    /// stays terminal, and is not retried.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.extra.get_or_insert_default().retry_after = Some(delay);
        self
    }

    /// Leaves the failure out of the handler's failures in a row.
    ///
    /// The count stays as it was, so such failures never exhaust [`max_retries`](crate::HandlerOptions::max_retries).
    /// They are still logged, and counted in the totals.
    ///
    /// Use it with [`retry_after`](Self::retry_after) if the handler works, but has to wait for something else.
    #[must_use]
    pub fn uncounted(mut self) -> Self {
        self.extra.get_or_insert_default().is_uncounted = true;
        self
    }

    /// Returns whether the error is retried.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.class, Class::Retryable | Class::TimedOut)
    }

    /// Returns whether the error counts as a success.
    #[must_use]
    pub fn is_ignored(&self) -> bool {
        self.class == Class::Ignored
    }

    /// Returns the error that the handler returned.
    #[must_use]
    pub fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.source
    }

    pub(crate) fn class(&self) -> Class {
        self.class
    }

    pub(crate) fn priority(&self) -> Option<Priority> {
        self.extra.as_ref()?.priority
    }

    /// Returns the delay [set](Self::retry_after) for the retry, if any.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.extra.as_ref()?.retry_after
    }

    pub(crate) fn is_uncounted(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.is_uncounted)
    }

    /// Returns whether a retry can hardly help.
    pub(crate) fn is_slow(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.is_slow)
    }

    pub(crate) fn take_updated(&mut self) -> Option<Updated> {
        self.extra.as_mut()?.updated.take()
    }

    /// Converts the error into one that is not retried.
    #[must_use]
    pub fn into_terminal(self) -> Self {
        Self {
            class: Class::Terminal,
            ..self
        }
    }

    /// Returns whether the API server refused a write with a conflict (409).
    ///
    /// The retry sees the new state, so a conflict is logged at debug level only.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        ErrorChain::of(&*self.source).is_conflict()
    }

    /// Returns the least delay that the API server asked for.
    pub(crate) fn not_before(&self) -> Option<Duration> {
        self.extra.as_ref()?.not_before
    }

    /// Makes the error terminal if it is a decode error or a refused write of the handler's own object.
    ///
    /// An error is classified when it is converted. If that happens on a task that the handler spawned, the call's
    /// object is not known there.
    pub(crate) fn of_call(self, gvk: &Gvk, key: &ObjectKey) -> Self {
        let chain = ErrorChain::of(&*self.source);
        let is_own = || {
            let refused = || {
                chain
                    .directive()
                    .is_none()
                    .then(|| chain.refused_for_good())
            };
            chain.undecodable() == Some((gvk, key))
                || refused().flatten().is_some_and(written::is_own)
        };
        match self.class {
            // A retry that the handler has set by hand takes precedence.
            Class::Retryable if !self.is_decided() && is_own() => self.into_terminal(),
            _ => self,
        }
    }

    /// Returns whether the retry was set by hand.
    fn is_decided(&self) -> bool {
        self.delay().is_some() || self.is_uncounted()
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let source = error.into();
        let chain = ErrorChain::of(&*source);
        let not_before = chain.not_before();
        // Known only on the task of the call; `of_call` covers errors that are converted on other tasks.
        let is_of_own = || {
            let object = chain.undecodable();
            object.is_some_and(|(gvk, key)| current::is_about(gvk, key))
        };
        let (directive, refused) = (chain.directive(), chain.refused_for_good());
        let class = match directive {
            Some(Directive::Ignore) => Class::Ignored,
            Some(Directive::Terminal) => Class::Terminal,
            Some(Directive::RetryAfter(_) | Directive::RetrySlowly) => Class::Retryable,
            None if refused.is_some_and(written::is_own) || is_of_own() => Class::Terminal,
            None => Class::Retryable,
        };
        let is_slow = match directive {
            Some(directive) => matches!(directive, Directive::RetrySlowly),
            None => refused.is_some(),
        };
        let delay = chain.delay();
        let mut error = Self::new(source, class);
        if delay.is_some() || not_before.is_some() || is_slow {
            let extra = error.extra.get_or_insert_default();
            (extra.retry_after, extra.not_before, extra.is_slow) = (delay, not_before, is_slow);
        }
        error
    }
}

impl fmt::Display for HandlerError {
    /// Writes the error and its causes in one line, without repetitions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = lariat_core::describe(&*self.source);
        f.write_str(ErrorChain::of(&*self.source).without_directive(&text))
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerError")
            .field("source", &self.source)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

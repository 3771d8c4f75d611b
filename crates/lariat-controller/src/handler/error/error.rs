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

/// A handler's failure, of whatever error it was made.
///
/// Every error converts into one with `?`, and is tried again: the handler is called once more, alone,
/// after a delay that grows with its failures. [`terminal`](Self::terminal) is for what trying again
/// does not help, [`ignore`](Self::ignore) for what is no failure at all.
///
/// Some errors say themselves what is to be done. They are found among the causes too, at any depth, also where
/// `anyhow::Error` or `#[error(transparent)]` wraps them:
///
/// - A [`Terminal`] is not tried again, an [`Ignore`] counts as a success, a [`RetryAfter`] is tried again after its
///   delay.
/// - A [`DecodeError`] of the object the handler was called for is not tried again before that changes. One of another
///   object is, for nothing else may call the handler when that object is corrected.
/// - A conflict (409) is tried again, and not logged as a warning.
/// - What is too large for the API server (413) is not tried again.
/// - What is invalid (422) is not tried again if the API server says that a field is missing, too long, of the wrong
///   type or none of the supported values, or that the name is invalid. What is merely an invalid or forbidden value is
///   tried again: a taken port, an immutable field and a rule that compares with the present state are answered like
///   that. So is what an admission webhook or policy refuses, and a JSON patch whose test fails.
/// - Where the API server says how long to wait (`retryAfterSeconds`, mostly with 429, 503 or 504), the next attempt is
///   no sooner, and later if the delay between attempts has grown longer.
///
/// [`DecodeError`]: lariat_cache::DecodeError
pub struct HandlerError {
    source: Box<dyn Error + Send + Sync>,
    class: Class,
    /// What few errors have.
    extra: Option<Box<Extra>>,
}

/// What is to be done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Retryable,
    Terminal,
    Ignored,
    /// Our own timeout fired; retryable.
    TimedOut,
}

#[derive(Default)]
struct Extra {
    updated: Option<Updated>,
    priority: Option<Priority>,
    retry_after: Option<Duration>,
    not_before: Option<Duration>,
    is_held: bool,
}

impl HandlerError {
    /// Makes an error after which the handler is not called again until something happens.
    #[must_use]
    pub fn terminal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(error.into(), Class::Terminal)
    }

    /// Makes an error that counts as a success: nothing is tried again unless it [says when](Self::retry_after), and
    /// nothing is logged but at debug level. lasso calls it `ErrIgnore`, wrangler `ErrSkip`.
    #[must_use]
    pub fn ignore(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(error.into(), Class::Ignored)
    }

    pub(crate) fn timed_out(limit: Duration) -> Self {
        let text = format!("took longer than {limit:?} and was dropped");
        Self::new(text.into(), Class::TimedOut)
    }

    fn new(source: Box<dyn Error + Send + Sync>, class: Class) -> Self {
        Self {
            source,
            class,
            extra: None,
        }
    }

    /// Passes an object on to the handlers that are called after this one, although this one failed; see
    /// [`Outcome::with_updated`](crate::Outcome::with_updated).
    #[must_use]
    pub fn with_updated<K>(mut self, object: impl Into<Arc<K>>) -> Self
    where
        K: Serialize + Send + Sync + 'static,
    {
        self.extra.get_or_insert_default().updated = Some(Updated::new(object.into()));
        self
    }

    /// Sets how urgent the next attempt is (default: as urgent as this one).
    #[must_use]
    pub fn at_priority(mut self, priority: Priority) -> Self {
        self.extra.get_or_insert_default().priority = Some(priority);
        self
    }

    /// Sets when the handler is called again (default: after a delay that grows with its failures); zero means at
    /// once. It counts as a failure all the same, or as a success if it is [ignored](Self::ignore). An error that is
    /// terminal stays so.
    ///
    /// Use it where somebody said when: a `Retry-After`, the end of a maintenance window.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.extra.get_or_insert_default().retry_after = Some(delay);
        self
    }

    /// Makes it a failure that is not counted among those in a row: they stay as many as they were, so however often it
    /// comes, [`max_retries`](crate::HandlerOptions::max_retries) does not give up over it. It is logged, and counted
    /// in the totals, as ever.
    ///
    /// Use it with [`retry_after`](Self::retry_after) where the handler was not to blame and somebody has to act first.
    #[must_use]
    pub fn held(mut self) -> Self {
        self.extra.get_or_insert_default().is_held = true;
        self
    }

    /// Returns whether the handler is called again for it.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.class, Class::Retryable | Class::TimedOut)
    }

    /// Returns whether it counts as a success.
    #[must_use]
    pub fn is_ignored(&self) -> bool {
        self.class == Class::Ignored
    }

    /// Returns the error the handler returned.
    #[must_use]
    pub fn source(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.source
    }

    pub(crate) fn class(&self) -> Class {
        self.class
    }

    pub(crate) fn priority(&self) -> Option<Priority> {
        self.extra.as_ref()?.priority
    }

    /// Returns when the handler wants to be called again, if it was [said](Self::retry_after).
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.extra.as_ref()?.retry_after
    }

    pub(crate) fn is_held(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.is_held)
    }

    pub(crate) fn take_updated(&mut self) -> Option<Updated> {
        self.extra.as_mut()?.updated.take()
    }

    /// Makes it an error after which the handler is not called again until something happens.
    #[must_use]
    pub fn into_terminal(self) -> Self {
        Self {
            class: Class::Terminal,
            ..self
        }
    }

    /// Returns whether the API server refused a write because the object had changed since: the next
    /// attempt sees the new state, so this is everyday life and not worth a warning.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        ErrorChain::of(&*self.source).is_conflict()
    }

    /// Returns how long the API server asked to wait at least.
    pub(crate) fn not_before(&self) -> Option<Duration> {
        self.extra.as_ref()?.not_before
    }

    /// Makes it terminal if it says that the object the handler was called for cannot be decoded. Errors are classified
    /// where they are converted, which may be outside of the call, on a task of the handler's.
    pub(crate) fn of_call(self, gvk: &Gvk, key: &ObjectKey) -> Self {
        let is_own = || ErrorChain::of(&*self.source).undecodable() == Some((gvk, key));
        match self.class {
            Class::Retryable if !self.is_decided() && is_own() => self.into_terminal(),
            _ => self,
        }
    }

    /// Returns whether it says when it is to be tried again.
    fn is_decided(&self) -> bool {
        self.delay().is_some() || self.is_held()
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let source = error.into();
        let chain = ErrorChain::of(&*source);
        let not_before = chain.not_before();
        let is_of_own = || {
            let object = chain.undecodable();
            object.is_some_and(|(gvk, key)| current::is_about(gvk, key))
        };
        let class = match chain.directive() {
            Some(Directive::Ignore) => Class::Ignored,
            Some(Directive::Terminal) => Class::Terminal,
            Some(Directive::RetryAfter(_)) => Class::Retryable,
            None if chain.is_refused_for_good() || is_of_own() => Class::Terminal,
            None => Class::Retryable,
        };
        let delay = chain.delay();
        let mut error = Self::new(source, class);
        if delay.is_some() || not_before.is_some() {
            let extra = error.extra.get_or_insert_default();
            (extra.retry_after, extra.not_before) = (delay, not_before);
        }
        error
    }
}

impl fmt::Display for HandlerError {
    /// Writes the error and its causes on one line, each thing said once.
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

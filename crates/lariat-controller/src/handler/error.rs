//! What a handler says when it failed.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::DecodeError;
use lariat_queue::Priority;
use serde::Serialize;

use super::outcome::Updated;

/// A handler's failure, of whatever error it was made.
///
/// Every error converts into one with `?`, and is tried again: the handler is called once more, alone,
/// after a delay that grows with its failures. [`terminal`](Self::terminal) is for what trying again
/// cannot mend, [`ignore`](Self::ignore) for what is no failure at all. A [`DecodeError`] is terminal by
/// itself, like a [`Terminal`], an [`Ignore`] ignored, and a [`RetryAfter`] waited for, also as the cause of another error.
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
        let status = chain(&*self.source).find_map(|each| {
            // An error that boxes its cause has the box as its cause.
            let boxed = each.downcast_ref::<Box<kube::Error>>().map(|each| &**each);
            match each.downcast_ref().or(boxed) {
                Some(kube::Error::Api(status)) => Some(status),
                _ => None,
            }
        });
        status.is_some_and(|status| status.reason == "Conflict")
    }
}

/// Iterates over an error and its causes.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |each: &&'a (dyn Error + 'static)| {
        (**each).source()
    })
}

/// An error that says, from wherever it is returned, that the failure is to be ignored; see
/// [`HandlerError::ignore`]. It is found as the cause of another error too.
///
/// ```
/// use lariat_controller::{HandlerError, Ignore};
///
/// fn deep_inside() -> Result<(), Ignore> {
///     Err(Ignore::because("somebody else's object"))
/// }
///
/// let error: HandlerError = deep_inside().unwrap_err().into();
/// assert!(!error.is_retryable());
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Ignore(String);

impl Ignore {
    /// Makes an error that is to be ignored.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// An error that says, from wherever it is returned, that trying again does not help; see
/// [`HandlerError::terminal`]. It is found as the cause of another error too.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Terminal(String);

impl Terminal {
    /// Makes an error that trying again cannot mend.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// An error that says, from wherever it is returned, when to try again; see [`HandlerError::retry_after`]. It is found as
/// the cause of another error too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("to be tried again after {0:?}")]
pub struct RetryAfter(Duration);

impl RetryAfter {
    /// Makes an error that is tried again after a delay; zero means at once.
    #[must_use]
    pub fn new(delay: Duration) -> Self {
        Self(delay)
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let source = error.into();
        let delay = chain(&*source).find_map(|each| each.downcast_ref::<RetryAfter>());
        let delay = delay.copied();
        let class = |each: &(dyn Error + 'static)| match each {
            each if each.is::<Ignore>() => Some(Class::Ignored),
            each if each.is::<Terminal>() => Some(Class::Terminal),
            // Content that is not there may be the next time.
            each if each
                .downcast_ref()
                .is_some_and(|e: &DecodeError| !e.is_no_content()) =>
            {
                Some(Class::Terminal)
            }
            _ => None,
        };
        let class = chain(&*source).find_map(class).unwrap_or(Class::Retryable);
        let error = Self::new(source, class);
        match delay {
            Some(RetryAfter(delay)) => error.retry_after(delay),
            None => error,
        }
    }
}

impl fmt::Display for HandlerError {
    /// Writes the error and its causes on one line, each thing said once.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&lariat_core::describe(&*self.source))
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
mod tests {
    use super::*;

    fn fails() -> Result<(), HandlerError> {
        Err(std::io::Error::other("no"))?;
        Ok(())
    }

    #[derive(Debug, thiserror::Error)]
    #[error("cannot write")]
    struct Outer(#[from] kube::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("cannot write")]
    struct Boxing(#[source] Box<kube::Error>);

    fn refusal(reason: &str) -> kube::Error {
        let status = kube::core::Status::failure("no", reason).with_code(409);
        kube::Error::Api(status.boxed())
    }

    fn refused(reason: &str) -> HandlerError {
        Outer(refusal(reason)).into()
    }

    #[test]
    fn a_conflict_is_told_from_other_refusals_with_its_code() {
        assert!(refused("Conflict").is_conflict());
        assert!(!refused("AlreadyExists").is_conflict());
        assert!(HandlerError::from(Boxing(Box::new(refusal("Conflict")))).is_conflict());
    }

    #[test]
    fn any_error_converts_and_is_tried_again() {
        let error = fails().unwrap_err();
        assert!(error.is_retryable());
        assert_eq!(error.to_string(), "no");
        assert!(!HandlerError::terminal("never").is_retryable());
        assert_eq!(HandlerError::from("text").to_string(), "text");
        let never = HandlerError::from(Terminal::because("never"));
        assert!(!never.is_retryable() && !never.is_ignored());
        let delay = Duration::from_secs(3);
        assert_eq!(
            HandlerError::from(RetryAfter::new(delay)).delay(),
            Some(delay)
        );
    }
}

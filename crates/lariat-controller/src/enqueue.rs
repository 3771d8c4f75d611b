//! What code says when it enqueues a key.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey, ParseKeyError, debug_as_description};
use lariat_queue::Priority;

/// A request to call handlers for a key.
///
/// It remembers the line of code that made it, and the handler that line was called from, for the causes
/// of the run.
///
/// ```
/// use std::time::Duration;
/// use lariat_controller::Enqueue;
/// use lariat_queue::Priority;
///
/// let request = Enqueue::after(Duration::from_secs(30))
///     .to("cleanup")
///     .because("the lease ends then")
///     .priority(Priority::Low);
/// # let _ = request;
/// ```
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until a controller has it"]
pub struct Enqueue {
    pub(crate) after: Duration,
    pub(crate) rate_limited: bool,
    pub(crate) to: Option<Arc<str>>,
    pub(crate) because: Option<Arc<str>>,
    pub(crate) priority: Option<Priority>,
    pub(crate) at: &'static Location<'static>,
}

impl Enqueue {
    /// Calls all handlers now, at normal priority.
    #[track_caller]
    pub fn now() -> Self {
        Self::after(Duration::ZERO)
    }

    /// Calls all handlers after a delay; zero means now, and what no clock can hold means never.
    ///
    /// The delay is kept, whatever calls the handlers meanwhile; of two delays of one key the earlier wins.
    #[track_caller]
    pub fn after(delay: Duration) -> Self {
        Self {
            after: delay,
            rate_limited: false,
            to: None,
            because: None,
            priority: None,
            at: Location::caller(),
        }
    }

    /// Calls all handlers after the delay the kind's rate limiter asks for: longer with every such request
    /// for the key, until a run of it succeeds and nothing of it is left. This is client-go's
    /// `AddRateLimited`, and lasso's `Enqueue`.
    #[track_caller]
    pub fn rate_limited() -> Self {
        Self {
            rate_limited: true,
            ..Self::now()
        }
    }

    /// Calls one handler only.
    pub fn to(self, handler: impl Into<Arc<str>>) -> Self {
        let to = Some(handler.into());
        Self { to, ..self }
    }

    /// Says why, for the causes of the run.
    pub fn because(self, reason: impl Into<Arc<str>>) -> Self {
        let because = Some(reason.into());
        Self { because, ..self }
    }

    /// Sets how urgent it is (default: normal, and low for [all keys](crate::SharedController::enqueue_all)); a key
    /// that is queued already keeps the higher of the two.
    pub fn priority(self, priority: Priority) -> Self {
        let priority = Some(priority);
        Self { priority, ..self }
    }
}

/// A request that was not carried out.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// The request names a handler that is not there.
    #[error("{gvk} has no handler named {name:?} to enqueue {} to; its handlers: {handlers}",
        key.as_ref().map_or("its keys", ObjectKey::as_str))]
    UnknownHandler {
        /// The kind.
        gvk: Gvk,
        /// The key; none if all were meant.
        key: Option<ObjectKey>,
        /// The name.
        name: Arc<str>,
        /// The names there are.
        handlers: String,
    },
    /// The text is not a key.
    #[error(transparent)]
    NotAKey(#[from] ParseKeyError),
}

debug_as_description!(EnqueueError);

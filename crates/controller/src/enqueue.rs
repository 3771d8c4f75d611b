//! Requests to enqueue keys.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey, ParseKeyError, debug_as_description};
use lariat_queue::Priority;

/// A request to call handlers for a key.
///
/// It records the line of code that created it, for the causes of the run. If it is used in a handler, the causes name
/// that handler as well.
///
/// ```
/// use std::time::Duration;
/// use lariat::{Enqueue, Priority};
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
    /// Calls all handlers immediately, at normal priority.
    #[track_caller]
    pub fn now() -> Self {
        Self::after(Duration::ZERO)
    }

    /// Calls all handlers after a delay; zero means immediately.
    ///
    /// As with client-go's `AddAfter`, the delayed call happens even if the handlers are called earlier for another
    /// reason. While an `enqueue_after` of the key waits for its time, no second one is scheduled: the earlier time
    /// counts for both. A delay that overflows the clock means never.
    #[track_caller]
    pub fn after(delay: Duration) -> Self {
        Self {
            after: delay,
            rate_limited: false,
            to: None,
            because: None,
            priority: None,
            // All constructors are `#[track_caller]`, so this is a line of the program.
            at: Location::caller(),
        }
    }

    /// Calls all handlers after the delay of the kind's rate limiter.
    ///
    /// The delay grows with every such request for the key, until a run of the key in which no handler fails. This is
    /// client-go's `AddRateLimited`, and lasso's `Enqueue`.
    #[track_caller]
    pub fn rate_limited() -> Self {
        Self {
            rate_limited: true,
            ..Self::now()
        }
    }

    /// Calls only the handler of this name.
    pub fn to(self, handler: impl Into<Arc<str>>) -> Self {
        let to = Some(handler.into());
        Self { to, ..self }
    }

    /// Sets a reason, which the causes of the run show.
    pub fn because(self, reason: impl Into<Arc<str>>) -> Self {
        let because = Some(reason.into());
        Self { because, ..self }
    }

    /// Sets the priority (default normal).
    ///
    /// For [`enqueue_all`](crate::SharedController::enqueue_all) the default is low. A key that is queued already keeps
    /// the higher of both priorities.
    pub fn priority(self, priority: Priority) -> Self {
        let priority = Some(priority);
        Self { priority, ..self }
    }
}

/// The error of a request to enqueue. Nothing was enqueued.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// The kind has no handler of this name.
    #[error("{gvk} has no handler named {name:?} to enqueue {} to; its handlers: {handlers}",
        key.as_ref().map_or("its keys", ObjectKey::as_str))]
    UnknownHandler {
        /// The kind.
        gvk: Gvk,
        /// The key; none if the request was for all keys.
        key: Option<ObjectKey>,
        /// The name.
        name: Arc<str>,
        /// The names of the kind's handlers.
        handlers: String,
    },
    /// The text is not a key.
    #[error(transparent)]
    NotAKey(#[from] ParseKeyError),
}

debug_as_description!(EnqueueError);

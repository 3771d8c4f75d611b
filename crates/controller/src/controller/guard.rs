//! Isolates a worker from the handler that it calls: panics, errors and tracing.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use lariat_cache::CachedObject;
use lariat_core::{Gvk, ObjectKey, without_credentials};
use lariat_queue::Priority;
use tracing::field::{self, Empty};
use tracing::{Instrument, Level, Span};

use crate::current::{self, Caller};
use crate::handler::{Call, Class, HandlerError, HandlerResult, Updated, through};
use crate::panics::{self, Panicked};
use crate::totals::CallOutcome;
use crate::written;

/// How a call ended, with the user's types converted.
pub(super) struct Answer {
    pub(super) ended: CallOutcome,
    pub(super) result: Result<Again, Failure>,
    /// The newest state that the handler returned, for the handlers after it.
    ///
    /// Set for failed calls too.
    pub(super) updated: Option<Arc<CachedObject>>,
}

/// Whether a handler asked to be called again, and with which priority.
pub(super) struct Again {
    pub(super) after: Option<Duration>,
    pub(super) priority: Option<Priority>,
    /// The handler's note for the history.
    pub(super) note: Option<Arc<str>>,
}

/// The parts of a handler's error that the controller needs.
///
/// The error itself does not leave the guarded call: it is the user's type, and dropping or formatting it may panic.
pub(super) struct Failure {
    pub(super) text: Arc<str>,
    pub(super) class: Class,
    pub(super) is_conflict: bool,
    /// Whether a retry can hardly help.
    pub(super) is_slow: bool,
    /// Whether the failure is left out of the failures in a row.
    pub(super) is_uncounted: bool,
    /// Whether the handler was not called, so that none of its retries is used up.
    pub(super) is_uncalled: bool,
    pub(super) priority: Option<Priority>,
    /// The delay before the next attempt, if the error sets one.
    pub(super) after: Option<Duration>,
    /// The least delay before the next attempt, from the API server.
    pub(super) not_before: Option<Duration>,
    /// Where the handler panicked, if it did.
    pub(super) panicked: Option<Panicked>,
}

impl Failure {
    fn of(error: &HandlerError) -> Self {
        Self {
            text: without_credentials(&error.to_string()).into(),
            class: error.class(),
            is_conflict: error.is_conflict(),
            is_slow: error.is_slow(),
            is_uncounted: error.is_uncounted(),
            is_uncalled: false,
            priority: error.priority(),
            after: error.delay(),
            not_before: error.not_before(),
            panicked: None,
        }
    }
}

impl Answer {
    pub(super) fn failed(error: &HandlerError) -> Self {
        Self {
            ended: ended(error),
            result: Err(Failure::of(error)),
            updated: None,
        }
    }

    /// Answers for a handler that could not be called.
    pub(super) fn uncalled(error: &HandlerError) -> Self {
        let failure = Failure {
            is_uncalled: true,
            ..Failure::of(error)
        };
        Self {
            ended: ended(error),
            result: Err(failure),
            updated: None,
        }
    }
}

/// Calls a handler through its middleware, in a span, and catches panics.
pub(super) async fn guarded(call: Call, caller: Caller) -> Answer {
    let span = span_of(&call);
    let answer = called(call, caller).instrument(span.clone()).await;
    note(&span, &answer);
    answer
}

/// Returns the span of a call.
///
/// Formatting the causes costs time and memory, so they are included only if something logs at debug level.
fn span_of(call: &Call) -> Span {
    let is_verbose = tracing::level_enabled!(Level::DEBUG);
    tracing::info_span!(
        target: "lariat::run",
        "run",
        kind = %call.gvk(),
        key = %call.key(),
        handler = call.handler(),
        run = call.run(),
        attempt = call.attempt(),
        causes = is_verbose.then(|| field::display(call.causes())),
        outcome = Empty,
        error = Empty,
    )
}

/// Records in the span how the call ended. The span of a dropped call has no outcome.
fn note(span: &Span, answer: &Answer) {
    span.record("outcome", answer.ended.as_str());
    if let Err(failure) = &answer.result {
        span.record("error", &*failure.text);
    }
}

/// Calls a handler through its middleware, and catches panics.
async fn called(call: Call, caller: Caller) -> Answer {
    // Copied, since the handler consumes the call.
    let (gvk, key) = (call.gvk().clone(), call.key().clone());
    // Encoding the returned object runs the user's `Serialize`, and formatting an error its `Display`. So both are
    // inside the guard.
    let answering = async { answer(&gvk, &key, through(call).await) };
    let answering = written::within(gvk.clone(), key.clone(), answering);
    let noted = panics::noting(answering, Panicked::log_caught);
    let caught = AssertUnwindSafe(noted).catch_unwind();
    match current::within(caller, caught).await {
        Ok(answer) => answer,
        Err(panic) => {
            let text = panics::message(&*panic);
            let failure = Failure {
                // The panic hook has stored it on this thread, in the poll that panicked.
                panicked: panics::take(),
                ..Failure::of(&format!("panicked: {text}").into())
            };
            Answer {
                ended: CallOutcome::Panicked,
                result: Err(failure),
                updated: None,
            }
        }
    }
}

/// Converts the result of a handler.
///
/// A success whose updated object cannot be encoded becomes a failure.
fn answer(gvk: &Gvk, key: &ObjectKey, result: HandlerResult) -> Answer {
    let make_out = |updated: Option<Updated>| match updated {
        Some(updated) => updated.encode(gvk, key),
        None => Ok(None),
    };
    let mut outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => {
            let mut error = error.of_call(gvk, key);
            // The error matters more than an object that cannot be encoded, which is dropped.
            let updated = make_out(error.take_updated());
            return Answer {
                updated: updated.unwrap_or_default(),
                ..Answer::failed(&error)
            };
        }
    };
    let again = Again {
        after: outcome.delay(),
        priority: outcome.priority(),
        note: outcome
            .take_note()
            .map(|note| without_credentials(&note).into()),
    };
    match make_out(outcome.into_updated()) {
        Ok(updated) => Answer {
            ended: match again.after {
                Some(_) => CallOutcome::Requeued,
                None => CallOutcome::Done,
            },
            result: Ok(again),
            updated,
        },
        Err(error) => Answer::failed(&error),
    }
}

fn ended(error: &HandlerError) -> CallOutcome {
    match error.class() {
        Class::Retryable => CallOutcome::Failed,
        Class::Terminal => CallOutcome::Terminal,
        Class::Ignored => CallOutcome::Ignored,
        Class::TimedOut => CallOutcome::TimedOut,
    }
}

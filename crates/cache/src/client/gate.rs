//! Gates: interceptors that decide about a write before it is sent.

use std::error::Error;
use std::fmt;

use http::StatusCode;
use lariat_core::Fence;

use super::pending::PendingWrite;

/// An interceptor of all writes through the clients of a factory.
///
/// See [`SharedClientFactory::set_gate`](super::SharedClientFactory::set_gate). Access reviews and similar requests,
/// which are a POST but store nothing, are not writes. Calls into pods (`exec`, `attach`, `portforward`) are writes,
/// also as the GET that starts a WebSocket. Requests to a `proxy` are writes, unless they are a GET.
///
/// ```
/// use lariat::cache::{GateDecision, PendingWrite, WriteGate, WriteVerb};
///
/// /// Refuses all deletions.
/// struct KeepAll;
///
/// impl WriteGate for KeepAll {
///     fn admit(&self, write: &PendingWrite<'_>) -> GateDecision {
///         match write.verb() {
///             WriteVerb::Delete | WriteVerb::DeleteCollection => {
///                 GateDecision::Refuse(format!("{write} is not allowed").into())
///             }
///             _ => GateDecision::Pass,
///         }
///     }
/// }
/// ```
pub trait WriteGate: Send + Sync + 'static {
    /// Decides about a write.
    ///
    /// The function is called on the task of the caller, which waits for it, so it must be quick.
    fn admit(&self, write: &PendingWrite<'_>) -> GateDecision;

    /// Returns the fence of the write that was just admitted (default: none).
    ///
    /// The function is called on the same task as [`admit`](Self::admit), unless the write is a dry run. The client
    /// asks the fence right before each attempt and after every wait, and aborts the request when the fence closes.
    fn fence(&self) -> Option<Box<dyn Fence>> {
        None
    }

    /// Runs a function that applies the answer of a write to the caches (default: just that).
    ///
    /// A gate can set there on whose behalf the write was sent.
    fn attribute(&self, publish: &mut dyn FnMut()) {
        publish();
    }
}

/// The decision of a gate about a write.
#[non_exhaustive]
pub enum GateDecision {
    /// The write is sent, and its result is not reported to the gate.
    Pass,
    /// The write is sent, and the receipt receives its result.
    Send(Box<dyn WriteReceipt>),
    /// The write is sent as a dry run (`dryRun=All`).
    ///
    /// The API server validates and answers it, and stores nothing. The caller gets that answer; caches do not.
    DryRun(Box<dyn WriteReceipt>),
    /// The write is not sent; the caller gets the error as [`kube::Error::Service`].
    Refuse(Box<dyn Error + Send + Sync>),
}

/// Receives the result of a write, once.
///
/// A receipt is dropped without a call if the result is unknown: the caller was cancelled, or no answer came.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use std::sync::Arc;
/// use lariat::cache::{GateDecision, PendingWrite, WriteResult, WriteGate, WriteReceipt};
///
/// /// Counts the writes that the API server answered.
/// #[derive(Clone, Default)]
/// struct Answered(Arc<AtomicUsize>);
///
/// impl WriteReceipt for Answered {
///     fn ended(self: Box<Self>, end: &WriteResult<'_>) {
///         if let WriteResult::Answered { .. } = end {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// impl WriteGate for Answered {
///     fn admit(&self, _: &PendingWrite<'_>) -> GateDecision {
///         GateDecision::Send(Box::new(self.clone()))
///     }
/// }
/// ```
pub trait WriteReceipt: Send {
    /// Receives the result.
    ///
    /// The function is called on the task of the caller, which waits for it, so it must be quick.
    fn ended(self: Box<Self>, end: &WriteResult<'_>);
}

/// The result of a write.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum WriteResult<'a> {
    /// The write was not sent.
    NotSent,
    /// The API server answered.
    Answered {
        /// The HTTP status, of a success or an error.
        status: StatusCode,
        /// The answer, if it is JSON.
        body: Option<&'a [u8]>,
        /// The object before a dry run of an update or patch, as JSON.
        ///
        /// The state is read from the API server just before the dry run. `None` for other writes, if there was no such
        /// object, or if it may not be read.
        before: Option<&'a [u8]>,
        /// Whether the write was sent as a dry run, so that nothing is stored.
        is_dry_run: bool,
    },
}

impl fmt::Debug for GateDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("Pass"),
            Self::Send(_) => f.write_str("Send"),
            Self::DryRun(_) => f.write_str("DryRun"),
            Self::Refuse(error) => f.debug_tuple("Refuse").field(error).finish(),
        }
    }
}

impl fmt::Debug for WriteResult<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent => f.write_str("NotSent"),
            // Without the body, which may be a Secret.
            Self::Answered { status, .. } => f.debug_tuple("Answered").field(status).finish(),
        }
    }
}

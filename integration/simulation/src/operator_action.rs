//! Actions that operators report, for the checkers of operators.

use std::fmt;
use std::time::Duration;

use lariat_core::ObjectKey;
use lariat_sim::Process;
use lariat_sim::internals::{Opaque, ProcessExt};

/// An action of an operator or a foreign client, completed or about to begin.
#[derive(Debug, Clone)]
pub(crate) enum OperatorAction {
    /// The process becomes an operator with this longest reconcile period.
    ///
    /// With `fetches`, reads that its caches cannot answer are part of its work.
    Operates { period: Duration, fetches: bool },
    /// The operator starts.
    Starts,
    /// The operator stops: its recorder has little time left, and drops what it cannot write by then.
    Stops,
    /// A cleanup begins.
    CleansUp { key: ObjectKey, uid: String },
    /// A cleanup is done, and the ledger is written.
    CleanedUp { key: ObjectKey, uid: String },
    /// A reconcile of an object succeeded.
    Reconciled { key: ObjectKey, uid: String },
    /// `on_deleted` was called for an object, and succeeded.
    Ended { key: ObjectKey, uid: String },
    /// An Event about an object is handed to the recorder.
    Published { uid: String, reason: &'static str },
    /// A foreign client is about to remove the finalizer without a cleanup.
    RemovesFinalizer { key: ObjectKey },
}

impl OperatorAction {
    /// Reports it as an event of the run.
    pub(crate) fn report(self, process: &Process) {
        process.did(self.carried());
    }

    /// Returns the action as an event carries it.
    pub(crate) fn carried(self) -> Opaque {
        let text = self.to_string();
        Opaque::new(self, &text)
    }
}

impl fmt::Display for OperatorAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operates { period, .. } => write!(f, "operates, with a period of {period:?}"),
            Self::Starts => f.write_str("starts"),
            Self::Stops => f.write_str("stops"),
            Self::CleansUp { key, uid } => write!(f, "cleans up {key} ({uid})"),
            Self::CleanedUp { key, uid } => write!(f, "has cleaned up {key} ({uid})"),
            Self::Reconciled { key, uid } => write!(f, "has reconciled {key} ({uid})"),
            Self::Ended { key, uid } => write!(f, "knows that {key} is gone ({uid})"),
            Self::Published { uid, reason } => write!(f, "publishes {reason} about {uid}"),
            Self::RemovesFinalizer { key } => write!(f, "removes the finalizer of {key} by force"),
        }
    }
}

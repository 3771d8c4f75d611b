//! Errors of fleets.

use std::error::Error;
use std::sync::Arc;

use lariat_core::debug_as_description;

/// The error of a function that registers the reconcilers of a cluster.
pub type SetupError = Box<dyn Error + Send + Sync>;

/// A request to a fleet was refused, or it does not run.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The name of a cluster is empty.
    #[error("a cluster of a fleet needs a name")]
    NoName,
    /// The fleet has another cluster of the name.
    #[error("the fleet has a cluster named {name:?} already; remove it first")]
    NameTaken {
        /// The name.
        name: Arc<str>,
    },
    /// The fleet has no cluster of the name.
    #[error("the fleet has no running cluster named {name:?}")]
    Unknown {
        /// The name.
        name: Arc<str>,
    },
    /// The fleet runs already.
    #[error("the fleet runs already")]
    AlreadyRunning,
    /// A source of clusters cannot be followed.
    #[error("the clusters of {source_name} cannot be followed")]
    Source {
        /// What the source reads.
        source_name: String,
        /// Why.
        source: SetupError,
    },
    /// The handler of an enqueued key is unknown.
    #[error(transparent)]
    Enqueue(#[from] lariat_controller::EnqueueError),
}

debug_as_description!(FleetError);

//! The errors of fleets.

use std::error::Error;
use std::sync::Arc;

use lariat_core::debug_as_description;

/// The error of a function that registers the reconcilers of a cluster.
pub type SetupError = Box<dyn Error + Send + Sync>;

/// A fleet that refused a request or cannot run.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The name of the cluster is empty.
    #[error("the name of a cluster is empty")]
    NoName,
    /// The fleet has a cluster with this name already.
    #[error("the fleet already has a cluster named {name:?}; remove it first")]
    NameTaken {
        /// The name.
        name: Arc<str>,
    },
    /// The fleet has no cluster with this name, or its operator is not set up yet.
    #[error("the fleet has no running cluster named {name:?}")]
    Unknown {
        /// The name.
        name: Arc<str>,
    },
    /// The fleet is running already.
    #[error("the fleet is running already")]
    AlreadyRunning,
    /// The factory that fences the fleet has no leader election.
    #[error(
        "the factory that fences the fleet has no leader election: give it one, and no shards, which all lead"
    )]
    NoElection,
    /// This process has lost a lease that the fleet needs.
    #[error("the lease {lease} was lost, which fences the fleet")]
    Lost {
        /// Namespace and name of the lease.
        lease: String,
    },
    /// A source of clusters cannot be read.
    #[error("cannot watch the clusters of {source_name}")]
    Source {
        /// The description of the source.
        source_name: String,
        /// The cause.
        source: SetupError,
    },
    /// The enqueue request names a handler that does not exist.
    #[error(transparent)]
    Enqueue(#[from] lariat_controller::EnqueueError),
}

debug_as_description!(FleetError);

//! Errors of the cache.

use std::time::Duration;

use lariat_core::Gvk;

use crate::query::QueryError;
use crate::sql::StorageError;

/// The error of a cache that cannot be opened, or of a query that has no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The cache does not have the kind.
    #[error("the SQL cache has no {kind}; it has {}", known.join(", "))]
    UnknownKind {
        /// The kind.
        kind: Gvk,
        /// The kinds that the cache has.
        known: Vec<String>,
    },
    /// A kind was added twice.
    #[error("{kind} was added twice to the SQL cache: give it one schema with all fields")]
    KindTwice {
        /// The kind.
        kind: Gvk,
    },
    /// An association of a kind is invalid.
    #[error("the association {association} of {kind}: {reason}")]
    Association {
        /// The kind whose schema has the association.
        kind: Gvk,
        /// The name of the association.
        association: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The printer columns of a kind cannot be read.
    #[error(
        "the printer columns of {kind} cannot be read: {reason}; restart the program when they can be read, or list the fields in a Schema"
    )]
    Columns {
        /// The kind.
        kind: Gvk,
        /// What is wrong.
        reason: String,
    },
    /// A kind that is always encrypted has no key, and the cache is in a file.
    #[error(
        "{kind} is written to disk only encrypted: set a key with SqlCacheBuilder::sealed, or keep the cache in memory"
    )]
    NoKey {
        /// The kind.
        kind: Gvk,
    },
    /// The cache has no data key to rotate.
    #[error("the SQL cache has no key to rotate: set one with SqlCacheBuilder::sealed")]
    NotSealed,
    /// The query is invalid.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The file cannot be opened, read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The kind has not synced yet.
    #[error("{kind} is not in the SQL cache yet, after {waited:?}: its informer is {phase}")]
    NotSynced {
        /// The kind.
        kind: Gvk,
        /// The time the query waited.
        waited: Duration,
        /// The phase of its informer.
        phase: String,
    },
    /// Answers that clients have not read yet leave no room for another one.
    ///
    /// Only the HTTP service limits this.
    #[error(
        "the answers that clients have not read yet leave no room for one of {kind}: try again later"
    )]
    NoRoom {
        /// The kind.
        kind: Gvk,
    },
    /// The query exceeded its timeout.
    #[error(
        "the query of {kind} was interrupted after {after:?}: query fewer objects at a time, or raise SqlCacheBuilder::query_timeout"
    )]
    Timeout {
        /// The kind.
        kind: Gvk,
        /// The timeout.
        after: Duration,
    },
    /// The cache is stopped, or the runtime is shut down.
    #[error("the SQL cache has stopped")]
    Stopped,
}

//! The error of storage migrations.

/// A migration has ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrationError {
    /// The CRD cannot be read or changed.
    #[error("the CustomResourceDefinition {definition} cannot be {verb}")]
    Definition {
        /// The name of the CRD.
        definition: String,
        /// The request that failed.
        verb: &'static str,
        /// The cause.
        source: Box<kube::Error>,
    },
    /// The CRD has no storage version.
    #[error("the CustomResourceDefinition {0} has no storage version")]
    NoStorageVersion(String),
    /// The storage version has changed during the migration: run it again.
    #[error(
        "the storage version of {definition} has changed from {from} to {to} during the migration: run it again"
    )]
    Moved {
        /// The name of the CRD.
        definition: String,
        /// The storage version at the beginning.
        from: String,
        /// The storage version now.
        to: String,
    },
    /// Objects cannot be listed or written.
    #[error("the migration of {definition} was interrupted after {rewritten} objects")]
    Interrupted {
        /// The name of the CRD.
        definition: String,
        /// The number of objects that were rewritten.
        rewritten: usize,
        /// The token for [`resume`](super::StorageMigration::resume).
        ///
        /// `None` at the beginning.
        continue_token: Option<String>,
        /// The cause.
        source: Box<kube::Error>,
    },
}

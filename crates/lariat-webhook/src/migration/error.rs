//! The errors of storage migrations.

/// A migration has ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrationError {
    /// The CRD cannot be read or changed.
    #[error("the CustomResourceDefinition {definition} cannot be {verb}")]
    Definition {
        /// The name of the CRD.
        definition: String,
        /// What was to be done.
        verb: &'static str,
        /// The cause.
        source: Box<kube::Error>,
    },
    /// The CRD stores no version.
    #[error("the CustomResourceDefinition {0} has no storage version")]
    NoStorageVersion(String),
    /// The storage version has changed meanwhile: run the migration again.
    #[error(
        "the storage version of {definition} has changed from {from} to {to} during the migration: run it again"
    )]
    Moved {
        /// The name of the CRD.
        definition: String,
        /// The version that was stored at the beginning.
        from: String,
        /// The version that is stored now.
        to: String,
    },
    /// Objects cannot be listed or written.
    #[error("the migration of {definition} was interrupted after {rewritten} objects")]
    Interrupted {
        /// The name of the CRD.
        definition: String,
        /// How many objects were rewritten.
        rewritten: usize,
        /// Where to [resume](super::StorageMigration::resume); none at the beginning.
        continue_token: Option<String>,
        /// The cause.
        source: Box<kube::Error>,
    },
}

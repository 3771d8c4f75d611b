//! What a migration has done.

/// What a migration has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationReport {
    /// The storage version.
    pub version: String,
    /// How many objects were rewritten.
    pub rewritten: usize,
    /// How many objects others had written, or deleted, since they were listed; they need no rewrite.
    pub skipped: usize,
    /// The versions that were dropped from the status of the CRD; none if there was nothing to do.
    pub dropped: Vec<String>,
}

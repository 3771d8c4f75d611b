//! The report of a migration.

/// The result of a migration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationReport {
    /// The storage version.
    pub version: String,
    /// The number of objects that were rewritten.
    pub rewritten: usize,
    /// The number of objects that other clients have written or deleted since.
    ///
    /// They need no rewrite.
    pub skipped: usize,
    /// The versions that were removed from the status of the CRD.
    ///
    /// Empty if there was nothing to do.
    pub dropped: Vec<String>,
}

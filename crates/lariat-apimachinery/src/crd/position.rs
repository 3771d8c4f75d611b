//! Where a schema stands within the schema of a version.

/// Where a schema stands, as far as that decides what it may say.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Position<'a> {
    pub(super) path: &'a str,
    /// It is that of a whole custom resource.
    pub(super) root: bool,
    pub(super) in_metadata: bool,
    /// Why there must be no default.
    pub(super) no_default: Option<&'a str>,
    /// The list around it whose elements cannot be told apart.
    pub(super) uncorrelated: Option<&'a str>,
}

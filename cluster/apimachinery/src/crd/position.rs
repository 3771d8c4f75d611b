//! The position of a schema in the schema of a version.

use super::tolerated::Tolerated;

/// The position of a schema, as far as it decides what the schema may have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Position<'a> {
    pub(super) path: &'a str,
    /// It is that of a whole custom resource.
    pub(super) root: bool,
    pub(super) in_metadata: bool,
    /// Why there must be no default.
    pub(super) no_default: Option<&'a str>,
    /// The list around it whose elements have no keys.
    pub(super) uncorrelated: Option<&'a str>,
    /// How many values of the schema there are in an object; `None` for any number.
    pub(super) most_values: Option<u64>,
    pub(super) tolerated: Tolerated,
}

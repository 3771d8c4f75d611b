//! The checks that a stored specification does not pass, and that a change of it need not pass either.
//!
//! Source: `requireOpenAPISchema`, `requirePrunedDefaults` and their like of apiextensions-apiserver.

/// What an old specification has that a new one may have as well.
///
/// The default tolerates nothing, as for a creation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tolerated {
    /// Versions that are not served and have no schema.
    pub(super) missing_schemas: bool,
    /// Types that OpenAPI does not know.
    pub(super) types: bool,
    /// Defaults with unknown fields.
    pub(super) unpruned_defaults: bool,
    /// Sets of lists and maps that are not atomic.
    pub(super) sets: bool,
    /// Keys of lists that may be missing or null.
    pub(super) keys: bool,
    /// Rules that are too expensive, in a schema that stays as it is.
    pub(super) rule_costs: bool,
    /// Conversions without a known version of their reviews.
    pub(super) review_versions: bool,
    /// Certificates of the conversion's webhook that cannot be read.
    pub(super) bundle: bool,
}

//! The checks that a stored specification does not pass, and that a change of it need not pass either.
//!
//! Source: `requireOpenAPISchema`, `requirePrunedDefaults` and their like of apiextensions-apiserver.

use serde_json::Value;

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
    /// Conversions without a known version of their reviews.
    pub(super) review_versions: bool,
    /// Certificates of the conversion's webhook that cannot be read.
    pub(super) bundle: bool,
}

/// Returns whether something holds for a schema, or for one inside of it.
// `SchemaHas`, which looks into every member that can have a schema.
pub(super) fn any_schema(schema: &Value, holds: &impl Fn(&Value) -> bool) -> bool {
    let lists = ["allOf", "anyOf", "oneOf", "items"].map(|name| &schema[name]);
    let of_lists = lists.into_iter().filter_map(Value::as_array).flatten();
    let maps = ["properties", "patternProperties", "definitions"].map(|name| &schema[name]);
    let of_maps = maps.into_iter().filter_map(Value::as_object);
    let single = ["items", "not", "additionalProperties", "additionalItems"];
    let mut inner = of_lists.chain(of_maps.flat_map(|map| map.values())).chain(
        single
            .map(|name| &schema[name])
            .into_iter()
            .filter(|each| each.is_object()),
    );
    holds(schema) || inner.any(|each| any_schema(each, holds))
}

//! A search through a schema as it is written.

use serde_json::Value;

/// Returns whether something holds for a schema, or for one inside of it.
// `SchemaHas`, which looks into every member that can have a schema.
pub(crate) fn any_schema(schema: &Value, holds: &impl Fn(&Value) -> bool) -> bool {
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

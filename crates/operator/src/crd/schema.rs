//! The fields that a schema has, and those that the API server publishes.
//!
//! An API server stores an update of a CRD at once, and applies its schema later. Until then it drops the fields of an
//! object that only the new schema has, without an error. The OpenAPI document of the group version is built from the
//! same state as the schema that it applies, so it shows when that is the new one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::compare::served;
use super::json::{is_true, list, object, text};
use super::versions;

/// The fields of a version as paths, such as `spec.ports[].name`.
pub(super) type Fields = BTreeSet<String>;

/// The members of all objects, whose schemas are not those of the CRD.
const OF_ALL_OBJECTS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Returns the fields that the installed CRD lacks, by our served version.
///
/// A version that is not installed has none: it is not served before its schema is applied.
pub(super) fn new_fields(ours: &Value, theirs: &Value) -> BTreeMap<String, Fields> {
    let new = |version: &str| {
        let installed = fields_of_version(theirs, version)?;
        let fields = fields_of_version(ours, version)?;
        Some((version.to_owned(), &fields - &installed))
    };
    let new = served(ours).filter_map(new);
    new.filter(|(_, fields)| !fields.is_empty()).collect()
}

/// Returns the fields of a version of a CRD; `None` if it lacks the version.
pub(super) fn fields_of_version(definition: &Value, version: &str) -> Option<Fields> {
    let version = versions::named(list(definition, "/spec/versions"), version)?;
    version.pointer("/schema/openAPIV3Schema").map(fields)
}

/// Returns the fields of the kind of a CRD in the document of a group version.
pub(super) fn published_fields(document: &Value, definition: &Value, version: &str) -> Fields {
    let is_of_kind = |schema: &&Value| {
        let mut kinds = list(schema, "/x-kubernetes-group-version-kind").iter();
        kinds.any(|kind| {
            text(kind, "/group") == text(definition, "/spec/group")
                && text(kind, "/kind") == text(definition, "/spec/names/kind")
                && text(kind, "/version") == version
        })
    };
    let schemas = object(document, "/components/schemas");
    let mut schemas = schemas.into_iter().flat_map(|schemas| schemas.values());
    schemas.find(is_of_kind).map(fields).unwrap_or_default()
}

fn fields(schema: &Value) -> Fields {
    let mut found = Fields::new();
    add_fields("", schema, &mut found);
    found
}

/// Adds the fields of a schema at a path, which is empty for a whole object.
fn add_fields(path: &str, schema: &Value, into: &mut Fields) {
    let is_object = path.is_empty() || is_true(schema, "/x-kubernetes-embedded-resource");
    let dot = if path.is_empty() { "" } else { "." };
    for (name, field) in object(schema, "/properties").into_iter().flatten() {
        if !is_object || !OF_ALL_OBJECTS.contains(&name.as_str()) {
            add_field(format!("{path}{dot}{name}"), field, into);
        }
    }
    for (part, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(inner) = schema.get(part).filter(|inner| **inner != false) {
            add_field(format!("{path}{mark}"), inner, into);
        }
    }
    if is_true(schema, "/x-kubernetes-preserve-unknown-fields") {
        into.insert(format!("{path}{dot}*"));
    }
}

fn add_field(path: String, schema: &Value, into: &mut Fields) {
    add_fields(&path, schema, into);
    into.insert(path);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn widgets(versions: &[(&str, Value)]) -> Value {
        let version = |(name, properties): &(&str, Value)| {
            let schema = json!({"type": "object", "properties": properties});
            json!({"name": name, "served": true, "schema": {"openAPIV3Schema": schema}})
        };
        let versions: Vec<Value> = versions.iter().map(version).collect();
        json!({"spec": {"group": "demo.dev", "names": {"kind": "Widget"}, "versions": versions}})
    }

    #[test]
    fn new_fields_are_found_at_any_depth() {
        let text = json!({"type": "string"});
        let before = json!({
            "metadata": {"type": "object"},
            "spec": {"properties": {
                "ports": {"items": {"properties": {"port": text}}}, "map": {"type": "object"}, "any": {"type": "object"},
            }},
        });
        let mut after = before.clone();
        let spec = &mut after["spec"]["properties"];
        spec["tls"] = text.clone();
        spec["ports"]["items"]["properties"]["name"] = text.clone();
        spec["map"]["additionalProperties"] = text.clone();
        spec["any"]["x-kubernetes-preserve-unknown-fields"] = true.into();
        after["metadata"]["properties"] = json!({"name": text});
        let before = widgets(&[("v1", before)]);
        let after = widgets(&[("v1", after), ("v2", json!({"spec": text}))]);
        let found = new_fields(&after, &before);
        let paths = ["spec.any.*", "spec.map{}", "spec.ports[].name", "spec.tls"];
        let fields = Fields::from(paths.map(str::to_owned));
        assert_eq!(found, BTreeMap::from([("v1".to_owned(), fields)]));
        assert!(new_fields(&after, &after).is_empty());
    }

    #[test]
    fn published_fields_are_those_of_the_kind_and_version() {
        let schema = |version: &str, kind: &str, field: &str| {
            json!({
                "properties": {"kind": {}, field: {}},
                "x-kubernetes-group-version-kind": [{"group": "demo.dev", "version": version, "kind": kind}],
            })
        };
        let document = json!({"components": {"schemas": {
            "a": schema("v1", "WidgetList", "items"), "b": schema("v1", "Widget", "spec"), "c": schema("v2", "Widget", "x"),
        }}});
        let widgets = widgets(&[]);
        let found = published_fields(&document, &widgets, "v1");
        assert_eq!(found, Fields::from(["spec".to_owned()]));
        assert!(published_fields(&json!({}), &widgets, "v1").is_empty());
    }
}

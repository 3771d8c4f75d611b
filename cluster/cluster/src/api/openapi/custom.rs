//! The schemas of custom kinds.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder`.

use lariat_apimachinery::kinds::Resource;
use serde_json::{Map, Value, json};

use super::names::{kind_json, schema_name, shared_name};

/// The types that the schemas of custom kinds refer to.
pub(super) const REFERENCES: [&str; 2] = ["meta.v1.ObjectMeta", "meta.v1.ListMeta"];

/// Adds the schemas of a custom kind and of lists of it.
pub(super) fn describe(resource: &Resource, schemas: &mut Map<String, Value>) {
    let name = schema_name(resource, &resource.kind);
    let mut schema = defined_schema(resource);
    complete(&mut schema, "ObjectMeta", &OBJECT);
    complete_embedded(&mut schema);
    if !resource.rules.field_labels.is_empty() {
        let paths = resource.rules.field_labels.iter();
        let fields = paths.map(|path| json!({"fieldPath": path}));
        schema["x-kubernetes-selectable-fields"] = fields.collect();
    }
    schema["x-kubernetes-group-version-kind"] = json!([kind_json(resource)]);
    let mut list_kind = kind_json(resource);
    list_kind["kind"] = resource.list_kind.clone().into();
    let items = json!({
        "type": "array", "items": reference(&name),
        "description": format!(
            "List of {}. More info: https://git.k8s.io/community/contributors/devel/\
             sig-architecture/api-conventions.md",
            resource.plural
        ),
    });
    let mut list = json!({
        "type": "object", "required": ["items"], "properties": {"items": items},
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "x-kubernetes-group-version-kind": [list_kind],
    });
    complete(&mut list, "ListMeta", &LIST);
    schemas.insert(name, schema);
    schemas.insert(schema_name(resource, &resource.list_kind), list);
}

/// Returns the schema a CRD has for a version, by default any object.
fn defined_schema(resource: &Resource) -> Value {
    let schema = resource.schema.as_ref().map(|schema| schema.raw());
    schema
        .filter(|schema| schema.is_object())
        .cloned()
        .unwrap_or_else(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}))
}

/// The descriptions of the members that every object and every list has.
struct Docs {
    api_version: &'static str,
    kind: &'static str,
    metadata: &'static str,
}

/// Adds the members that every object and every list has.
fn complete(schema: &mut Value, metadata: &str, docs: &Docs) {
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    let text = |description: &str| json!({"type": "string", "description": description});
    let properties = &mut schema["properties"];
    properties["apiVersion"] = text(docs.api_version);
    properties["kind"] = text(docs.kind);
    // In OpenAPI 3.0 nothing may stand beside a reference, hence `allOf` with a description beside it.
    properties["metadata"] = json!({
        "description": docs.metadata, "allOf": [reference(&shared_name(metadata))],
    });
}

/// Adds the members that embedded objects have.
fn complete_embedded(schema: &mut Value) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(complete_embedded);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(inner).filter(|inner| inner.is_object()) {
            complete_embedded(inner);
        }
    }
    if schema["x-kubernetes-embedded-resource"] != true {
        return;
    }
    complete(schema, "ObjectMeta", &EMBEDDED);
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    for name in ["kind", "apiVersion"] {
        if !required.iter().any(|each| each == name) {
            required.push(name.into());
        }
    }
    schema["required"] = required.into();
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

const OBJECT: Docs = Docs {
    api_version: "APIVersion defines the versioned schema of this representation of an object. Servers should convert \
        recognized schemas to the latest internal value, and may reject unrecognized values. More info: \
        https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
    kind: "Kind is a string value representing the REST resource this object represents. Servers may infer this from \
        the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
        https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
    metadata: "Standard object's metadata. More info: \
        https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
};

const LIST: Docs = Docs {
    metadata: "Standard list metadata. More info: \
        https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
    ..OBJECT
};

const EMBEDDED: Docs = Docs {
    api_version: "apiVersion defines the versioned schema of this representation of an object. More info: \
        https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
    kind: "kind is a string value representing the type of this object. In CamelCase. More info: \
        https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
    ..OBJECT
};

//! Schemas as OpenAPI v2 has them.
//!
//! Source: `ToStructuralOpenAPIV2` in `k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2`.

use serde_json::{Map, Value, json};

/// The members of v3 schemas that v2 does not have.
const LEFT_OUT: [&str; 5] = ["default", "anyOf", "oneOf", "not", "nullable"];

const TEXTS: [&str; 2] = [".util.intstr.IntOrString", ".api.resource.Quantity"];

/// Returns a schema of v3 as a definition of v2.
pub(super) fn definition(name: &str, schema: Value) -> Value {
    let mut schema = match schema {
        // Clients would take properties beside those named here for unknown ones.
        Value::Object(schema) if preserves(&schema) => {
            let kinds = schema.into_iter().filter(|(key, _)| key.ends_with("-kind"));
            let mut open: Map<String, Value> = kinds.collect();
            open.insert("type".into(), "object".into());
            open.into()
        }
        other => converted(other),
    };
    // They are either of two types, which v2 cannot say.
    if TEXTS.iter().any(|text| name.ends_with(text)) {
        schema["type"] = "string".into();
    }
    schema
}

fn preserves(schema: &Map<String, Value>) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true))
}

fn is_nullable(schema: &Value) -> bool {
    schema["nullable"] == true
}

fn converted(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else {
        return schema;
    };
    let nullable = schema.get("nullable") == Some(&json!(true));
    let open = preserves(&schema);
    for key in LEFT_OUT {
        schema.remove(key);
    }
    // A reference with a description beside it. In v2 it can stand for itself.
    if let Some(Value::Array(all)) = schema.remove("allOf")
        && let [Value::Object(one)] = &all[..]
        && let Some(reference) = one.get("$ref")
    {
        schema.insert("$ref".into(), reference.clone());
    }
    if let Some(Value::String(reference)) = schema.get_mut("$ref") {
        *reference = reference.replace("#/components/schemas/", "#/definitions/");
    }
    // kubectl does not cope with items or properties where other values are allowed.
    if nullable || open {
        schema.remove("items");
        schema.remove("properties");
    }
    if open {
        // They are added to the objects within an object, but not where all members are allowed.
        require(&mut schema, |name| name != "kind" && name != "apiVersion");
    }
    let kind = schema
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let bare = kind == "array" && !schema.contains_key("items");
    if nullable || bare || (open && kind == "object") {
        schema.remove("type");
    }
    convert_inner(&mut schema);
    schema.into()
}

fn convert_inner(schema: &mut Map<String, Value>) {
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(key) {
            *inner = converted(inner.take());
        }
    }
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    let nullable = properties.iter().filter(|(_, schema)| is_nullable(schema));
    let nullable: Vec<String> = nullable.map(|(name, _)| name.clone()).collect();
    for property in properties.values_mut() {
        *property = converted(property.take());
    }
    // kubectl takes a null for a member that is missing.
    require(schema, |name| !nullable.iter().any(|each| name == each));
}

/// Keeps some of the names of required members.
fn require(schema: &mut Map<String, Value>, is_kept: impl Fn(&Value) -> bool) {
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(is_kept);
        if required.is_empty() {
            schema.remove("required");
        }
    }
}

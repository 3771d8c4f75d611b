//! List types, map types, and the keys of lists of type `map` in a schema.

use std::collections::HashSet;

use serde_json::Value;

use super::parts::{array, flag, text};
use crate::cause::StatusCause;

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";
const MAP_TYPE: &str = "x-kubernetes-map-type";

pub(super) fn check(schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let field = |member: &str| format!("{path}.{member}");
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if schema.get(preserve) == Some(&Value::Bool(false)) {
        let rule = "must be true or undefined";
        causes.push(StatusCause::invalid(&field(preserve), &false.into(), rule));
    }
    check_kind(
        schema,
        MAP_TYPE,
        "object",
        &["atomic", "granular"],
        path,
        causes,
    );
    check_kind(
        schema,
        LIST_TYPE,
        "array",
        &["atomic", "set", "map"],
        path,
        causes,
    );
    let given = schema.get(LIST_TYPE).and_then(Value::as_str);
    let list_type = given.unwrap_or_default();
    if list_type == "set" {
        check_set(schema, path, causes);
    }
    if !array(schema, MAP_KEYS).is_empty() && list_type != "map" {
        let rule = "must be map if x-kubernetes-list-map-keys is non-empty";
        causes.push(match given {
            None => StatusCause::required(&field(LIST_TYPE), rule),
            Some(other) => StatusCause::invalid(&field(LIST_TYPE), &other.into(), rule),
        });
    }
    if list_type == "map" {
        check_map(schema, path, causes);
    }
    let items = &schema["items"];
    if matches!(list_type, "set" | "map") && flag(items, "nullable") {
        let rule = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        causes.push(StatusCause::forbidden(&field("items.nullable"), &rule));
    }
}

/// Checks that a list or map type is known and belongs to the type of its schema.
fn check_kind(
    schema: &Value,
    member: &str,
    wanted: &str,
    known: &[&str],
    path: &str,
    causes: &mut Vec<StatusCause>,
) {
    let Some(value) = schema.get(member).and_then(Value::as_str) else {
        return;
    };
    let kind = text(schema, "type");
    if kind != wanted {
        let rule = format!("must be {wanted} if {member} is specified");
        let field = format!("{path}.type");
        causes.push(match kind {
            "" => StatusCause::required(&field, &rule),
            kind => StatusCause::invalid(&field, &kind.into(), &rule),
        });
    }
    if !known.contains(&value) {
        let known: Vec<String> = known.iter().map(|each| format!("{each:?}")).collect();
        let field = format!("{path}.{member}");
        causes.push(StatusCause::unsupported(&field, value, &known.join(", ")));
    }
}

/// Checks that the elements of a set are compared as wholes.
fn check_set(schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let items = &schema["items"];
    let rule = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let member = match text(items, "type") {
        "array" if !matches!(text(items, LIST_TYPE), "" | "atomic") => LIST_TYPE,
        "object" if text(items, MAP_TYPE) != "atomic" => MAP_TYPE,
        _ => return,
    };
    let value = items.get(member).cloned().unwrap_or_default();
    causes.push(StatusCause::invalid(
        &format!("{path}.items.{member}"),
        &value,
        rule,
    ));
}

fn check_map(schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let field = |member: &str| format!("{path}.{member}");
    let keys = array(schema, MAP_KEYS);
    if keys.is_empty() {
        let rule = "must not be empty if x-kubernetes-list-type is map";
        causes.push(StatusCause::required(&field(MAP_KEYS), rule));
    }
    let items = match schema.get("items") {
        Some(items @ Value::Object(_)) => items,
        Some(Value::Array(schemas)) => {
            let schemas = Value::Array(schemas.clone());
            // Go's type has a member for either form.
            let message = format!(
                "Invalid value: {{\"Schema\":null,\"JSONSchemas\":{schemas}}}: \
                 must only have a single schema if x-kubernetes-list-type is map"
            );
            let cause = StatusCause::new("FieldValueInvalid", &field("items"), message);
            causes.push(cause);
            return;
        }
        _ => {
            let rule = "must have a schema if x-kubernetes-list-type is map";
            causes.push(StatusCause::required(&field("items"), rule));
            return;
        }
    };
    if text(items, "type") == "object" {
        check_keys(items, keys, path, causes);
    } else {
        let rule = "must be object if parent array's x-kubernetes-list-type is map";
        causes.push(StatusCause::invalid(
            &field("items.type"),
            &text(items, "type").into(),
            rule,
        ));
    }
    let required: HashSet<&Value> = array(items, "required").iter().collect();
    for key in keys {
        let name = key.as_str().unwrap_or_default();
        if let Some(property) = items["properties"].get(name) {
            check_presence(name, property, required.contains(key), path, causes);
        }
    }
}

/// Checks that the keys of a list's elements are scalar properties of them.
fn check_keys(items: &Value, keys: &[Value], path: &str, causes: &mut Vec<StatusCause>) {
    let field = format!("{path}.{MAP_KEYS}");
    let all = Value::Array(keys.to_vec());
    let mut seen = HashSet::new();
    for key in keys {
        let name = key.as_str().unwrap_or_default();
        match items["properties"].get(name) {
            Some(property) if matches!(text(property, "type"), "array" | "object") => {
                let rule = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let field = format!("{path}.items.properties[{name}].type");
                // The type in the message is that of the elements.
                causes.push(StatusCause::invalid(&field, &"object".into(), rule));
            }
            Some(_) => {}
            None => {
                let rule = "entries must all be names of item properties";
                causes.push(StatusCause::invalid(&field, &all, rule));
            }
        }
        if !seen.insert(key) {
            let rule = "must not contain duplicate entries";
            causes.push(StatusCause::invalid(&field, &all, rule));
        }
    }
}

/// Checks that a property that is part of the key of a list's elements is always there.
fn check_presence(
    name: &str,
    property: &Value,
    is_required: bool,
    path: &str,
    causes: &mut Vec<StatusCause>,
) {
    let field = |member: &str| format!("{path}.items.properties[{name}].{member}");
    if !is_required && property.get("default").is_none_or(Value::is_null) {
        let rule = "this property is in x-kubernetes-list-map-keys, so it must have a default or be \
            a required property";
        causes.push(StatusCause::required(&field("default"), rule));
    }
    if flag(property, "nullable") {
        let rule = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
        causes.push(StatusCause::forbidden(&field("nullable"), rule));
    }
}

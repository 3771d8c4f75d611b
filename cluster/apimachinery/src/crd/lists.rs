//! List types, map types, and the keys of lists of type `map` in a schema.

use std::collections::HashSet;

use serde_json::Value;

use super::parts::{array, flag, text};
use super::tolerated::Tolerated;
use crate::cause::StatusCause;

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";
const MAP_TYPE: &str = "x-kubernetes-map-type";

/// Checks how the lists and maps of one schema are compared and merged.
pub(super) fn check(
    schema: &Value,
    tolerated: Tolerated,
    path: &str,
    causes: &mut Vec<StatusCause>,
) {
    let field = |member: &str| format!("{path}.{member}");
    let preserve = "x-kubernetes-preserve-unknown-fields";
    // False is refused because a later false could not undo a true above it.
    if schema.get(preserve) == Some(&Value::Bool(false)) {
        let rule = "must be true or undefined";
        causes.push(StatusCause::invalid(&field(preserve), &false.into(), rule));
    }
    check_kind(schema, MAP_TYPE, "object", path, causes);
    check_known(schema, MAP_TYPE, &["atomic", "granular"], path, causes);
    check_kind(schema, LIST_TYPE, "array", path, causes);
    let given = schema.get(LIST_TYPE).and_then(Value::as_str);
    let list_type = given.unwrap_or_default();
    // A list type that belongs to no list is said above.
    if text(schema, "type") == "array" && !tolerated.sets {
        check_set(schema, path, causes);
    }
    check_known(schema, LIST_TYPE, &["atomic", "set", "map"], path, causes);
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
    if !tolerated.keys {
        check_presence(schema, path, causes);
    }
}

/// Returns whether a schema is of a set whose elements are not compared as wholes.
pub(super) fn has_composite_set(schema: &Value) -> bool {
    let mut causes = Vec::new();
    check_set(schema, "", &mut causes);
    !causes.is_empty()
}

/// Returns whether a schema is of a list whose elements or their keys may be missing or null.
pub(super) fn has_vague_keys(schema: &Value) -> bool {
    let mut causes = Vec::new();
    check_presence(schema, "", &mut causes);
    !causes.is_empty()
}

/// Checks that a list or map type belongs to the type of its schema.
fn check_kind(
    schema: &Value,
    member: &str,
    wanted: &str,
    path: &str,
    causes: &mut Vec<StatusCause>,
) {
    let kind = text(schema, "type");
    let is_given = schema.get(member).is_some_and(Value::is_string);
    if is_given && kind != wanted {
        let rule = format!("must be {wanted} if {member} is specified");
        let field = format!("{path}.type");
        causes.push(match kind {
            "" => StatusCause::required(&field, &rule),
            kind => StatusCause::invalid(&field, &kind.into(), &rule),
        });
    }
}

/// Checks that a list or map type is known.
fn check_known(
    schema: &Value,
    member: &str,
    known: &[&str],
    path: &str,
    causes: &mut Vec<StatusCause>,
) {
    let Some(value) = schema.get(member).and_then(Value::as_str) else {
        return;
    };
    if !known.contains(&value) {
        let known: Vec<String> = known.iter().map(|each| format!("{each:?}")).collect();
        let field = format!("{path}.{member}");
        causes.push(StatusCause::unsupported(&field, value, &known.join(", ")));
    }
}

/// Checks that the elements of a set are compared as wholes.
fn check_set(schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    if text(schema, LIST_TYPE) != "set" {
        return;
    }
    let items = &schema["items"];
    let rule = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let member = match text(items, "type") {
        // Lists are atomic by default and maps are not, so only maps have to say so.
        "array" if !matches!(text(items, LIST_TYPE), "" | "atomic") => LIST_TYPE,
        "object" if text(items, MAP_TYPE) != "atomic" => MAP_TYPE,
        _ => return,
    };
    // The list type is shown in both cases.
    let value = items.get(LIST_TYPE).cloned().unwrap_or_default();
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
        Some(other) if !other.is_null() => {
            // Go's type has a member for either form, and neither is set for anything else.
            let schemas = other.as_array().cloned().map_or(Value::Null, Value::Array);
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
    // Without a schema of objects, the checks of keys below would have nothing to look at.
    let kind = text(items, "type");
    if kind != "object" {
        let rule = "must be object if parent array's x-kubernetes-list-type is map";
        causes.push(StatusCause::invalid(
            &field("items.type"),
            &kind.into(),
            rule,
        ));
        return;
    }
    let all = Value::Array(keys.to_vec());
    let mut seen = HashSet::new();
    for key in keys {
        let name = key.as_str().unwrap_or_default();
        let property = items["properties"].get(name);
        match property.map(|property| text(property, "type")) {
            Some("array" | "object") => {
                let rule = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let field = field(&format!("items.properties[{name}].type"));
                // The type shown is that of the elements.
                causes.push(StatusCause::invalid(&field, &kind.into(), rule));
            }
            Some(_) => {}
            None => {
                let rule = "entries must all be names of item properties";
                causes.push(StatusCause::invalid(&field(MAP_KEYS), &all, rule));
            }
        }
        if !seen.insert(key) {
            let rule = "must not contain duplicate entries";
            causes.push(StatusCause::invalid(&field(MAP_KEYS), &all, rule));
        }
    }
}

/// Checks that the elements of sets and maps, and the keys of the latter, are there.
// `validateMapListKeysMapSet`.
fn check_presence(schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let list_type = text(schema, LIST_TYPE);
    let items = &schema["items"];
    if !matches!(list_type, "set" | "map") || !items.is_object() {
        return;
    }
    if flag(items, "nullable") {
        let rule = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        let field = format!("{path}.items.nullable");
        causes.push(StatusCause::forbidden(&field, &rule));
    }
    let required: HashSet<&Value> = array(items, "required").iter().collect();
    let keys = array(schema, MAP_KEYS);
    for key in keys.iter().filter(|_| list_type == "map") {
        let name = key.as_str().unwrap_or_default();
        if let Some(property) = items["properties"].get(name) {
            let path = format!("{path}.items.properties[{name}]");
            check_key(property, required.contains(key), &path, causes);
        }
    }
}

/// Checks a property that is part of the key of a list's elements.
fn check_key(property: &Value, is_required: bool, path: &str, causes: &mut Vec<StatusCause>) {
    // Without one of the two an item could lack its key, and could not be distinguished from others.
    if !is_required && property.get("default").is_none_or(Value::is_null) {
        let rule = "this property is in x-kubernetes-list-map-keys, so it must have a default or be \
            a required property";
        causes.push(StatusCause::required(&format!("{path}.default"), rule));
    }
    if flag(property, "nullable") {
        let rule = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
        causes.push(StatusCause::forbidden(&format!("{path}.nullable"), rule));
    }
}

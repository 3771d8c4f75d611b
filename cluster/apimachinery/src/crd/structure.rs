//! The check that a schema is structural: every field has a type outside of junctors.
//!
//! Source: `schema/validation.go` and `schema/complete.go` of apiextensions-apiserver.

use serde_json::{Value, json};

use super::parts::{array, flag, is_set, text};
use crate::cause::StatusCause;
use crate::go_regex;

/// The position of a schema in a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Members that junctors must not have, and what they must be instead.
// `validateNestedValueValidation`: junctors only validate, everything else has to be said outside of them.
const FORBIDDEN: [(&str, &str); 13] = [
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (
        "x-kubernetes-preserve-unknown-fields",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-embedded-resource",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-int-or-string",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-list-map-keys",
        "must be empty to be structural",
    ),
    (
        "x-kubernetes-list-type",
        "must be undefined to be structural",
    ),
    (
        "x-kubernetes-map-type",
        "must be undefined to be structural",
    ),
    ("x-kubernetes-validations", "must be empty to be structural"),
];

/// Finds where a schema is not structural.
pub(super) fn check(schema: &Value, path: &str) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    check_invariants(schema, Level::Root, path, &mut causes);
    check_completeness(schema, Some(schema), path, path, &mut causes);
    // `ValidateStructural` sorts as well, because its order depends on maps.
    causes.sort_by_key(StatusCause::text);
    causes
}

/// Members that `NewStructural` refuses, in its order, with its errors.
const UNCONVERTED: [(&str, &str); 7] = [
    ("id", "OpenAPIV3Schema 'id' is not supported"),
    ("$schema", "OpenAPIV3Schema 'schema' is not supported"),
    ("$ref", "OpenAPIV3Schema '$ref' is not supported"),
    (
        "patternProperties",
        "OpenAPIV3Schema 'patternProperties' is not supported",
    ),
    (
        "dependencies",
        "OpenAPIV3Schema 'dependencies' is not supported",
    ),
    (
        "additionalItems",
        "OpenAPIV3Schema 'additionalItems' is not supported",
    ),
    (
        "definitions",
        "OpenAPIV3Schema 'definitions' is not supported",
    ),
];

/// Returns why Go cannot make a structural schema of a schema.
///
/// The structure of such a schema is not checked.
///
/// Source: `NewStructural` in `k8s.io/apiextensions-apiserver/pkg/apiserver/schema`.
pub(super) fn unconverted(schema: &Value) -> Option<&'static str> {
    const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
    let is_filled = |member: &str| match schema.get(member) {
        // Of an empty map nothing has to be converted.
        Some(Value::Object(members)) => member == "additionalItems" || !members.is_empty(),
        Some(Value::Bool(_)) => true,
        value => value.is_some_and(is_set),
    };
    let unsupported = UNCONVERTED.iter().find(|(member, _)| is_filled(member));
    if let Some((_, reason)) = unsupported {
        return Some(reason);
    }
    let junctors = ["allOf", "anyOf", "oneOf"];
    let mut values = schema
        .get("not")
        .into_iter()
        .chain(junctors.iter().flat_map(|member| array(schema, member)));
    if let Some(reason) = values.find_map(unconverted) {
        return Some(reason);
    }
    if schema.get(PRESERVE) == Some(&Value::Bool(false)) {
        return Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined",
        );
    }
    if !array(schema, "items").is_empty() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array");
    }
    let mut below = schema
        .get("items")
        .into_iter()
        .chain(properties(schema).map(|(_, property)| property))
        .chain(schema.get("additionalProperties"));
    below.find_map(unconverted)
}

fn check_invariants(schema: &Value, level: Level, path: &str, causes: &mut Vec<StatusCause>) {
    let items = schema.get("items").filter(|items| items.is_object());
    if text(schema, "type") == "array" && items.is_none() {
        let field = format!("{path}.items");
        causes.push(StatusCause::required(&field, "must be specified"));
    }
    if let Some(items) = items {
        check_invariants(items, Level::Item, &format!("{path}.items"), causes);
    }
    for (name, property) in properties(schema) {
        let path = format!("{path}.properties[{name}]");
        check_invariants(property, Level::Field, &path, causes);
    }
    check_additional(schema, level, path, causes);
    if flag(schema, "x-kubernetes-int-or-string") {
        for member in [
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
        ] {
            if flag(schema, member) {
                let rule = "must be false if x-kubernetes-int-or-string is true";
                let field = format!("{path}.{member}");
                causes.push(StatusCause::invalid(&field, &true.into(), rule));
            }
        }
    }
    check_values(schema, path, causes);
    check_type(schema, level, path, causes);
    check_meta(schema, level, path, causes);
}

fn check_additional(schema: &Value, level: Level, path: &str, causes: &mut Vec<StatusCause>) {
    let Some(additional) = schema.get("additionalProperties").filter(|a| !a.is_null()) else {
        return;
    };
    let field = format!("{path}.additionalProperties");
    // A root with arbitrary members could not have metadata of its own.
    if level == Level::Root {
        causes.push(StatusCause::forbidden(
            &field,
            "must not be used at the root",
        ));
    }
    if additional.is_object() {
        check_invariants(additional, Level::Field, &field, causes);
    }
    if flag(schema, "x-kubernetes-embedded-resource") {
        let rule = "must not be used if x-kubernetes-embedded-resource is set";
        causes.push(StatusCause::forbidden(&field, rule));
    }
}

fn check_type(schema: &Value, level: Level, path: &str, causes: &mut Vec<StatusCause>) {
    let kind = text(schema, "type");
    let field = format!("{path}.type");
    // Only these two may have no type, since a type would contradict them.
    let is_open = flag(schema, "x-kubernetes-int-or-string")
        || flag(schema, "x-kubernetes-preserve-unknown-fields");
    if flag(schema, "x-kubernetes-embedded-resource") && kind != "object" {
        let rule = "must be object if x-kubernetes-embedded-resource is true";
        causes.push(match kind {
            "" => StatusCause::required(&field, rule),
            kind => StatusCause::invalid(&field, &kind.into(), rule),
        });
    } else if kind.is_empty() && !is_open {
        let rule = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        causes.push(StatusCause::required(&field, rule));
    }
    if level == Level::Root && !matches!(kind, "" | "object") {
        let rule = "must be object at the root";
        causes.push(StatusCause::invalid(&field, &kind.into(), rule));
    }
}

/// Checks what a schema says about type and metadata of a resource.
fn check_meta(schema: &Value, level: Level, path: &str, causes: &mut Vec<StatusCause>) {
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let is_resource = level == Level::Root || embedded;
    let property = |name: &str| schema.get("properties").and_then(|p| p.get(name));
    for name in ["kind", "apiVersion"] {
        let kind = property(name).map(|property| text(property, "type"));
        if let Some(kind) = kind.filter(|kind| is_resource && *kind != "string") {
            let field = format!("{path}.properties[{name}].type");
            causes.push(StatusCause::invalid(&field, &kind.into(), "must be string"));
        }
    }
    if let Some(metadata) = property("metadata") {
        let field = format!("{path}.properties[metadata]");
        let kind = text(metadata, "type");
        if is_resource && kind != "object" {
            let rule = "must be object";
            causes.push(StatusCause::invalid(
                &format!("{field}.type"),
                &kind.into(),
                rule,
            ));
        }
        // Metadata has the server's schema; a CRD can only restrict the two names that an object begins with.
        if level == Level::Root && !is_plain_metadata(metadata) {
            let rule = "must not specify anything other than name and generateName, but metadata \
                is implicitly specified";
            causes.push(StatusCause::forbidden(&field, rule));
        }
    }
    let is_open = flag(schema, "x-kubernetes-preserve-unknown-fields");
    if embedded && !is_open && properties(schema).count() == 0 {
        let rule = "must not be empty if x-kubernetes-embedded-resource is true without \
            x-kubernetes-preserve-unknown-fields";
        causes.push(StatusCause::required(&format!("{path}.properties"), rule));
    }
}

fn is_plain_metadata(metadata: &Value) -> bool {
    let names = |(name, _): (&String, &Value)| matches!(name.as_str(), "name" | "generateName");
    let mut members = metadata.as_object().into_iter().flatten();
    members.all(|(member, value)| match member.as_str() {
        "type" | "default" => true,
        "properties" => properties(metadata).all(names),
        _ => !is_set(value),
    })
}

/// Checks the junctors right at a schema.
// `isIntOrStringAnyOfPattern` and `isIntOrStringAllOfPattern`: exactly these forms, with the types in this order.
fn check_values(schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let is_either = |schema: &Value| schema.get("anyOf") == Some(&either);
    let skip_first = array(schema, "allOf").first().is_some_and(is_either);
    check_junctors(schema, is_either(schema), skip_first, path, causes);
}

/// Checks junctors; the two ways to write int-or-string are allowed to name types.
fn check_junctors(
    schema: &Value,
    skip_any: bool,
    skip_first: bool,
    path: &str,
    causes: &mut Vec<StatusCause>,
) {
    if !skip_any {
        for (at, each) in array(schema, "anyOf").iter().enumerate() {
            check_nested(each, false, &format!("{path}.anyOf[{at}]"), causes);
        }
    }
    for (at, each) in array(schema, "allOf").iter().enumerate() {
        let skip_any = skip_first && at == 0;
        check_nested(each, skip_any, &format!("{path}.allOf[{at}]"), causes);
    }
    for (at, each) in array(schema, "oneOf").iter().enumerate() {
        check_nested(each, false, &format!("{path}.oneOf[{at}]"), causes);
    }
    if let Some(not) = schema.get("not").filter(|not| not.is_object()) {
        check_nested(not, false, &format!("{path}.not"), causes);
    }
    let pattern = text(schema, "pattern");
    // An absent pattern is the empty one, which is valid.
    if let Err(error) = go_regex::compile(pattern) {
        let rule = format!("must be a valid regular expression, but isn't: {error}");
        let field = format!("{path}.pattern");
        causes.push(StatusCause::invalid(&field, &pattern.into(), &rule));
    }
}

/// Checks a schema inside of a junctor.
fn check_nested(schema: &Value, skip_any: bool, path: &str, causes: &mut Vec<StatusCause>) {
    check_junctors(schema, skip_any, false, path, causes);
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        check_nested(items, false, &format!("{path}.items"), causes);
    }
    for (name, property) in properties(schema) {
        let path = format!("{path}.properties[{name}]");
        check_nested(property, false, &path, causes);
    }
    for (member, rule) in FORBIDDEN {
        // What must be undefined is a pointer in Go, but `false` additional properties are nothing there.
        let is_pointer = rule.contains("undefined") && member != "additionalProperties";
        let is_there = |value: &Value| is_set(value) || (is_pointer && !value.is_null());
        if schema.get(member).is_some_and(is_there) {
            causes.push(StatusCause::forbidden(&format!("{path}.{member}"), rule));
        }
    }
    if properties(schema).any(|(name, _)| name == "metadata") {
        let rule = "must not be specified in a nested context";
        let field = format!("{path}.properties[metadata]");
        causes.push(StatusCause::forbidden(&field, rule));
    }
}

/// Checks that what junctors mention is there outside of them too.
///
/// The paths are those of the structure and of the mention.
// `validateValueValidationCompleteness`. Without this rule a field could be mentioned in a junctor and pruned all the
// same.
fn check_completeness(
    mention: &Value,
    structure: Option<&Value>,
    at: &str,
    mentioned_at: &str,
    causes: &mut Vec<StatusCause>,
) {
    let mut junctor = |each: &Value, name: String| {
        let mentioned_at = format!("{mentioned_at}.{name}");
        check_mention(each, structure, at, &mentioned_at, causes);
    };
    if let Some(not) = mention.get("not").filter(|not| not.is_object()) {
        junctor(not, "not".to_owned());
    }
    for member in ["allOf", "anyOf", "oneOf"] {
        for (at, each) in array(mention, member).iter().enumerate() {
            junctor(each, format!("{member}[{at}]"));
        }
    }
}

fn check_mention(
    mention: &Value,
    structure: Option<&Value>,
    at: &str,
    mentioned_at: &str,
    causes: &mut Vec<StatusCause>,
) {
    let Some(structure) = structure else {
        let rule = format!("because it is defined in {mentioned_at}");
        causes.push(StatusCause::required(at, &rule));
        return;
    };
    check_completeness(mention, Some(structure), at, mentioned_at, causes);
    if let Some(items) = mention.get("items").filter(|items| items.is_object()) {
        let (at, mentioned_at) = (format!("{at}.items"), format!("{mentioned_at}.items"));
        check_mention(items, structure.get("items"), &at, &mentioned_at, causes);
    }
    for (name, property) in properties(mention) {
        let below = format!("properties[{name}]");
        let (at, mentioned_at) = (format!("{at}.{below}"), format!("{mentioned_at}.{below}"));
        let known = structure.get("properties").and_then(|p| p.get(name));
        check_mention(property, known, &at, &mentioned_at, causes);
    }
}

pub(super) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten()
}

//! Whole resources inside of resources: they have a type and metadata, like any other.
//!
//! Source: `schema/objectmeta`.

use serde_json::{Map, Value};

use super::node::Node;
use super::prune::child;
use crate::cause::StatusCause;
use crate::checks::metadata::validate_embedded;
use crate::names::check_dns_1035;
use crate::schema::{self, DecodeError};

/// What a value is, apart from what its schema says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// A whole object, whose type the server knows.
    Root,
    /// A resource, whether its schema says so or not.
    Resource,
    /// A part of an object.
    Part,
}

impl Level {
    fn is_resource(self, node: &Node) -> bool {
        match self {
            Self::Root => false,
            Self::Resource => true,
            Self::Part => node.extensions.embedded,
        }
    }
}

/// Puts the metadata of an object into the form in which Go writes them.
///
/// # Errors
///
/// They cannot be read.
// `unstructuredSchemaCoercer.apply`.
pub(super) fn coerce_root(
    object: &mut Value,
    unknown: &mut Vec<String>,
) -> Result<(), DecodeError> {
    match object.get_mut("metadata") {
        Some(metadata) => coerce_metadata(metadata, "metadata", unknown),
        None => Ok(()),
    }
}

/// Puts the metadata of resources inside of an object into that form.
///
/// Returns the paths of unknown members of metadata.
///
/// # Errors
///
/// A type or metadata cannot be read, in the words of the server.
// `CoerceWithOptions`.
pub(super) fn coerce(
    value: &mut Value,
    node: &Node,
    path: &str,
    level: Level,
    unknown: &mut Vec<String>,
) -> Result<(), StatusCause> {
    match value {
        Value::Object(members) => {
            if level.is_resource(node) {
                coerce_resource(members, path, unknown)?;
            }
            for (name, value) in members {
                if let Some((member, path)) = below(node, path, name) {
                    coerce(value, member, &path, Level::Part, unknown)?;
                }
            }
        }
        Value::Array(elements) => {
            if let Some(items) = &node.shape.items {
                for (at, element) in elements.iter_mut().enumerate() {
                    let path = format!("{path}[{at}]");
                    coerce(element, items, &path, Level::Part, unknown)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_resource(
    members: &mut Map<String, Value>,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<(), StatusCause> {
    for name in ["apiVersion", "kind"] {
        let other = members.get(name).filter(|value| !value.is_string());
        if let Some(other) = other {
            let cause = StatusCause::invalid(&child(path, name), other, "must be a string");
            return Err(cause);
        }
    }
    if let Some(metadata) = members.get_mut("metadata") {
        let given = metadata.clone();
        let path = child(path, "metadata");
        coerce_metadata(metadata, &path, unknown)
            .map_err(|error| StatusCause::invalid(&path, &given, &error.to_string()))?;
    }
    Ok(())
}

fn coerce_metadata(
    metadata: &mut Value,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<(), DecodeError> {
    let mut found = schema::decode_metadata(metadata)?;
    found.sort_unstable();
    unknown.extend(found.iter().map(|name| format!("{path}.{name}")));
    Ok(())
}

/// Returns the schema of a member, and its path; an entry of a map is written in brackets.
fn below<'a>(node: &'a Node, path: &str, name: &str) -> Option<(&'a Node, String)> {
    match node.shape.properties.get(name) {
        Some(property) => Some((property, child(path, name))),
        None => Some((node.shape.additional_schema()?, format!("{path}[{name}]"))),
    }
}

/// Checks every resource in a value.
// `Validate`.
pub(super) fn check(
    value: &Value,
    node: &Node,
    path: &str,
    level: Level,
    causes: &mut Vec<StatusCause>,
) {
    match value {
        Value::Object(members) => {
            // The root has a type because it could not be decoded otherwise.
            if level.is_resource(node) {
                check_resource(members, path, causes);
            }
            for (name, value) in members {
                if let Some((member, path)) = below(node, path, name) {
                    check(value, member, &path, Level::Part, causes);
                }
            }
        }
        Value::Array(elements) => {
            if let Some(items) = &node.shape.items {
                for (at, element) in elements.iter().enumerate() {
                    let path = format!("{path}[{at}]");
                    check(element, items, &path, Level::Part, causes);
                }
            }
        }
        _ => {}
    }
}

fn check_resource(members: &Map<String, Value>, path: &str, causes: &mut Vec<StatusCause>) {
    for name in ["apiVersion", "kind"] {
        let field = child(path, name);
        match members.get(name) {
            None => causes.push(StatusCause::required(&field, "")),
            Some(Value::String(text)) if text.is_empty() => {
                causes.push(StatusCause::invalid(
                    &field,
                    &"".into(),
                    "must not be empty",
                ));
            }
            Some(Value::String(text)) => check_text(name, text, &field, causes),
            Some(other) => causes.push(StatusCause::invalid(&field, other, "must be a string")),
        }
    }
    if let Some(metadata) = members.get("metadata") {
        let found = validate_embedded(metadata).into_iter();
        causes.extend(found.map(|cause| cause.below(path)));
    }
}

fn check_text(name: &str, text: &str, field: &str, causes: &mut Vec<StatusCause>) {
    let rule = match name {
        // `ParseGroupVersion`, which accepts any text with at most one slash.
        "apiVersion" if text.matches('/').count() > 1 => {
            format!("unexpected GroupVersion string: {text}")
        }
        // Kinds are written in camel case, and the rule is only for lower case.
        "kind" => match check_dns_1035(&text.to_lowercase()) {
            Ok(()) => return,
            Err(rule) => format!("may have mixed case, but should otherwise match: {rule}"),
        },
        _ => return,
    };
    causes.push(StatusCause::invalid(field, &text.into(), &rule));
}

//! Whole resources inside of resources: they need a type, like any other.
//!
//! Source: `schema/objectmeta/validation.go`.

use serde_json::{Map, Value};

use super::node::Node;
use super::prune::child;
use crate::cause::StatusCause;
use crate::names::check_dns_1035;

/// Checks every embedded resource in a value.
///
/// With `root`, the value itself is a whole object.
pub(super) fn check(
    value: &Value,
    node: &Node,
    path: &str,
    root: bool,
    causes: &mut Vec<StatusCause>,
) {
    match value {
        Value::Object(members) => {
            // The root has a type because it could not be decoded otherwise.
            if node.extensions.embedded && !root {
                check_type(members, path, causes);
            }
            for (name, value) in members {
                if let Some(member) = node.member(name) {
                    check(value, member, &child(path, name), false, causes);
                }
            }
        }
        Value::Array(elements) => {
            if let Some(items) = &node.shape.items {
                for (at, element) in elements.iter().enumerate() {
                    check(element, items, &format!("{path}[{at}]"), false, causes);
                }
            }
        }
        _ => {}
    }
}

fn check_type(members: &Map<String, Value>, path: &str, causes: &mut Vec<StatusCause>) {
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

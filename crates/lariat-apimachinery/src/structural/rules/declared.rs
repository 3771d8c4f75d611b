//! The types that rules see of a schema.
//!
//! Source: `SchemaDeclType` in `k8s.io/apiserver/pkg/cel/common/schemas.go`.

use std::sync::Arc;

use super::values::escape;
use crate::expressions::{Object, Type};
use crate::structural::node::Node;

/// Returns the type of the values of a schema; `None` if rules do not see them.
pub(super) fn declared(node: &Node, root: bool) -> Option<Type> {
    named(node, "selfType", root)
}

fn named(node: &Node, name: &str, root: bool) -> Option<Type> {
    if node.extensions.int_or_string {
        return Some(Type::Dyn);
    }
    let below = |node: &Node, part: &str| {
        let name = format!("{name}.{part}");
        named(node, &name, node.extensions.embedded)
    };
    // `WithTypeAndObjectMeta` gives every resource a type.
    let is_object = root || node.is_type("object");
    if is_object {
        if let Some(additional) = node.shape.additional_schema() {
            let value = below(additional, "@elem")?;
            return Some(Type::map(Type::Text, value));
        }
        let properties = node.shape.properties.iter();
        let mut fields: Vec<(String, Type)> = properties
            .filter_map(|(name, node)| Some((field_name(name)?, below(node, name)?)))
            .collect();
        if root {
            fields.extend(meta(name));
        }
        return Some(Type::Object(Arc::new(Object::new(name, fields))));
    }
    let types: Vec<&str> = node.types.iter().map(String::as_str).collect();
    Some(match (types[..].first()?, node.format.as_deref()) {
        (&"array", _) => Type::list(below(node.shape.items.as_deref()?, "@idx")?),
        (&"string", Some("byte")) => Type::Bytes,
        (&"string", Some("duration")) => Type::Duration,
        (&"string", Some("date" | "date-time")) => Type::Timestamp,
        (&"string", _) => Type::Text,
        (&"boolean", _) => Type::Bool,
        (&"number", _) => Type::Double,
        (&"integer", _) => Type::Int,
        _ => return None,
    })
}

/// Returns the fields that every resource has, whatever its schema says of them.
fn meta(name: &str) -> [(String, Type); 3] {
    let text = |name: &str| (name.to_owned(), Type::Text);
    let names = [text("name"), text("generateName")];
    let metadata = Object::new(&format!("{name}.metadata"), names);
    [
        text("apiVersion"),
        text("kind"),
        ("metadata".to_owned(), Type::Object(Arc::new(metadata))),
    ]
}

/// Returns the name of a property in rules; `None` if it can have none.
fn field_name(name: &str) -> Option<String> {
    // `Escape`: what is left after the replacements must be an identifier.
    let escaped = escape(name);
    let is_part = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    let is_name =
        escaped.bytes().all(is_part) && !escaped.starts_with(|c: char| c.is_ascii_digit());
    is_name.then_some(escaped).filter(|name| !name.is_empty())
}

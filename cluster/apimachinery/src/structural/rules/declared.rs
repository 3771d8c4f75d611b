//! What rules see of a schema: its type, and how large its values can be.
//!
//! Source: `SchemaDeclType` in `k8s.io/apiserver/pkg/cel/common/schemas.go`.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::values::escape;
use crate::expressions::{Dimensions, Object, Type};
use crate::structural::node::Node;

/// The size of the largest request in bytes.
// `MaxRequestSizeBytes`.
pub(super) const LARGEST_REQUEST: i64 = 3 << 20;

/// What rules see of a schema.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) kind: Type,
    pub(super) dimensions: Dimensions,
}

/// Returns what rules see of the values of a schema; `None` if they do not see them.
pub(super) fn declared(node: &Node, root: bool) -> Option<Declared> {
    named(node, "selfType", root)
}

impl Declared {
    fn scalar(kind: Type, most: i64, min_json_bytes: i64) -> Self {
        let dimensions = Dimensions::scalar(most.cast_unsigned(), min_json_bytes);
        Self { kind, dimensions }
    }

    /// Returns a text of any length.
    fn text() -> Self {
        Self::scalar(Type::Text, LONGEST_TEXT, 2)
    }
}

/// The longest text of a request, without its quotes.
const LONGEST_TEXT: i64 = LARGEST_REQUEST - 2;

fn named(node: &Node, name: &str, root: bool) -> Option<Declared> {
    if node.extensions.int_or_string {
        let most = node.bounds.max_length.map_or(LONGEST_TEXT, in_bytes);
        return Some(Declared::scalar(Type::Dyn, most, 1));
    }
    // `WithTypeAndObjectMeta` gives every resource a type.
    if root || node.is_type("object") {
        return match node.shape.additional_schema() {
            Some(additional) => map(node, additional, name),
            None => Some(object(node, name, root)),
        };
    }
    Some(
        match (node.types.first()?.as_str(), node.format.as_deref()) {
            ("array", _) => return list(node, name),
            ("string", format) => text(node, format),
            ("boolean", _) => Declared::scalar(Type::Bool, 0, 4),
            ("number", _) => Declared::scalar(Type::Double, 0, 1),
            ("integer", _) => Declared::scalar(Type::Int, 0, 1),
            _ => return None,
        },
    )
}

fn below(node: &Node, name: &str, part: &str) -> Option<Declared> {
    named(node, &format!("{name}.{part}"), node.extensions.embedded)
}

fn map(node: &Node, additional: &Node, name: &str) -> Option<Declared> {
    let value = below(additional, name, "@elem")?;
    // A key is at least empty, with its quotes, a colon, a comma and their spaces.
    let entry = value.dimensions.min_json_bytes() + 6;
    let most = node.bounds.max_properties.map(|most| most.max(0));
    let most = most.unwrap_or((LARGEST_REQUEST - 2) / entry);
    Some(Declared {
        kind: Type::map(Type::Text, value.kind),
        dimensions: Dimensions::map(value.dimensions, most.cast_unsigned()),
    })
}

fn list(node: &Node, name: &str) -> Option<Declared> {
    let element = below(node.shape.items.as_deref()?, name, "@idx")?;
    let with_comma = element.dimensions.min_json_bytes() + 1;
    let most = node.bounds.max_items.map(|most| most.max(0));
    let most = most.unwrap_or((LARGEST_REQUEST - 2) / with_comma);
    Some(Declared {
        kind: Type::list(element.kind),
        dimensions: Dimensions::list(element.dimensions, most.cast_unsigned()),
    })
}

fn object(node: &Node, name: &str, root: bool) -> Declared {
    let (mut kinds, mut dimensions) = (Vec::new(), BTreeMap::new());
    // An object is at least two braces.
    let mut min_json_bytes = 2;
    let required: HashSet<&str> = node.bounds.required.iter().map(String::as_str).collect();
    let mut add = |property: &str, declared: Declared, has_default: bool| {
        if !has_default && required.contains(property) {
            let length = i64::try_from(property.len()).unwrap_or(i64::MAX);
            min_json_bytes += length + declared.dimensions.min_json_bytes() + 4;
        }
        if let Some(field) = field_name(property) {
            kinds.push((field.clone(), declared.kind));
            dimensions.insert(field, declared.dimensions);
        }
    };
    let lacks_meta = root && !has_meta(node);
    for (property, node) in &node.shape.properties {
        if lacks_meta && META.contains(&property.as_str()) {
            continue;
        }
        if let Some(declared) = below(node, name, property) {
            add(property, declared, node.default.is_some());
        }
    }
    if lacks_meta {
        for (property, declared) in META.into_iter().zip(meta(name)) {
            add(property, declared, false);
        }
    }
    Declared {
        kind: Type::Object(Arc::new(Object::new(name, kinds))),
        dimensions: Dimensions::object(dimensions, min_json_bytes),
    }
}

fn text(node: &Node, format: Option<&str>) -> Declared {
    let limit = node.bounds.max_length;
    match format {
        Some("byte") => {
            let most = limit.map_or(LONGEST_TEXT, |most| most.max(0));
            Declared::scalar(Type::Bytes, most, 2)
        }
        Some("duration") => Declared::scalar(Type::Duration, 32, 3),
        Some("date") => Declared::scalar(Type::Timestamp, 12, 12),
        Some("date-time") => Declared::scalar(Type::Timestamp, 32, 21),
        _ => match limit {
            Some(most) => Declared::scalar(Type::Text, in_bytes(most), 2),
            None => choice(&node.bounds.choices).unwrap_or_else(Declared::text),
        },
    }
}

/// Returns a text that is one of some texts.
fn choice(choices: &[Value]) -> Option<Declared> {
    let lengths = choices.iter().map(|each| each.as_str().map_or(0, str::len));
    let longest = i64::try_from(lengths.max()?).unwrap_or(i64::MAX);
    Some(Declared::scalar(Type::Text, longest, 2))
}

/// Returns how many bytes so many characters may have.
fn in_bytes(characters: i64) -> i64 {
    // The product is not guarded, as in Go.
    characters.max(0).wrapping_mul(4)
}

/// The fields that every resource has.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Returns whether a schema declares these fields itself.
fn has_meta(node: &Node) -> bool {
    let is = |node: &Node, name: &str, kind: &str| {
        let property = node.shape.properties.get(name);
        property.is_some_and(|property| property.types == [kind])
    };
    let metadata = node.shape.properties.get("metadata");
    is(node, "apiVersion", "string")
        && is(node, "kind", "string")
        && is(node, "metadata", "object")
        && metadata.is_some_and(|metadata| {
            is(metadata, "name", "string") && is(metadata, "generateName", "string")
        })
}

/// Returns these fields as every resource has them.
fn meta(name: &str) -> [Declared; 3] {
    let names = ["name", "generateName"].map(str::to_owned);
    let kinds = names.clone().map(|name| (name, Type::Text));
    let dimensions = names.map(|name| (name, Declared::text().dimensions));
    let metadata = Object::new(&format!("{name}.metadata"), kinds);
    let metadata = Declared {
        kind: Type::Object(Arc::new(metadata)),
        dimensions: Dimensions::object(dimensions.into(), 2),
    };
    [Declared::text(), Declared::text(), metadata]
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

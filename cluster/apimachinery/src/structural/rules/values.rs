//! JSON values as CEL sees them, by their schema.
//!
//! Source: `schema/cel/values.go` and `k8s.io/apiserver/pkg/cel/escaping.go`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Value as Cel};
use serde_json::{Map as Members, Number, Value};

use super::program::Program;
use crate::expressions::is_reserved;
use crate::structural::node::Node;
use crate::structural::prune::META;

static TIMESTAMP: LazyLock<Option<Program>> =
    LazyLock::new(|| Program::compile("timestamp(text)").ok());
static DURATION: LazyLock<Option<Program>> =
    LazyLock::new(|| Program::compile("duration(text)").ok());

/// Turns a value into the one that rules see.
pub(crate) fn to_cel(value: &Value, node: Option<&Node>, context: &Context<'_>) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => of_number(number, node),
        Value::String(text) => of_text(text, node, context),
        Value::Array(elements) => {
            let items = node.and_then(|node| node.shape.items.as_deref());
            let elements = elements.iter().map(|each| to_cel(each, items, context));
            Cel::List(Arc::new(elements.collect()))
        }
        Value::Object(members) => {
            // Keys of a map are data, names of fields are identifiers.
            let is_map = node.is_none_or(|node| node.shape.additional.is_some());
            let member = |(name, value): (&String, &Value)| {
                let key = if is_map { name.clone() } else { escape(name) };
                let value = to_cel(value, node.and_then(|node| node.member(name)), context);
                (Key::String(Arc::new(key)), value)
            };
            let map: HashMap<Key, Cel> = members.iter().map(member).collect();
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

/// Returns a resource as rules at its root see it: of its metadata, only the names.
pub(super) fn root_view(value: &Value, node: &Node) -> Value {
    let Value::Object(members) = value else {
        return value.clone();
    };
    let mut view: Members<String, Value> = members
        .iter()
        // `WithTypeAndObjectMeta`: rules at the root always find type and metadata, declared or not.
        .filter(|(name, _)| !META.contains(&name.as_str()) || node.member(name).is_some())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for name in META {
        let seen = match (name, members.get(name)) {
            ("metadata", Some(Value::Object(metadata))) => {
                let names = ["name", "generateName"]
                    .into_iter()
                    .filter_map(|name| Some((name, metadata.get(name)?)))
                    .map(|(name, value)| (name.to_owned(), value.clone()));
                Value::Object(names.collect())
            }
            ("metadata", _) => Value::Object(Members::new()),
            (_, Some(text)) => text.clone(),
            // A rule may read them of an incomplete embedded resource too.
            (_, None) => "".into(),
        };
        view.insert(name.to_owned(), seen);
    }
    Value::Object(view)
}

/// Schemas know numbers, which are always fractions, and integers.
fn of_number(number: &Number, node: Option<&Node>) -> Cel {
    let float = number.as_f64().unwrap_or_default();
    let is_type = |name: &str| node.is_some_and(|node| node.is_type(name));
    // JSON does not tell `1` from `1.0`, so without the schema a whole number would not compare with fractions.
    if is_type("number") {
        return Cel::Float(float);
    }
    match number.as_i64() {
        Some(whole) => Cel::Int(whole),
        // A whole number written with an exponent or a point; the limit is just below the largest 64-bit integer.
        None if is_type("integer") && float.fract() == 0.0 && float.abs() < 9e18 => {
            Cel::Int(float as i64)
        }
        None => number.as_u64().map_or(Cel::Float(float), Cel::UInt),
    }
}

fn of_text(text: &str, node: Option<&Node>, context: &Context<'_>) -> Cel {
    let plain = || Cel::String(Arc::new(text.to_owned()));
    let format = node.and_then(|node| node.format.as_deref());
    let converted = match format {
        Some("byte") => STANDARD
            .decode(text)
            .ok()
            .map(|bytes| Cel::Bytes(Arc::new(bytes))),
        Some("date") => convert(&TIMESTAMP, &format!("{text}T00:00:00Z"), context),
        Some("date-time" | "datetime") => convert(&TIMESTAMP, text, context),
        Some("duration") => convert(&DURATION, text, context),
        _ => None,
    };
    // Validation has refused texts without the format. What remains was tolerated, and is seen as a text.
    converted.unwrap_or_else(plain)
}

/// Lets the language itself make its times, so that they are of its own types.
fn convert(program: &Option<Program>, text: &str, context: &Context<'_>) -> Option<Cel> {
    let mut scope = context.new_inner_scope();
    scope.add_variable_from_value("text", Cel::String(Arc::new(text.to_owned())));
    program.as_ref()?.execute(&scope).ok()
}

/// Makes an identifier of a field's name.
pub(crate) fn escape(name: &str) -> String {
    // Only a whole name is reserved, so this comes before the replacements and excludes them.
    if is_reserved(name) {
        return format!("__{name}__");
    }
    let name = name
        // First, because the replacements below introduce double underscores of their own.
        .replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__");
    name.replace('/', "__slash__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fields_are_escaped_as_the_server_escapes_them() {
        for (name, escaped) in [
            ("plain", "plain"),
            ("a_b", "a_b"),
            ("a__b", "a__underscores__b"),
            ("a.b-c/d", "a__dot__b__dash__c__slash__d"),
            ("namespace", "__namespace__"),
        ] {
            assert_eq!(escape(name), escaped);
        }
    }
}

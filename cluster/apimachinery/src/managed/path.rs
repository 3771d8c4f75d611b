//! One element of the path to a field.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};

use crate::{go_text, schema};

/// An element of a field's path, in the syntax of `managedFields`.
///
/// `f:name` is a member, `k:{"name":"a"}` the item with these keys, `v:"a"` the item with this value, `i:0` the item at
/// this index.
///
/// Source: `sigs.k8s.io/structured-merge-diff/v6/fieldpath`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PathElement(Box<str>);

impl PathElement {
    // The text is the element: comparing and sorting elements compares these texts, so equal elements must be written
    // alike. That is why `parse` writes the JSON again instead of keeping what was sent.
    pub(crate) fn member(name: &str) -> Self {
        Self(["f:", name].concat().into())
    }

    pub(crate) fn keys(keys: Map<String, Value>) -> Self {
        Self(format!("k:{}", written(Value::Object(keys))).into())
    }

    pub(crate) fn value(value: &Value) -> Self {
        Self(format!("v:{}", written(value.clone())).into())
    }

    fn index(at: i64) -> Self {
        Self(format!("i:{at}").into())
    }

    /// Reads an element of a `managedFields` entry; `None` if its kind is unknown.
    ///
    /// Source: `DeserializePathElement`.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, String> {
        // Only the first colon separates; names of annotations and values may contain more.
        let Some((kind, rest)) = text.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
            return Err(format!("missing colon: {text}"));
        };
        Ok(Some(match kind {
            "f" => Self::member(rest),
            "v" => Self::value(&first_value(rest)?),
            "k" => match first_value(rest)? {
                Value::Object(keys) => Self::keys(keys),
                Value::Null => Self::keys(Map::new()),
                _ => return Err(format!("the keys in {text:?} are no object")),
            },
            "i" => {
                let at: i64 = rest.parse().map_err(|_| format!("no index: {rest:?}"))?;
                Self::index(at)
            }
            _ => return Ok(None),
        }))
    }

    /// Compares as Go's `PathElement.Compare`: by kind, then by value.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let rank = |element: &Self| "fkvi".find(&element.0[..1]);
        let [one, two] = [self, other].map(|element| &element.0[2..]);
        let json = |text: &str| serde_json::from_str(text).unwrap_or_default();
        rank(self)
            .cmp(&rank(other))
            .then_with(|| match &self.0[..1] {
                "f" => one.cmp(two),
                _ => compare_values(&json(one), &json(two)),
            })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the member, if it is one.
    pub(crate) fn member_name(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }
}

/// Reads the first value of a text, and ignores the rest as jsoniter does.
fn first_value(text: &str) -> Result<Value, String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let value = values.next().unwrap_or(Ok(Value::Null));
    value.map_err(|error| error.to_string())
}

/// Writes a value as Go's JSON encoder does, and the same number always alike.
fn written(mut value: Value) -> String {
    schema::write_whole_numbers(&mut value);
    go_text::json(&value)
}

/// Compares values as `value.Compare` does: numbers, texts, booleans, lists, maps.
fn compare_values(one: &Value, two: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => match (one.as_i64(), two.as_i64()) {
            (Some(one), Some(two)) => one.cmp(&two),
            _ => one
                .as_f64()
                .partial_cmp(&two.as_f64())
                .unwrap_or(Ordering::Equal),
        },
        (Value::String(one), Value::String(two)) => one.cmp(two),
        (Value::Bool(one), Value::Bool(two)) => one.cmp(two),
        (Value::Array(one), Value::Array(two)) => {
            let items = one
                .iter()
                .zip(two)
                .map(|(one, two)| compare_values(one, two));
            first_of(items).then(one.len().cmp(&two.len()))
        }
        // Their members are sorted by their names.
        (Value::Object(one), Value::Object(two)) => {
            let members = one.iter().zip(two);
            let members = members.map(|((name, one), (other, two))| {
                name.cmp(other).then_with(|| compare_values(one, two))
            });
            first_of(members).then(one.len().cmp(&two.len()))
        }
        _ => rank(one).cmp(&rank(two)),
    }
}

fn first_of(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Writes an element as in error messages: `.name`, `[name="a"]`, `[="a"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every constructor writes a kind of one letter and a colon.
        let (kind, rest) = self.0.split_at(2);
        match kind {
            "f:" => write!(f, ".{rest}"),
            "v:" => {
                let value: Value = serde_json::from_str(rest).unwrap_or_default();
                write!(f, "[={}]", go_text::shown(&value))
            }
            "k:" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).unwrap_or_default();
                let shown =
                    |(key, value): (&String, &Value)| format!("{key}={}", go_text::shown(value));
                let pairs: Vec<String> = keys.iter().map(shown).collect();
                write!(f, "[{}]", pairs.join(","))
            }
            _ => write!(f, "[{rest}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_read_what_they_write_and_show_what_people_know() {
        for (text, shown) in [
            ("f:data", ".data"),
            ("f:a:b", ".a:b"),
            (
                r#"k:{"containerPort":80,"protocol":"TCP"}"#,
                r#"[containerPort=80,protocol="TCP"]"#,
            ),
            (r#"v:"x""#, r#"[="x"]"#),
            ("i:3", "[3]"),
        ] {
            let element = PathElement::parse(text).unwrap().unwrap();
            assert_eq!(element.as_str(), text);
            assert_eq!(element.to_string(), shown);
        }
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let written = PathElement::parse(r#"k:{ "b": 1.0, "a": 2e0 }"#).unwrap();
        assert_eq!(written.unwrap().as_str(), r#"k:{"a":2,"b":1}"#);
    }

    #[test]
    fn elements_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("v:1e3", Some("v:1000")),
            (r#"v:"<a>" b"#, Some(r#"v:"\u003ca\u003e""#)),
            ("k:null", Some("k:{}")),
            ("i:-1", Some("i:-1")),
            ("i:01", Some("i:1")),
            ("x:1", None),
            ("q:", None),
        ] {
            let element = PathElement::parse(text).unwrap();
            let written = element.as_ref().map(PathElement::as_str);
            assert_eq!(written, expected, "{text}");
        }
        let shown = PathElement::parse(r#"v:"<a>""#).unwrap().unwrap();
        assert_eq!(shown.to_string(), r#"[="<a>"]"#);
    }

    #[test]
    fn elements_are_ordered_by_what_they_mean() {
        let sorted = [
            "f:b",
            "f:c",
            r#"k:{"a":9}"#,
            r#"k:{"a":10}"#,
            r#"k:{"a":10,"b":"x"}"#,
            "v:9",
            "v:10",
            r#"v:"a""#,
            "i:9",
            "i:10",
        ];
        let mut elements: Vec<_> = sorted
            .iter()
            .rev()
            .map(|text| PathElement::parse(text).unwrap().unwrap())
            .collect();
        elements.sort_by(PathElement::compare);
        let elements: Vec<&str> = elements.iter().map(PathElement::as_str).collect();
        assert_eq!(elements, sorted);
    }

    #[test]
    fn malformed_steps_are_refused() {
        for text in ["", "x", ":", "ab:c", "k:1", "k:{", "v:x", "i:a", "i:"] {
            assert!(PathElement::parse(text).is_err(), "{text}");
        }
    }
}

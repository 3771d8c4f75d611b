//! One element of the path to a field.

use std::fmt;

use serde_json::{Map, Value};

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
        Self(format!("k:{}", Value::Object(keys)).into())
    }

    pub(crate) fn value(value: &Value) -> Self {
        Self(format!("v:{value}").into())
    }

    pub(crate) fn index(at: usize) -> Self {
        Self(format!("i:{at}").into())
    }

    /// Reads an element from a `managedFields` entry, however its JSON was written.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let malformed = || format!("missing or unknown type in path element {text:?}");
        // Only the first colon separates; names of annotations and values may contain more.
        let (kind, rest) = text.split_once(':').ok_or_else(malformed)?;
        let json = || serde_json::from_str::<Value>(rest).map_err(|error| error.to_string());
        match kind {
            "f" => Ok(Self::member(rest)),
            "v" => Ok(Self::value(&json()?)),
            "k" => match json()? {
                Value::Object(keys) => Ok(Self::keys(keys)),
                _ => Err(format!("the keys in {text:?} are no object")),
            },
            "i" => rest.parse().map(Self::index).map_err(|_| malformed()),
            _ => Err(malformed()),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the member, if it is one.
    pub(crate) fn member_name(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }
}

/// Writes an element as in error messages: `.name`, `[name="a"]`, `[="a"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every constructor writes a kind of one letter and a colon.
        let (kind, rest) = self.0.split_at(2);
        match kind {
            "f:" => write!(f, ".{rest}"),
            "v:" => write!(f, "[={rest}]"),
            "k:" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).unwrap_or_default();
                let pairs: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
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
            let element = PathElement::parse(text).unwrap();
            assert_eq!(element.as_str(), text);
            assert_eq!(element.to_string(), shown);
        }
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let written = PathElement::parse(r#"k:{ "b": 1, "a": 2 }"#).unwrap();
        assert_eq!(written.as_str(), r#"k:{"a":2,"b":1}"#);
    }

    #[test]
    fn malformed_steps_are_refused() {
        for text in ["", "x", "x:1", "k:1", "k:{", "v:", "i:a", "i:-1"] {
            assert!(PathElement::parse(text).is_err(), "{text}");
        }
    }
}

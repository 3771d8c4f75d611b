//! A value in an object, and where it is.

use std::fmt;
use std::rc::Rc;

use serde_json::Value;

use crate::object::Object;

/// A value in an object that knows its path; the value may be missing.
///
/// A missing member reads as the zero of its type, as in Go: an empty text, an empty list. The path becomes text only
/// where something is wrong.
#[derive(Debug, Clone)]
pub(crate) struct Field<'a> {
    value: &'a Value,
    // A chain to the root. Paths are shared between siblings and written only for causes, of which most objects have
    // none.
    place: Rc<Place<'a>>,
}

#[derive(Debug)]
struct Place<'a> {
    above: Option<Rc<Place<'a>>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    /// A key of a map, or the name of an item.
    Key(&'a str),
    Index(usize),
}

impl<'a> Field<'a> {
    /// Returns a member of an object itself.
    pub(crate) fn of(object: &'a Object, name: &'a str) -> Self {
        Self {
            value: object.get(name).unwrap_or(&Value::Null),
            place: Rc::new(Place {
                above: None,
                step: Step::Member(name),
            }),
        }
    }

    /// Returns a member.
    pub(crate) fn get(&self, name: &'a str) -> Self {
        self.below(Step::Member(name), self.member(name))
    }

    /// Returns this value under another path: `key` in brackets behind this one.
    pub(crate) fn key(&self, key: &'a str) -> Self {
        // The value stays: a cause about a key shows what the caller passes.
        self.below(Step::Key(key), self.value)
    }

    /// Returns this place with another value.
    pub(crate) fn with(&self, value: &'a Value) -> Self {
        Self {
            value,
            place: Rc::clone(&self.place),
        }
    }

    /// Returns a value under the path of an item of this list.
    pub(crate) fn item_as(&self, at: usize, value: &'a Value) -> Self {
        self.below(Step::Index(at), value)
    }

    /// Returns this place with the index of an item of another list behind it.
    pub(crate) fn item_of(&self, item: &Self) -> Self {
        // Used where Go names an item at another list than the one it is in.
        self.below(item.place.step, item.value)
    }

    fn below(&self, step: Step<'a>, value: &'a Value) -> Self {
        Self {
            value,
            place: Rc::new(Place {
                above: Some(Rc::clone(&self.place)),
                step,
            }),
        }
    }

    /// Returns the items of a list.
    pub(crate) fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let list = self.clone();
        let items = self.list().iter().enumerate();
        items.map(move |(at, item)| list.below(Step::Index(at), item))
    }

    /// Returns the entries of a map, with paths that end in the key in brackets.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let map = self.clone();
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(move |(key, value)| (key.as_str(), map.below(Step::Key(key), value)))
    }

    /// Returns the value; null if it is missing.
    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    /// Returns the value of a member; null if it is missing.
    pub(crate) fn member(&self, name: &str) -> &'a Value {
        self.value.get(name).unwrap_or(&Value::Null)
    }

    /// Returns a list, empty if there is none.
    pub(crate) fn list(&self) -> &'a [Value] {
        self.value.as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns a text, empty if there is none.
    pub(crate) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// Returns the text in a member, empty if there is none.
    pub(crate) fn text_of(&self, name: &str) -> &'a str {
        self.member(name).as_str().unwrap_or_default()
    }

    /// Returns a number, if there is one.
    pub(crate) fn int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Returns the number in a member, if there is one.
    pub(crate) fn int_of(&self, name: &str) -> Option<i64> {
        self.member(name).as_i64()
    }

    /// Returns whether a member is `true`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        *self.member(name) == Value::Bool(true)
    }

    /// Returns whether there is a value: in Go, whether a pointer is not nil.
    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Returns whether a member has a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        !self.member(name).is_null()
    }

    /// Returns whether there is no value, or an empty text, list or map.
    pub(crate) fn is_void(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Returns which of some members have a value, by name.
    pub(crate) fn given<'n>(&self, names: &[&'n str]) -> Vec<&'n str> {
        let given = names.iter().filter(|name| self.has(name));
        given.copied().collect()
    }
}

/// The path, as in `spec.containers[0].name`.
impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = &self.above {
            above.fmt(f)?;
        }
        match self.step {
            Step::Member(name) if self.above.is_some() => write!(f, ".{name}"),
            // As `Path.String` writes the path of the whole object, which is `field.NewPath("")`.
            Step::Member("") => f.write_str("[]"),
            Step::Member(name) => f.write_str(name),
            Step::Key(key) => write!(f, "[{key}]"),
            Step::Index(at) => write!(f, "[{at}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_written_as_in_go_and_what_is_missing_is_empty() {
        let object = json!({"spec": {"list": [{"a": 1}, {"a": 2}], "map": {"k/1": "v"}}});
        let spec = Field::of(object.as_object().unwrap(), "spec");
        let list = spec.get("list");
        let second = list.items().nth(1).unwrap().get("a");
        assert_eq!(
            (second.to_string(), second.int()),
            ("spec.list[1].a".into(), Some(2))
        );
        let map = spec.get("map");
        let (key, value) = map.entries().next().unwrap();
        assert_eq!(
            (key, value.to_string(), value.text()),
            ("k/1", "spec.map[k/1]".into(), "v")
        );
        let missing = spec.get("none").get("at all");
        assert_eq!(missing.to_string(), "spec.none.at all");
        assert!(missing.is_void() && !missing.is_set() && missing.text().is_empty());
    }
}

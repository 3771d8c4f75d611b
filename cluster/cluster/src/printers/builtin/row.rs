//! Reading an object, or a part of one, for its cells.

use serde_json::Value;

use crate::printers::source::{Row, since};

/// The cell of an empty value.
pub(super) const NONE: &str = "<none>";

/// The cell of a value that is not set.
pub(super) const UNSET: &str = "<unset>";

/// The cell of a value that is not known.
pub(super) const UNKNOWN: &str = "<unknown>";

impl<'a> Row<'a> {
    /// Returns a part of the object as if it were one.
    pub(super) fn at(self, pointer: &str) -> Self {
        Self {
            object: self.get(pointer),
            ..self
        }
    }

    pub(super) fn get(self, pointer: &str) -> &'a Value {
        self.object.pointer(pointer).unwrap_or(&Value::Null)
    }

    pub(super) fn has(self, pointer: &str) -> bool {
        !self.get(pointer).is_null()
    }

    /// Returns a text, empty if there is none.
    pub(super) fn text(self, pointer: &str) -> &'a str {
        self.get(pointer).as_str().unwrap_or_default()
    }

    /// Returns a text, or a default if it is empty.
    pub(super) fn text_or(self, pointer: &str, other: &'a str) -> &'a str {
        match self.text(pointer) {
            "" => other,
            text => text,
        }
    }

    /// Returns a number, 0 if there is none.
    pub(super) fn number(self, pointer: &str) -> i64 {
        self.get(pointer).as_i64().unwrap_or_default()
    }

    pub(super) fn flag(self, pointer: &str) -> bool {
        self.get(pointer).as_bool().unwrap_or_default()
    }

    /// Returns a number or a text as text, or a default if there is neither.
    pub(super) fn scalar_or(self, pointer: &str, other: &str) -> String {
        match self.get(pointer) {
            Value::String(text) => text.clone(),
            Value::Null => other.to_owned(),
            value => value.to_string(),
        }
    }

    pub(super) fn list(self, pointer: &str) -> &'a [Value] {
        self.get(pointer).as_array().map_or(&[], Vec::as_slice)
    }

    /// Iterates over the elements of a list, each as an object.
    pub(super) fn rows(self, pointer: &str) -> impl DoubleEndedIterator<Item = Row<'a>> {
        let elements = self.list(pointer).iter();
        elements.map(move |object| Row { object, ..self })
    }

    /// Returns how many elements a list or an object has.
    pub(super) fn count(self, pointer: &str) -> usize {
        match self.get(pointer) {
            Value::Array(list) => list.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        }
    }

    pub(super) fn is_deleting(self) -> bool {
        self.has("/metadata/deletionTimestamp")
    }

    /// Returns how long ago a time was, which may be unknown.
    pub(super) fn since(self, pointer: &str) -> String {
        let ago = since(self.at(pointer));
        ago.as_str().unwrap_or(UNKNOWN).to_owned()
    }

    /// Returns the status of a condition; empty if the object does not have it.
    pub(super) fn condition(self, kind: &str) -> &'a str {
        let mut conditions = self.rows("/status/conditions");
        let condition = conditions.find(|condition| condition.text("/type") == kind);
        condition.map_or("", |condition| condition.text("/status"))
    }
}

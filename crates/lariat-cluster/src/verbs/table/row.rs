//! Reading an object for the cells of its row.

use jiff::Timestamp;
use serde_json::Value;

use super::age;

/// What is shown where there is nothing.
pub(super) const NONE: &str = "<none>";

/// The cells of one row.
pub(super) type Cells = Vec<Value>;

/// An object whose cells are printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    object: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> Row<'a> {
    pub(super) fn new(object: &'a Value, now: Timestamp) -> Self {
        Self { object, now }
    }

    /// Looks at a part of the object as if it were one.
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

    /// Returns a text, or something else where it is empty.
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

    /// Returns a number or a text as text, or something else where there is neither.
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
        let now = self.now;
        self.list(pointer)
            .iter()
            .map(move |element| Row::new(element, now))
    }

    /// Returns how many elements a list or an object has.
    pub(super) fn count(self, pointer: &str) -> usize {
        match self.get(pointer) {
            Value::Array(list) => list.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        }
    }

    pub(super) fn name(self) -> &'a str {
        self.text("/metadata/name")
    }

    pub(super) fn is_deleting(self) -> bool {
        self.has("/metadata/deletionTimestamp")
    }

    /// Returns how long the object has existed.
    pub(super) fn age(self) -> String {
        self.since("/metadata/creationTimestamp")
    }

    /// Returns how long ago a time was.
    pub(super) fn since(self, pointer: &str) -> String {
        age::since(self.get(pointer).as_str(), self.now)
    }

    /// Returns the status of a condition, empty if there is no such.
    pub(super) fn condition(self, conditions: &str, kind: &str) -> &'a str {
        let found = self
            .rows(conditions)
            .find(|condition| condition.text("/type") == kind);
        found.map_or("", |condition| condition.text("/status"))
    }

    /// Returns names and images of the containers in a list, as two cells.
    pub(super) fn containers(self, pointer: &str) -> [Value; 2] {
        let join = |member: &str| {
            let texts: Vec<&str> = self.rows(pointer).map(|each| each.text(member)).collect();
            texts.join(",")
        };
        [join("/name").into(), join("/image").into()]
    }

    /// Writes the labels in a map.
    pub(super) fn labels(self, pointer: &str) -> String {
        let labels: Vec<String> = pairs(self.get(pointer)).collect();
        if labels.is_empty() {
            NONE.to_owned()
        } else {
            labels.join(",")
        }
    }

    /// Writes a label selector, empty if it selects all or nothing.
    pub(super) fn selector(self, pointer: &str) -> String {
        let selector = self.at(pointer);
        let mut terms: Vec<(String, String)> = selector
            .get("/matchLabels")
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| {
                let value = value.as_str().unwrap_or_default();
                (key.clone(), format!("{key}={value}"))
            })
            .collect();
        terms.extend(selector.rows("/matchExpressions").map(expression));
        terms.sort();
        let terms: Vec<String> = terms.into_iter().map(|(_, term)| term).collect();
        terms.join(",")
    }

    /// Writes a label selector where nothing is shown as such.
    pub(super) fn selector_or_none(self, pointer: &str) -> String {
        match self.selector(pointer) {
            selector if selector.is_empty() => NONE.to_owned(),
            selector => selector,
        }
    }

    /// Joins the texts of a list.
    pub(super) fn join(self, pointer: &str, separator: &str) -> String {
        let texts: Vec<&str> = self
            .list(pointer)
            .iter()
            .filter_map(Value::as_str)
            .collect();
        texts.join(separator)
    }
}

fn pairs(labels: &Value) -> impl Iterator<Item = String> {
    labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
}

/// Writes a term of `matchExpressions`, with its key to sort by.
fn expression(term: Row<'_>) -> (String, String) {
    let key = term.text("/key").to_owned();
    let mut values: Vec<&str> = term
        .list("/values")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    values.sort_unstable();
    let values = values.join(",");
    let text = match term.text("/operator") {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.clone(),
    };
    (key, text)
}

/// Writes the first few of some texts, and how many more there are.
pub(super) fn first_of(texts: &[String], most: usize) -> String {
    if texts.len() <= most {
        return texts.join(",");
    }
    format!(
        "{} + {} more...",
        texts[..most].join(","),
        texts.len() - most
    )
}

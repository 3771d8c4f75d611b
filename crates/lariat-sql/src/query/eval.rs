//! Whether an object meets a query, and how two of them are ordered.

use std::cmp::Ordering;

use super::Namespaces;
use super::plan::{Check, Comparison, Order, Plan, Target, Test, words_of};
use crate::field::Value;
use crate::row::Row;
use crate::schema::{NAME, Schema};

impl Plan {
    /// Returns whether an object meets all conditions.
    pub(crate) fn matches(&self, schema: &Schema, row: &Row) -> bool {
        if !self.accesses.iter().all(|access| access.allows(&row.key)) {
            return false;
        }
        if self.namespaces.as_ref().is_some_and(|it| !it.holds(row)) {
            return false;
        }
        let mut filters = self.filters.iter();
        filters.all(|any| any.iter().any(|test| test.holds(row))) && self.is_found(schema, row)
    }

    /// Returns whether all words are in the searchable fields.
    fn is_found(&self, schema: &Schema, row: &Row) -> bool {
        let Some((last, others)) = self.words.split_last() else {
            return true;
        };
        let fields = schema.fields().iter().zip(&row.cells);
        let texts = fields.filter(|(field, _)| field.is_searchable());
        let texts = texts.flat_map(|(_, values)| values.iter().map(Value::to_string));
        let words: Vec<String> = texts
            .flat_map(|text| words_of(&text).collect::<Vec<_>>())
            .collect();
        others.iter().all(|word| words.contains(word))
            && words.iter().any(|word| word.starts_with(last.as_str()))
    }

    /// Compares two objects as the query sorts them; only equal keys are equal.
    pub(crate) fn compare(&self, schema: &Schema, one: &Row, other: &Row) -> Ordering {
        let mut by_orders = self.orders.iter().map(|order| order.compare(one, other));
        by_orders
            .find(|ordering| ordering.is_ne())
            .unwrap_or_else(|| by_key(schema, one, other))
    }
}

/// Compares by namespace, then by name; objects of the cluster come last, as all that has no value.
fn by_key(schema: &Schema, one: &Row, other: &Row) -> Ordering {
    let namespace = nulls_last(
        one.key.namespace().map(str::as_bytes),
        other.key.namespace().map(str::as_bytes),
    );
    let name = |row: &Row| {
        row.cells[schema.place(NAME).unwrap_or_default()]
            .first()
            .cloned()
    };
    namespace.then_with(|| name(one).cmp(&name(other)))
}

fn nulls_last<T: Ord>(one: Option<T>, other: Option<T>) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => one.cmp(&other),
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
    }
}

impl Order {
    fn compare(&self, one: &Row, other: &Row) -> Ordering {
        let ascending = match &self.target {
            Target::Field(place) => {
                nulls_last(one.cells[*place].first(), other.cells[*place].first())
            }
            Target::Label(key) => nulls_last(one.labels.get(key), other.labels.get(key)),
        };
        if self.is_descending {
            ascending.reverse()
        } else {
            ascending
        }
    }
}

impl Namespaces {
    /// Returns whether an object is in the namespaces, which are known by name.
    fn holds(&self, row: &Row) -> bool {
        let namespace = row.key.namespace();
        let is_in = namespace.is_some_and(|name| self.values.iter().any(|value| value == name));
        is_in != self.is_negated
    }
}

impl Test {
    fn holds(&self, row: &Row) -> bool {
        let holds = match &self.target {
            Target::Field(place) => row.cells[*place]
                .iter()
                .any(|value| self.check.holds(value)),
            Target::Label(key) => {
                let value = row.labels.get(key).map(|text| Value::Text(text.into()));
                value.is_some_and(|value| self.check.holds(&value))
            }
        };
        holds != self.is_negated
    }
}

impl Check {
    fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Exists => true,
            Self::OneOf(values) => values.contains(value),
            Self::HasPart(part) => {
                let text = value.as_text().map(str::to_ascii_lowercase);
                text.is_some_and(|text| text.contains(part))
            }
            Self::Compares(comparison, other) => {
                let ordering = value.cmp(other);
                match comparison {
                    Comparison::Less => ordering.is_lt(),
                    Comparison::AtMost => ordering.is_le(),
                    Comparison::Greater => ordering.is_gt(),
                    Comparison::AtLeast => ordering.is_ge(),
                }
            }
        }
    }
}

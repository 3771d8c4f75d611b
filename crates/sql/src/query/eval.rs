//! Evaluation in memory: whether an object meets a query, and how two are ordered.

use std::cmp::Ordering;

use super::Namespaces;
use super::plan::{Check, Comparison, Order, Plan, Target, Test, words_of};
use crate::access::Access;
use crate::associated::{Associated, Link};
use crate::field::Value;
use crate::row::Row;
use crate::schema::{NAME, Schema};

/// The objects of associated kinds, by association in order.
///
/// The default has none: encrypted kinds have no associations, and watches no conditions on them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Others<'a>(pub(crate) &'a [(Associated, Vec<Row>)]);

impl Others<'_> {
    /// Returns the values of a field or label.
    ///
    /// They are values of the object, or of the objects associated with it that may be seen.
    pub(crate) fn values(self, plan: &Plan, row: &Row, target: &Target) -> Vec<Value> {
        let Target::Associated(place, of) = target else {
            return own_values(row, target);
        };
        let Some((associated, rows)) = self.0.get(*place) else {
            return Vec::new();
        };
        let accesses = &plan.associated[*place];
        let seen = |other: &&Row| {
            accesses
                .iter()
                // A condition must not tell a user about an object that the user may not see.
                .all(|access: &Access| access.allows(&other.key))
        };
        let related = rows
            .iter()
            .filter(|other| associated.link.joins(row, other));
        related
            .filter(seen)
            .flat_map(|other| own_values(other, of))
            .collect()
    }
}

impl Link {
    /// Returns whether two objects are associated.
    fn joins(&self, row: &Row, other: &Row) -> bool {
        let namespace = other.key.namespace();
        // As in SQL: a namespaced object is associated only within its namespace.
        if namespace.is_some() && namespace != row.key.namespace() {
            return false;
        }
        match self {
            Self::Label(key) => row.labels.get(key) == Some(other.key.name()),
            Self::Owner { is_controller } => {
                let mut owners = row.owners.iter();
                owners.any(|owner| {
                    *owner.uid == *other.uid && (owner.is_controller || !is_controller)
                })
            }
            Self::Field { own, other: place } => row.cells[*own].iter().any(|value| {
                let mut values = other.cells[*place].iter();
                values.any(|other| match (value.as_text(), other.as_text()) {
                    (Some(value), Some(other)) => value == other,
                    // Natural texts and texts compare as texts, other values by their type.
                    _ => value == other,
                })
            }),
        }
    }
}

/// Returns the values of a field or label of an object itself.
fn own_values(row: &Row, target: &Target) -> Vec<Value> {
    match target {
        Target::Field(place) => row.cells[*place].clone(),
        Target::Label(key) => {
            let value = row.labels.get(key).map(|text| Value::Text(text.into()));
            value.into_iter().collect()
        }
        Target::Associated(..) => Vec::new(),
    }
}

impl Plan {
    /// Returns whether an object is visible and in the namespaces of the query.
    pub(crate) fn covers(&self, row: &Row) -> bool {
        self.accesses.iter().all(|access| access.allows(&row.key))
            && self.namespaces.as_ref().is_none_or(|it| it.holds(row))
    }

    /// Returns whether an object meets all conditions.
    pub(crate) fn matches(&self, schema: &Schema, row: &Row, others: Others<'_>) -> bool {
        // First, so that no other test reads an object that the user may not see.
        if !self.covers(row) {
            return false;
        }
        let mut filters = self.filters.iter();
        filters.all(|any| any.iter().any(|test| test.holds(self, row, others)))
            && self.is_found(schema, row)
    }

    /// Returns whether all words occur in the searchable fields.
    fn is_found(&self, schema: &Schema, row: &Row) -> bool {
        let Some((last, others)) = self.words.split_last() else {
            return true;
        };
        let fields = schema.fields().iter().zip(&row.cells);
        let texts = fields
            .filter(|(field, _)| field.is_searchable())
            .flat_map(|(_, values)| values.iter().map(Value::to_string));
        let words: Vec<String> = texts
            .flat_map(|text| words_of(&text).collect::<Vec<_>>())
            .collect();
        // The last word may be incomplete, because a search runs while the user types.
        others.iter().all(|word| words.contains(word))
            && words.iter().any(|word| word.starts_with(last.as_str()))
    }

    /// Compares two objects as the query sorts them; only equal keys are equal.
    pub(crate) fn compare(
        &self,
        schema: &Schema,
        one: &Row,
        other: &Row,
        others: Others<'_>,
    ) -> Ordering {
        let value = |row: &Row, order: &Order| {
            let values = others.values(self, row, &order.target);
            // A field with one value; the minimum only gives a fixed result if there are more.
            values.into_iter().min()
        };
        let mut by_orders = self
            .orders
            .iter()
            .map(|order| {
                let ascending = nulls_last(value(one, order), value(other, order));
                if order.is_descending {
                    ascending.reverse()
                } else {
                    ascending
                }
            })
            .filter(|ordering| ordering.is_ne());
        by_orders
            .next()
            .unwrap_or_else(|| by_key(schema, one, other))
    }
}

/// Compares by namespace, then by name; cluster-scoped objects come last.
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

impl Namespaces {
    /// Returns whether an object is in the namespaces, which are given by name.
    fn holds(&self, row: &Row) -> bool {
        let namespace = row.key.namespace();
        // A cluster-scoped object is in no namespace, so it meets a negated list only.
        let is_in = namespace.is_some_and(|name| self.values.iter().any(|value| value == name));
        is_in != self.is_negated
    }
}

impl Test {
    fn holds(&self, plan: &Plan, row: &Row, others: Others<'_>) -> bool {
        let holds = match &self.target {
            Target::Field(place) => row.cells[*place]
                .iter()
                .any(|value| self.check.holds(value)),
            target => {
                let values = others.values(plan, row, target);
                values.iter().any(|value| self.check.holds(value))
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

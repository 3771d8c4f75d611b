//! Associations whose other kind is resolved.

use std::sync::Arc;

use crate::association::{Association, By};
use crate::schema::{NAME, Schema, UID};

/// An association whose other kind is resolved.
#[derive(Debug, Clone)]
pub(crate) struct Associated {
    /// The schema of the other kind.
    pub(crate) schema: Schema,
    pub(crate) link: Link,
    /// Whether an object has at most one associated object.
    pub(crate) is_one: bool,
}

impl Associated {
    /// Finds the fields of an association in the schemas of both kinds.
    ///
    /// # Errors
    ///
    /// Fails if a field does not exist, or the two cannot be compared.
    pub(crate) fn resolve(
        association: &Association,
        own: &Schema,
        other: &Schema,
    ) -> Result<Self, String> {
        let place = |schema: &Schema, name: &str| {
            schema
                .place(name)
                .ok_or_else(|| schema.unknown(name).to_string())
        };
        let (link, is_one) = match association.by() {
            // A label has one value, and that is the name of one object.
            By::Label(key) => (Link::Label(Arc::clone(key)), true),
            By::Owner { is_controller } => {
                let is_controller = *is_controller;
                (Link::Owner { is_controller }, is_controller)
            }
            By::Field {
                own: one,
                other: two,
            } => {
                let (own_place, place) = (place(own, one)?, place(other, two)?);
                let (from, to) = (&own.fields()[own_place], &other.fields()[place]);
                let types = (from.field_type(), to.field_type());
                // Columns of two types would compare as never equal, and the join would find nothing without an error.
                if types.0 != types.1 && !(types.0.is_text() && types.1.is_text()) {
                    let (from, to) = (from.name(), to.name());
                    return Err(format!(
                        "{from} is of the type {:?} and {to} of the type {:?}: give both the same",
                        types.0, types.1
                    ));
                }
                // Only a name within a namespace and a UID are unique; another field can match many objects.
                let is_one = !from.is_many() && matches!(&**two, NAME | UID);
                let (own, other) = (own_place, place);
                (Link::Field { own, other }, is_one)
            }
        };
        Ok(Self {
            schema: other.clone(),
            link,
            is_one,
        })
    }
}

/// How associated objects are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    /// The positions of fields of this kind and of the other one.
    Field {
        own: usize,
        other: usize,
    },
    /// The key of a label whose value is the name of the other object.
    Label(Arc<str>),
    Owner {
        is_controller: bool,
    },
}

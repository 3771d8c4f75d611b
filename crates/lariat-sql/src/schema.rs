//! What is indexed of a kind.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use lariat_core::Gvk;

use crate::field::{Field, FieldType};

/// The name of the field with an object's namespace.
pub(crate) const NAMESPACE: &str = "metadata.namespace";
/// The name of the field with an object's name.
pub(crate) const NAME: &str = "metadata.name";
/// The fields that every kind has, in the order of their places.
const BASE: [(&str, FieldType); 4] = [
    (NAMESPACE, FieldType::Text),
    (NAME, FieldType::Natural),
    ("metadata.creationTimestamp", FieldType::Time),
    ("metadata.uid", FieldType::Text),
];

/// The indexed fields of a kind.
///
/// Every kind has `metadata.namespace`, `metadata.name` (in [natural](FieldType::Natural) order), `metadata.creationTimestamp` and
/// `metadata.uid`. Labels need no field: queries name them as `metadata.labels[app]`.
#[derive(Clone)]
pub struct Schema {
    gvk: Gvk,
    fields: Arc<[Field]>,
    places: Arc<HashMap<Arc<str>, usize>>,
}

impl Schema {
    /// Makes the schema of a kind from the fields that come to those which every kind has.
    ///
    /// # Errors
    ///
    /// Two fields have one name, or a field has the name of one that every kind has, or is empty.
    pub fn new(
        gvk: impl Into<Gvk>,
        fields: impl IntoIterator<Item = Field>,
    ) -> Result<Self, SchemaError> {
        let gvk = gvk.into();
        let base = BASE.iter().map(|(path, of)| {
            let field = Field::path(path, *of);
            field.unwrap_or_else(|_| Field::computed(path, *of, |_| None))
        });
        let fields: Vec<Field> = base.chain(fields).collect();
        let mut places = HashMap::with_capacity(fields.len());
        for (place, field) in fields.iter().enumerate() {
            let name: Arc<str> = field.name().into();
            if name.is_empty() || places.insert(Arc::clone(&name), place).is_some() {
                return Err(SchemaError { gvk, field: name });
            }
        }
        Ok(Self {
            gvk,
            fields: fields.into(),
            places: Arc::new(places),
        })
    }

    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// Returns the fields, those that every kind has first.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the place of a field among the fields.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Returns a text that differs between schemas whose stored rows differ.
    ///
    /// What computes a field is not in it: a program that changes a function renames the field.
    pub(crate) fn signature(&self) -> String {
        let fields = self.fields.iter().map(|field| {
            let (name, of) = (field.name(), field.field_type());
            let (many, searchable) = (field.is_many(), field.is_searchable());
            let path = field.source_path().map(ToString::to_string);
            format!("{name:?} {of:?} {many} {searchable} {path:?}")
        });
        fields.collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema")
            .field("gvk", &self.gvk)
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}

/// A schema in which a field's name is empty or used twice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the schema of {gvk} has two fields named {field:?}, or one without a name: give each a name of its own"
)]
pub struct SchemaError {
    gvk: Gvk,
    field: Arc<str>,
}

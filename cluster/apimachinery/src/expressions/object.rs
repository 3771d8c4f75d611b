//! Types with fields.

use std::collections::BTreeMap;

use super::types::Type;

/// A type with fields.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    name: String,
    fields: Fields,
}

/// The fields of a type.
#[derive(Debug, Clone)]
enum Fields {
    Known(BTreeMap<String, Type>),
    /// Some are known, and the others have one type.
    Open(BTreeMap<String, Type>, Type),
    /// The server does not find the type by its name, so no field of it either.
    Unresolved,
}

/// What is known of a field.
pub(super) enum Field<'a> {
    Of(&'a Type),
    Undefined,
    Unresolved,
}

impl Object {
    /// Creates a type with some fields.
    pub(crate) fn new(name: &str, fields: impl IntoIterator<Item = (String, Type)>) -> Self {
        let fields = Fields::Known(fields.into_iter().collect());
        let name = name.to_owned();
        Self { name, fields }
    }

    /// Creates a type with known fields; all other fields have the type `others`.
    pub(super) fn open(name: &str, fields: &[(&str, Type)], others: Type) -> Self {
        let fields = fields.iter().cloned();
        let fields = fields.map(|(name, kind)| (name.to_owned(), kind));
        Self {
            name: name.to_owned(),
            fields: Fields::Open(fields.collect(), others),
        }
    }

    /// Creates a type that only functions take.
    pub(super) fn unresolved(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            fields: Fields::Unresolved,
        }
    }

    /// Adds a field to a type whose fields are known.
    pub(crate) fn declare(&mut self, name: &str, kind: Type) {
        if let Fields::Known(fields) = &mut self.fields {
            fields.insert(name.to_owned(), kind);
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn field(&self, name: &str) -> Field<'_> {
        match &self.fields {
            Fields::Known(fields) => {
                let found = fields.get(name);
                // `recognizeKeywordAsFieldName`: a reserved word is written as it is, too.
                let found = found.or_else(|| fields.get(&format!("__{name}__")));
                found.map_or(Field::Undefined, Field::Of)
            }
            Fields::Open(fields, others) => Field::Of(fields.get(name).unwrap_or(others)),
            Fields::Unresolved => Field::Unresolved,
        }
    }
}

/// The server knows types by their names.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

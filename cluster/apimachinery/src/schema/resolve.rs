//! A type seen where it is used.

use std::sync::Arc;

use serde_json::Value;

use super::builtin;
use super::types::{Field, List, PatchStrategy, Scalar, Type, TypeId, Types, Zero};

/// A type and everything it refers to.
#[derive(Debug, Clone)]
pub struct Schema {
    pub(super) types: Arc<Types>,
    pub(super) root: TypeId,
}

/// A reference to a type of a schema.
#[derive(Debug, Clone, Copy)]
pub struct TypeRef<'a> {
    types: &'a Types,
    /// `None` for what is anything.
    id: Option<TypeId>,
}

/// The shape of a value, given its type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Resolved<'a> {
    /// Some scalar; `None` is any.
    Scalar(Option<Scalar>),
    List(&'a List),
    Map,
    Struct,
    /// A list of which nothing is known: one value.
    AnyList,
    /// A map of which nothing is known: its members are on their own.
    AnyMap,
}

impl Schema {
    /// Returns the type itself.
    #[must_use]
    pub fn root(&self) -> TypeRef<'_> {
        TypeRef::new(&self.types, self.root)
    }
}

impl<'a> TypeRef<'a> {
    pub(super) fn new(types: &'a Types, id: TypeId) -> Self {
        Self {
            types,
            id: Some(id),
        }
    }

    /// Returns the id of the type, if it is one of `types`.
    pub(super) fn id_in(self, types: &Types) -> Option<TypeId> {
        // Ids are indexes, so they mean something in their own table only.
        self.id.filter(|_| std::ptr::eq(self.types, types))
    }

    pub(crate) fn get(self) -> Option<&'a Type> {
        Some(self.types.get(self.id?))
    }

    /// Returns another of the types.
    pub(crate) fn at(self, id: TypeId) -> Self {
        Self {
            id: Some(id),
            ..self
        }
    }

    /// Returns the type of a value about which nothing is known.
    pub(crate) fn any(self) -> Self {
        Self { id: None, ..self }
    }

    /// Decides how a value is treated.
    ///
    /// It depends on the value only where the type allows anything.
    pub(crate) fn resolve(self, value: &Value) -> Resolved<'a> {
        match self.get() {
            Some(Type::Scalar(scalar)) => Resolved::Scalar(Some(*scalar)),
            Some(Type::List(list)) => Resolved::List(list),
            Some(Type::Map(_)) => Resolved::Map,
            Some(Type::Struct(_)) => Resolved::Struct,
            Some(Type::Any) | None => match value {
                Value::Array(_) => Resolved::AnyList,
                // What is embedded unread is one value with one owner, unlike other values of any type.
                Value::Object(_) if builtin::is_raw(self) => Resolved::Scalar(None),
                Value::Object(_) => Resolved::AnyMap,
                _ => Resolved::Scalar(None),
            },
        }
    }

    /// Returns a field by its name.
    pub(crate) fn field(self, name: &str) -> Option<&'a Field> {
        match self.get() {
            Some(Type::Struct(fields)) => fields.field(name),
            _ => None,
        }
    }

    /// Returns the zero of a scalar that Go writes in any case.
    pub(crate) fn zero_of(self, field: &Field) -> Option<Value> {
        match self.at(field.type_id).get() {
            // A field that Go always writes has a value even if the client left it out; list keys need that.
            Some(Type::Scalar(scalar)) if field.zero == Zero::Written => match scalar {
                Scalar::String => Some("".into()),
                Scalar::Int32 | Scalar::Int64 => Some(0.into()),
                Scalar::Bool => Some(false.into()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the type of a member, or `None` where there can be no such member.
    #[must_use]
    pub fn member(self, name: &str) -> Option<Self> {
        self.find(name).map(|(_, below)| below)
    }

    /// Returns the field of a structure and the type of a member, in one lookup.
    pub(crate) fn find(self, name: &str) -> Option<(Option<&'a Field>, Self)> {
        match self.get() {
            Some(Type::Struct(fields)) => match fields.field(name) {
                Some(field) => Some((Some(field), self.at(field.type_id))),
                // Only structures that preserve unknown fields are open.
                None => fields.open.map(|open| (None, self.at(open))),
            },
            Some(Type::Map(map)) => Some((None, self.at(map.value))),
            Some(Type::Any) | None => Some((None, self.any())),
            _ => None,
        }
    }

    /// Returns the type of the items of a list.
    #[must_use]
    pub fn item(self) -> Self {
        match self.get() {
            Some(Type::List(list)) => self.at(list.item),
            _ => self.any(),
        }
    }

    /// Returns how strategic merge patch treats a member.
    pub(crate) fn patch(self, name: &str) -> PatchStrategy {
        self.field(name)
            .map(|field| field.patch.clone())
            .unwrap_or_default()
    }

    /// Returns whether values are taken as a whole.
    pub(crate) fn is_atomic(self) -> bool {
        match self.get() {
            Some(Type::Struct(fields)) => fields.atomic,
            Some(Type::Map(map)) => map.atomic,
            Some(Type::Any) => builtin::is_raw(self),
            _ => false,
        }
    }
}

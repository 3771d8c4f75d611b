//! The types of objects: what fields there are, and how their values merge.
//!
//! Server-side apply, strategic merge patch and field validation read them. Built-in types come from a
//! table made out of Kubernetes' own schemas, those of custom resources from their definitions.

mod builtin;
mod custom;
mod decode;
pub(crate) mod describe;
pub(crate) mod field_path;
pub(crate) mod protobuf;
mod quantity;
mod resolve;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use builtin::builtin;
pub(crate) use custom::custom;
pub(crate) use decode::{decode, write_whole_numbers};
pub(crate) use resolve::{Resolved, TypeRef};

/// A type and everything it refers to.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    types: Arc<Types>,
    root: TypeId,
}

/// Types that refer to each other by place.
#[derive(Debug, Default)]
pub(crate) struct Types {
    list: Vec<Type>,
}

/// The place of a type among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TypeId(u32);

/// One type.
#[derive(Debug, Clone)]
pub(crate) enum Type {
    Scalar(Scalar),
    /// Anything. What it turns out to be decides how it merges: maps by member, lists as a whole.
    Any,
    List(List),
    Map(Map),
    Struct(Struct),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    Int32,
    Int64,
    Number,
    Bool,
    /// Base64 in a text.
    Bytes,
    /// RFC 3339; both kinds of time.
    Time,
    MicroTime,
    IntOrString,
    /// A text or a number.
    Quantity,
}

#[derive(Debug, Clone)]
pub(crate) struct List {
    pub(crate) item: TypeId,
    pub(crate) kind: ListKind,
}

/// What identifies the items of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// Nothing: the list is one value.
    Atomic,
    /// Their values, which are scalars.
    Set,
    /// Some of their members.
    Map(Vec<Cow<'static, str>>),
}

/// A map with any keys.
#[derive(Debug, Clone)]
pub(crate) struct Map {
    pub(crate) value: TypeId,
    /// Whether it is one value.
    pub(crate) atomic: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Struct {
    /// Sorted by name.
    fields: Vec<Field>,
    pub(crate) atomic: bool,
    /// The type of members that are no fields, if there may be some.
    pub(crate) open: Option<TypeId>,
}

#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: Cow<'static, str>,
    pub(crate) type_id: TypeId,
    pub(crate) required: bool,
    pub(crate) default: Option<Value>,
    pub(crate) patch: Patch,
    /// How it is written in protobuf, if it can be.
    wire: Option<Wire>,
}

/// How a field is written in protobuf.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wire {
    /// The number of the field, behind those of the messages around it that JSON does not have.
    numbers: Box<[u32]>,
    /// Whether an optional zero is a value; others are left out.
    keeps_zero: bool,
    /// What may be there instead of a schema.
    or: Option<Or>,
}

/// What the schemas of definitions have in some places instead of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Or {
    Bool,
    /// A list of schemas.
    List,
    /// A list of texts.
    Strings,
}

/// How strategic merge patch treats a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Patch {
    pub(crate) merge: bool,
    pub(crate) replace: bool,
    pub(crate) retain_keys: bool,
    /// The member that identifies the items of a merged list.
    pub(crate) key: Option<Cow<'static, str>>,
}

impl Schema {
    /// Returns the type itself.
    pub(crate) fn root(&self) -> TypeRef<'_> {
        TypeRef::new(&self.types, self.root)
    }
}

impl Field {
    /// Returns whether Go leaves a scalar out because it is zero.
    fn leaves_out(&self, scalar: Scalar, value: &Value) -> bool {
        let keeps = self.wire.as_ref().is_none_or(|wire| wire.keeps_zero);
        !keeps && !self.required && protobuf::is_zero(scalar, value)
    }
}

impl Types {
    fn add(&mut self, added: Type) -> TypeId {
        let id = u32::try_from(self.list.len()).expect("there are far fewer types");
        self.list.push(added);
        TypeId(id)
    }

    fn get(&self, id: TypeId) -> &Type {
        &self.list[id.0 as usize]
    }

    fn set(&mut self, id: TypeId, new: Type) {
        self.list[id.0 as usize] = new;
    }
}

impl Struct {
    fn new(mut fields: Vec<Field>) -> Self {
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            fields,
            ..Self::default()
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        let place = self
            .fields
            .binary_search_by(|field| field.name.as_ref().cmp(name));
        place.ok().map(|at| &self.fields[at])
    }

    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }
}

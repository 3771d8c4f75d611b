//! Types, and how their values merge.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

/// Types that refer to each other by id.
#[derive(Debug, Default)]
pub(crate) struct Types {
    list: Vec<Type>,
}

/// The id of a type: its index among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TypeId(pub(super) u32);

/// One type.
#[derive(Debug, Clone)]
pub(crate) enum Type {
    Scalar(Scalar),
    /// Any value.
    ///
    /// The value decides how it merges: maps by member, lists as a whole.
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

/// The identity of the items of a list: `listType`.
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
    pub(super) fields: Vec<Field>,
    /// The indexes of the fields, sorted by the length of the name and then by name.
    pub(super) by_length: Box<[u16]>,
    /// The indexes of the fields that Go writes even if they are absent.
    pub(super) always_written: Box<[u16]>,
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
    /// All values there may be, or all that items may have, as the table has them.
    pub(super) values: Option<&'static str>,
    pub(crate) patch: PatchStrategy,
    pub(crate) zero: Zero,
    /// The protobuf encoding, if it has one.
    #[cfg_attr(
        not(feature = "protobuf"),
        allow(dead_code, reason = "only the feature `protobuf` reads it")
    )]
    pub(crate) wire: Option<Wire>,
}

/// Go's output for a field that holds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zero {
    /// Nothing: a scalar that is zero, a list and a map without items are left out.
    Omitted,
    /// An absent field is left out, and a zero is a value.
    Kept,
    /// The zero of its type.
    Written,
    /// Null, because it is a pointer.
    Null,
}

/// The protobuf encoding of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wire {
    /// The field number, after those of enclosing messages that JSON does not have.
    pub(crate) numbers: Box<[u32]>,
    /// The alternative to a schema that the field accepts.
    pub(crate) or: Option<SchemaAlternative>,
}

/// The alternative to a schema in some positions of a CRD's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaAlternative {
    Bool,
    /// A list of schemas.
    List,
    /// A list of texts.
    Strings,
}

/// The treatment of a field by strategic merge patch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PatchStrategy {
    pub(crate) merge: bool,
    pub(crate) replace: bool,
    pub(crate) retain_keys: bool,
    /// The member that identifies the items of a merged list.
    pub(crate) key: Option<Cow<'static, str>>,
}

impl Scalar {
    /// Returns whether a value is the zero of the type, which Go leaves out of JSON.
    fn is_zero(self, value: &Value) -> bool {
        match self {
            Self::String | Self::Bytes => value == "",
            Self::Bool => value == false,
            Self::Int32 | Self::Int64 | Self::Number => value.as_f64() == Some(0.0),
            // A time is written as null when it is zero, because its JSON is.
            Self::Time | Self::MicroTime => value.is_null(),
            // Go has structs for them, which are never left out.
            Self::IntOrString | Self::Quantity => false,
        }
    }
}

impl Field {
    /// Returns the alternative to a schema that the field accepts, if it has one.
    pub(crate) fn schema_alternative(&self) -> Option<SchemaAlternative> {
        self.wire.as_ref().and_then(|wire| wire.or)
    }

    /// Returns whether Go leaves a scalar out because it is zero.
    pub(crate) fn leaves_out(&self, scalar: Scalar, value: &Value) -> bool {
        // Pointers are `Kept`: `replicas: 0` is a value, while `hostPort: 0` is the same as none.
        self.zero == Zero::Omitted && scalar.is_zero(value)
    }
}

impl Types {
    pub(super) fn add(&mut self, added: Type) -> TypeId {
        // Types are never removed, so ids stay valid.
        let id = u32::try_from(self.list.len()).expect("there are far fewer types");
        self.list.push(added);
        TypeId(id)
    }

    pub(super) fn get(&self, id: TypeId) -> &Type {
        &self.list[id.0 as usize]
    }

    pub(super) fn set(&mut self, id: TypeId, new: Type) {
        self.list[id.0 as usize] = new;
    }
}

fn by_length_then_name(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl Struct {
    pub(super) fn new(mut fields: Vec<Field>) -> Self {
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        // No kind has as many fields as an index of 16 bits has values; what is behind is not found.
        let all = 0..u16::try_from(fields.len()).unwrap_or(u16::MAX);
        let mut by_length: Box<[u16]> = all.clone().collect();
        by_length.sort_by(|a, b| {
            let [a, b] = [a, b].map(|at| &*fields[usize::from(*at)].name);
            by_length_then_name(a, b)
        });
        let is_written =
            |at: &u16| matches!(fields[usize::from(*at)].zero, Zero::Written | Zero::Null);
        let always_written = all.filter(is_written).collect();
        Self {
            fields,
            by_length,
            always_written,
            ..Self::default()
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        // This is the most frequent step of reading and writing an object. Most names differ in length from those that
        // a search meets, so few are compared byte by byte.
        let place = self.by_length.binary_search_by(|at| {
            let field = &self.fields[usize::from(*at)];
            by_length_then_name(&field.name, name)
        });
        let at = self.by_length[place.ok()?];
        Some(&self.fields[usize::from(at)])
    }

    /// Returns the fields that Go writes even if they are absent.
    pub(super) fn always_written(&self) -> impl Iterator<Item = &Field> {
        let all = self.always_written.iter();
        all.map(|at| &self.fields[usize::from(*at)])
    }

    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }
}

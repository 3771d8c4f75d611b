//! The error of a value that is not of its type, as Go's decoders word it.

use std::fmt;

use serde_json::Value;

use super::builtin;
use super::resolve::TypeRef;
use super::types::{Scalar, Type};

/// The error of a value that is not of its type.
///
/// Shown as Go's JSON decoder words it, with the field and its type.
#[derive(Debug)]
pub struct DecodeError(Box<Reason>);

#[derive(Debug)]
enum Reason {
    /// It cannot be read, for the given reason.
    Unreadable(String),
    Type(Mismatch),
}

#[derive(Debug)]
struct Mismatch {
    value: Found,
    wanted: Wanted,
    /// The structure that has the field.
    owner: Option<String>,
    /// The names of fields, the innermost first.
    fields: Vec<String>,
}

#[derive(Debug)]
enum Found {
    Bool,
    Number(String),
    Text,
    List,
    Map,
}

/// The type that Go wants.
#[derive(Debug)]
enum Wanted {
    Text,
    Bool,
    Number(String),
    /// A type that reads JSON itself.
    Own(String),
    /// Anything, which everything is.
    Any,
    List(String),
    Map(String),
    Struct(String),
}

impl DecodeError {
    /// The error of a value that is of its type and cannot be read.
    pub(crate) fn unreadable(reason: String) -> Self {
        Self(Box::new(Reason::Unreadable(reason)))
    }

    /// The error of a value of another type.
    pub(super) fn new(value: &Value, typed: TypeRef<'_>) -> Self {
        let name = go_type(typed);
        let wanted = match typed.get() {
            // `[]byte` is a slice to Go, though JSON has a text for it.
            Some(Type::List(_) | Type::Scalar(Scalar::Bytes)) => Wanted::List(name),
            Some(Type::Map(_)) => Wanted::Map(name),
            Some(Type::Struct(_)) => Wanted::Struct(name),
            Some(Type::Scalar(scalar)) => match scalar {
                Scalar::String => Wanted::Text,
                Scalar::Bool => Wanted::Bool,
                Scalar::Int32 | Scalar::Int64 | Scalar::Number => Wanted::Number(name),
                _ => Wanted::Own(name),
            },
            Some(Type::Any) | None => Wanted::Any,
        };
        let value = match value {
            Value::Number(number) => Found::Number(number.to_string()),
            Value::String(_) => Found::Text,
            Value::Array(_) => Found::List,
            Value::Object(_) => Found::Map,
            // Null fits every type, so it never comes here.
            Value::Bool(_) | Value::Null => Found::Bool,
        };
        Self(Box::new(Reason::Type(Mismatch {
            value,
            wanted,
            owner: None,
            fields: Vec::new(),
        })))
    }

    /// Prepends a member of a type to the path of the error.
    ///
    /// Only fields of structures have names in Go.
    #[must_use]
    pub fn below(mut self, typed: TypeRef<'_>, member: &str) -> Self {
        if let (Reason::Type(mismatch), Some(Type::Struct(_))) = (&mut *self.0, typed.get()) {
            mismatch.fields.push(member.to_owned());
            // Called from the inside out, so the first structure is the innermost; Go names that one, with the path
            // from the root.
            mismatch.owner.get_or_insert_with(|| go_name(typed));
        }
        self
    }

    /// Returns Go's text for a patched object, which is converted without JSON.
    #[must_use]
    pub fn as_conversion(&self) -> String {
        let mismatch = match &*self.0 {
            // `sliceFromUnstructured` decodes base64 by way of JSON, and says so.
            Reason::Unreadable(reason) if reason.starts_with("illegal base64") => {
                return format!("error decoding from json: {reason}");
            }
            Reason::Unreadable(reason) => return reason.clone(),
            Reason::Type(mismatch) => mismatch,
        };
        let found = match &mismatch.value {
            Found::Bool => "bool",
            // Unstructured content has int64 for whole numbers and float64 for others.
            Found::Number(number) if number.contains(['.', 'e']) => "float64",
            Found::Number(_) => "int64",
            Found::Text => "string",
            Found::List => "slice",
            Found::Map => "map",
        };
        match &mismatch.wanted {
            // Go can convert an integer to a string (to the character of that number), so `fromUnstructured` has a
            // sentence of its own against it.
            Wanted::Text if found == "int64" => "cannot convert int64 to string".to_owned(),
            Wanted::Number(wanted) if found == "float64" => {
                format!("cannot convert float64 to {wanted}")
            }
            Wanted::Own(_) => format!("{mismatch}"),
            Wanted::List(_) => format!("cannot restore slice from {found}"),
            Wanted::Map(_) => format!("cannot restore map from {found}"),
            Wanted::Struct(_) => format!("cannot restore struct from: {found}"),
            wanted => format!("unrecognized type: {wanted}"),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "string",
            Self::Bool => "bool",
            Self::Any => "interface {}",
            Self::Number(name)
            | Self::Own(name)
            | Self::List(name)
            | Self::Map(name)
            | Self::Struct(name) => name,
        })
    }
}

/// Without the field.
impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, wanted, .. } = self;
        write!(f, "json: cannot unmarshal {value}")?;
        write_number(f, value, wanted)?;
        write!(f, " into Go value of type {wanted}")
    }
}

/// Writes a number where one is wanted, but not this one.
fn write_number(f: &mut fmt::Formatter<'_>, value: &Found, wanted: &Wanted) -> fmt::Result {
    match (value, wanted) {
        (Found::Number(number), Wanted::Number(name) | Wanted::Own(name))
            if name.starts_with("int") =>
        {
            write!(f, " {number}")
        }
        _ => Ok(()),
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::Number(_) => "number",
            Self::Text => "string",
            Self::List => "array",
            Self::Map => "object",
        })
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mismatch = match &*self.0 {
            Reason::Unreadable(reason) => return f.write_str(reason),
            Reason::Type(mismatch) => mismatch,
        };
        // The object as a whole has no field to name.
        let Some(owner) = &mismatch.owner else {
            return mismatch.fmt(f);
        };
        let Mismatch { value, wanted, .. } = mismatch;
        write!(f, "json: cannot unmarshal {value}")?;
        write_number(f, value, wanted)?;
        write!(f, " into Go struct field {owner}")?;
        for field in mismatch.fields.iter().rev() {
            write!(f, ".{field}")?;
        }
        write!(f, " of type {wanted}")
    }
}

/// Returns the Go name of a struct that lacks a member; `None` for other types.
pub(crate) fn struct_without(typed: TypeRef<'_>, member: &str) -> Option<String> {
    if builtin::is_raw(typed) {
        return Some("RawExtension".to_owned());
    }
    let is_struct = matches!(typed.get(), Some(Type::Struct(_)));
    (is_struct && typed.field(member).is_none()).then(|| go_name(typed))
}

/// Returns Go's name of a structure, without its package.
fn go_name(typed: TypeRef<'_>) -> String {
    let name = builtin::name_of(typed).unwrap_or_default();
    name.rsplit('.').next().unwrap_or_default().to_owned()
}

/// Returns Go's name of a type, as far as it is known: texts and numbers may have types of their own.
fn go_type(typed: TypeRef<'_>) -> String {
    match typed.get() {
        Some(Type::List(_)) => format!("[]{}", go_type(typed.item())),
        Some(Type::Map(map)) => {
            let value = typed.at(map.value);
            match value.get() {
                // The only map of quantities in the API, which has a name of its own.
                Some(Type::Scalar(Scalar::Quantity)) => "v1.ResourceList".to_owned(),
                _ => format!("map[string]{}", go_type(value)),
            }
        }
        Some(Type::Scalar(scalar)) => match scalar {
            Scalar::String => "string",
            Scalar::Bool => "bool",
            Scalar::Number => "float64",
            Scalar::Int32 => "int32",
            Scalar::Int64 => "int64",
            // It reads its integer by a decoder of its own, which names that type.
            Scalar::IntOrString => "int32",
            Scalar::Bytes => "[]uint8",
            Scalar::Time | Scalar::MicroTime => "string",
            Scalar::Quantity => "resource.Quantity",
        }
        .to_owned(),
        Some(Type::Struct(_)) => {
            let name = builtin::name_of(typed).unwrap_or_default();
            let version = name.rsplit('.').nth(1).unwrap_or_default();
            format!("{version}.{}", go_name(typed))
        }
        Some(Type::Any) | None => "interface {}".to_owned(),
    }
}

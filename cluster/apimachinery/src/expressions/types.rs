//! The types of expressions.

use std::sync::Arc;

use super::object::Object;

/// The type of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    /// What was refused; it fits everywhere, so that each mistake is reported once.
    Error,
    /// Any value; the type is known when the expression is evaluated.
    Dyn,
    /// A value of any kind without its parts: it cannot be iterated over.
    Any,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Timestamp,
    Duration,
    /// A type without a name, of a field that is not declared.
    Unset,
    /// A parameter of a signature, by its letter.
    Parameter(u8),
    /// What is still to be found out, by its number.
    Variable(usize),
    List(Arc<Self>),
    Map(Arc<(Self, Self)>),
    Optional(Arc<Self>),
    /// The type of a type.
    Meta(Arc<Self>),
    /// A type of which only functions know the inside.
    Opaque(&'static str),
    Object(Arc<Object>),
}

impl Type {
    pub(crate) fn list(element: Self) -> Self {
        Self::List(Arc::new(element))
    }

    pub(crate) fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    pub(crate) fn optional(value: Self) -> Self {
        Self::Optional(Arc::new(value))
    }

    /// Returns the types inside of this one.
    pub(super) fn parts(&self) -> Vec<&Self> {
        match self {
            Self::List(part) | Self::Optional(part) | Self::Meta(part) => vec![part],
            Self::Map(parts) => vec![&parts.0, &parts.1],
            _ => Vec::new(),
        }
    }

    /// Returns the same type with other types inside.
    pub(super) fn with_parts(&self, mut change: impl FnMut(&Self) -> Self) -> Self {
        match self {
            Self::List(part) => Self::list(change(part)),
            Self::Optional(part) => Self::optional(change(part)),
            Self::Meta(part) => Self::Meta(Arc::new(change(part))),
            Self::Map(parts) => Self::map(change(&parts.0), change(&parts.1)),
            other => other.clone(),
        }
    }

    /// Returns whether so many types are inside of this one, itself included.
    pub(super) fn has_more_than(&self, most: usize) -> bool {
        fn count(kind: &Type, left: usize) -> Option<usize> {
            let parts = kind.parts();
            let left = left.checked_sub(1)?;
            parts
                .into_iter()
                .try_fold(left, |left, part| count(part, left))
        }
        count(self, most).is_none()
    }

    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    /// Returns the value's type of an optional one.
    pub(super) fn unwrapped(&self) -> Option<&Self> {
        match self {
            Self::Optional(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the type as messages about its use show it.
    // `FormatCELType`.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Timestamp => "timestamp".to_owned(),
            Self::Duration => "duration".to_owned(),
            Self::Any => "any".to_owned(),
            other => other.written(Self::shown),
        }
    }

    /// Returns the type as messages about a result show it.
    // `Type.String`.
    pub(crate) fn named(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            Self::Any => "google.protobuf.Any".to_owned(),
            other => other.written(Self::named),
        }
    }

    fn written(&self, part: fn(&Self) -> String) -> String {
        let name = match self {
            Self::Error => "!error!",
            Self::Dyn => "dyn",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Meta(_) => "type",
            Self::Opaque(name) => name,
            Self::Object(object) => object.name(),
            Self::Parameter(letter) => return char::from(*letter).to_string(),
            Self::Variable(number) => return format!("_var{number}"),
            _ => "",
        };
        let parts: Vec<String> = self.parts().into_iter().map(part).collect();
        if parts.is_empty() {
            name.to_owned()
        } else {
            format!("{name}({})", parts.join(", "))
        }
    }
}

//! The functions that expressions may call.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::object::Object;
use super::types::Type;

/// One signature of a function.
#[derive(Debug)]
pub(super) struct Signature {
    /// Whether it is called on a target, which is the first argument.
    pub(super) is_method: bool,
    pub(super) arguments: Vec<Type>,
    pub(super) result: Type,
    /// The letters of its parameters.
    pub(super) parameters: Vec<u8>,
}

/// The signatures of all functions, by name.
static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Signature>>> = LazyLock::new(|| {
    let mut functions: HashMap<&str, Vec<Signature>> = HashMap::new();
    for line in include_str!("functions.txt").lines() {
        if let Some((name, signature)) = signature(line) {
            functions.entry(name).or_default().push(signature);
        }
    }
    functions
});

/// Returns the signatures of a function.
pub(super) fn find(name: &str) -> Option<&'static [Signature]> {
    FUNCTIONS.get(name).map(Vec::as_slice)
}

/// Returns a type by the name that signatures have for it.
pub(super) fn named(name: &'static str) -> Type {
    type_of(&mut name.trim()).unwrap_or(Type::Dyn)
}

/// Returns the type of quantities.
pub(crate) fn quantity() -> Type {
    named("kubernetes.Quantity")
}

fn signature(line: &'static str) -> Option<(&'static str, Signature)> {
    let (name, mut rest) = line.split_once(" (").filter(|_| !line.starts_with('#'))?;
    let mut arguments = Vec::new();
    while !rest.starts_with(')') {
        arguments.push(type_of(&mut rest)?);
        rest = rest.trim_start_matches([',', ' ']);
    }
    let result = type_of(&mut rest.strip_prefix(") ")?)?;
    let mut parameters = Vec::new();
    for kind in arguments.iter().chain([&result]) {
        collect(kind, &mut parameters);
    }
    let method = name.strip_prefix('.');
    let signature = Signature {
        is_method: method.is_some(),
        arguments,
        result,
        parameters,
    };
    Some((method.unwrap_or(name), signature))
}

fn collect(kind: &Type, parameters: &mut Vec<u8>) {
    match kind {
        Type::Parameter(letter) if !parameters.contains(letter) => parameters.push(*letter),
        kind => kind
            .parts()
            .into_iter()
            .for_each(|part| collect(part, parameters)),
    }
}

/// Takes a type from the beginning of a text.
fn type_of(rest: &mut &'static str) -> Option<Type> {
    let end = rest.find(['(', ')', ',', ' ']).unwrap_or(rest.len());
    let (name, behind) = rest.split_at(end);
    *rest = behind;
    if let Some(inside) = behind.strip_prefix('(') {
        *rest = inside;
        let first = type_of(rest)?;
        let kind = match (name, rest.strip_prefix(", ")) {
            ("map", Some(second)) => {
                *rest = second;
                Type::map(first, type_of(rest)?)
            }
            ("list", None) => Type::list(first),
            ("optional", None) => Type::optional(first),
            ("type", None) => Type::Meta(Arc::new(first)),
            _ => return None,
        };
        *rest = rest.strip_prefix(')')?;
        return Some(kind);
    }
    Some(match name {
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        name if name.len() == 1 => Type::Parameter(name.as_bytes()[0]),
        name if name.starts_with("kubernetes.") => Type::Object(Arc::new(Object::unresolved(name))),
        name => Type::Opaque(name),
    })
}

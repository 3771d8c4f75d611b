//! What expressions of one kind may use.

use std::sync::Arc;

use super::functions;
use super::object::Object;
use super::types::Type;

/// The variables and types that an expression may name.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    variables: Vec<(&'static str, Type)>,
    /// Whether `cel.bind` exists.
    pub(super) binds: bool,
    /// Whether the types of patches exist: `Object` and `JSONPatch`.
    pub(super) patches: bool,
}

impl Environment {
    /// Creates an environment in which `cel.bind` exists.
    pub(crate) fn with_bind() -> Self {
        Self {
            binds: true,
            ..Self::default()
        }
    }

    /// Creates an environment in which patches can be made, or not.
    pub(crate) fn with_patches(patches: bool) -> Self {
        Self {
            patches,
            ..Self::default()
        }
    }

    /// Declares a variable.
    pub(crate) fn declare(&mut self, name: &'static str, kind: Type) {
        self.variables.push((name, kind));
    }

    /// Declares the checks of authorization.
    pub(crate) fn declare_authorizer(&mut self) {
        for (name, kind) in [
            ("authorizer", "kubernetes.authorization.Authorizer"),
            (
                "authorizer.requestResource",
                "kubernetes.authorization.ResourceCheck",
            ),
        ] {
            self.declare(name, functions::named(kind));
        }
    }

    /// Returns the type of a variable, or of the name of a type.
    pub(super) fn find(&self, name: &str) -> Option<Type> {
        let name = name.strip_prefix('.').unwrap_or(name);
        let mut variables = self.variables.iter();
        if let Some((_, kind)) = variables.find(|(each, _)| *each == name) {
            return Some(kind.clone());
        }
        // The types of Protocol Buffers, of which nothing is known here.
        if name.starts_with("google.") {
            return Some(Type::Dyn);
        }
        let kind = builtin(name).or_else(|| self.made(name))?;
        Some(Type::Meta(Arc::new(kind)))
    }

    /// Returns the type of a struct that can be made by its name.
    pub(super) fn made(&self, name: &str) -> Option<Type> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if !self.patches {
            return None;
        }
        let is_made = matches!(name, "JSONPatch" | "Object") || name.starts_with("Object.");
        is_made.then(|| made(name))
    }
}

/// Returns the type of the expressions that make a patch, by the type of the patch.
pub(crate) fn patch(kind: &str) -> Type {
    match kind {
        "JSONPatch" => Type::list(made("JSONPatch")),
        _ => made("Object"),
    }
}

fn made(name: &str) -> Type {
    let object = if name == "JSONPatch" {
        let text = |name| (name, Type::Text);
        let fields = [text("op"), text("from"), text("path"), ("value", Type::Dyn)];
        Object::open(name, &fields, Type::Unset)
    } else {
        Object::open(name, &[], Type::Dyn)
    };
    Type::Object(Arc::new(object))
}

fn builtin(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "int" => Type::Int,
        "string" => Type::Text,
        "uint" => Type::Uint,
        "null_type" => Type::Null,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "optional_type" => Type::optional(Type::Dyn),
        "type" => Type::Meta(Arc::new(Type::Dyn)),
        "net.IP" => Type::Opaque("net.IP"),
        "net.CIDR" => Type::Opaque("net.CIDR"),
        _ => return None,
    })
}

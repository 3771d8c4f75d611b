//! What the check of an expression found out about its parts, for the estimate of its cost.

use std::collections::HashMap;
use std::ptr;

use super::functions::Signature;
use super::tree::{Call, Tree};
use super::types::Type;
use super::unify::Bindings;

/// The types of the parts of an expression, and the functions that it calls.
///
/// Parts are known by their addresses: a tree does not move once it is parsed.
#[derive(Debug, Default)]
pub(super) struct Facts {
    kinds: HashMap<*const Tree, Type>,
    calls: HashMap<*const Call, Called>,
    /// Members that are variables with dots in their names.
    variables: HashMap<*const Tree, String>,
}

/// A function that is called.
#[derive(Debug)]
pub(super) struct Called {
    /// The name of a function that looks like a method, such as `sets.contains`.
    pub(super) qualified: Option<String>,
    /// All signatures that fit, in the order of their declarations.
    pub(super) signatures: Vec<&'static Signature>,
}

impl Facts {
    pub(super) fn set_type(&mut self, tree: &Tree, kind: Type) {
        self.kinds.insert(tree, kind);
    }

    pub(super) fn set_variable(&mut self, tree: &Tree, name: String) {
        self.variables.insert(tree, name);
    }

    pub(super) fn set_called(&mut self, call: &Call, called: Called) {
        self.calls.insert(call, called);
    }

    /// Replaces the variables in all types, once the whole expression is checked.
    pub(super) fn resolve(&mut self, bindings: &Bindings) {
        for kind in self.kinds.values_mut() {
            *kind = bindings.resolve(kind, true);
        }
    }

    /// Returns the type of a part; `dyn` for one that was not visited.
    pub(super) fn type_of(&self, tree: &Tree) -> &Type {
        self.kinds.get(&ptr::from_ref(tree)).unwrap_or(&Type::Dyn)
    }

    pub(super) fn variable(&self, tree: &Tree) -> Option<&str> {
        self.variables.get(&ptr::from_ref(tree)).map(String::as_str)
    }

    pub(super) fn called(&self, call: &Call) -> Option<&Called> {
        self.calls.get(&ptr::from_ref(call))
    }
}

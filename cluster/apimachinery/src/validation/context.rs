//! The object that is validated, and the state it replaces.

use super::causes::Causes;
use super::field::Field;
use crate::object::Object;

/// The part of an object that a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status, where that is a part of its own.
    Main,
    /// The status.
    Status,
    /// The finalizers in a namespace's spec.
    Finalize,
    /// The ephemeral containers of a Pod.
    Ephemeral,
    /// The resources of a Pod's containers.
    Resize,
    /// The conditions of a request for a certificate.
    Approval,
}

/// A write that is checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) object: &'a Object,
    /// The state that is replaced; `None` at a creation.
    pub(crate) old: Option<&'a Object>,
    /// `Main` at a creation.
    pub(crate) part: Part,
}

/// Validates the objects of a kind.
pub(crate) type Check = fn(&Context<'_>, &mut Causes);

impl<'a> Context<'a> {
    /// Returns a member of the object.
    pub(crate) fn get(&self, name: &'a str) -> Field<'a> {
        Field::of(self.object, name)
    }

    /// Returns a member of the replaced state, if there is one.
    pub(crate) fn old(&self, name: &'a str) -> Option<Field<'a>> {
        Some(Field::of(self.old?, name))
    }

    /// Returns whether the object is new.
    pub(crate) fn is_creation(&self) -> bool {
        self.old.is_none()
    }

    /// Returns whether an existing object is changed, and which part of it.
    pub(crate) fn updates(&self, part: Part) -> bool {
        self.old.is_some() && self.part == part
    }
}

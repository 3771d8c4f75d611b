//! Which part of an object is written.

use lariat_apimachinery::object::Object;

/// Which part of an object a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status, where that is a part of its own.
    Main,
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

/// A state that is replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Replaced<'a> {
    /// The part that is written.
    pub(crate) part: Part,
    pub(crate) old: &'a Object,
}

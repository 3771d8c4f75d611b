//! The part of an object that a write may change.

use lariat_apimachinery::object::Object;

pub(crate) use lariat_apimachinery::validation::Part;

/// A state that is replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Replaced<'a> {
    /// The part that is written.
    pub(crate) part: Part,
    pub(crate) old: &'a Object,
}

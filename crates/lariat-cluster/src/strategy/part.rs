//! Which part of an object is written.

use lariat_apimachinery::object::Object;

pub(crate) use lariat_apimachinery::validation::Part;

/// A state that is replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Replaced<'a> {
    /// The part that is written.
    pub(crate) part: Part,
    pub(crate) old: &'a Object,
}

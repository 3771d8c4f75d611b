//! What a subject is to do, and what it does.

use std::any::Any;
use std::sync::Arc;

use super::tally::Tally;
use crate::target::Target;

/// What a subject is to do.
#[derive(Debug, Clone)]
pub(crate) struct Job<'a> {
    pub(crate) subject: &'a str,
    /// One of `CASES`.
    pub(crate) case: &'a str,
    /// Whether handlers look at when a state was written, rather than at its version.
    pub(crate) is_stamped: bool,
    pub(crate) target: &'a Target,
    pub(crate) tally: Arc<Tally>,
}

/// A subject at work, until it is dropped.
pub(crate) struct Live {
    /// Returns the bytes the objects hold, where the subject counts them.
    pub(crate) bytes: Option<Box<dyn Fn() -> usize>>,
    /// Makes a reader of the cache; there has to be an object.
    pub(crate) reader: Box<dyn Fn() -> Reader>,
    pub(super) _at_work: Box<dyn Any>,
}

/// Reads a cache, as fast as the cache lets it.
pub(crate) struct Reader {
    /// Gets one object after the other.
    pub(crate) get: Box<dyn FnMut() + Send>,
    /// Takes hold of all objects.
    pub(crate) list: Box<dyn FnMut() + Send>,
}

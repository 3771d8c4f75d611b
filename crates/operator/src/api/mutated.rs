//! The result of creating or changing an object by a function.

use std::fmt;

/// An object that was created or changed by a function, as it is on the server.
///
/// Returned by [`CachedApi::create_or_update`](crate::CachedApi::create_or_update) and
/// [`CachedApi::create_or_patch`](crate::CachedApi::create_or_patch).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mutated<K> {
    /// The object; the cached state if nothing was sent.
    pub object: K,
    /// What was done.
    pub mutation: Mutation,
}

/// What was done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mutation {
    /// It did not exist.
    Created,
    /// It existed, and was changed.
    Updated,
    /// It was as the function makes it.
    ///
    /// This takes a request if the function replaces values that the API server writes in another form.
    Unchanged,
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
        })
    }
}

//! What a mutating handler decides.

use super::object::Undecodable;
use super::verdict::Verdict;

/// What a mutating handler decides: an object to store instead, or a [`Verdict`] alone.
///
/// The patch is the difference between the object as it was decoded and the returned one. Fields that the type does not
/// have, and defaults of the type that did not change, are not in it.
#[derive(Debug, Clone)]
#[must_use = "a mutation counts when the handler returns it"]
pub struct Mutation<K> {
    pub(super) object: Option<K>,
    pub(super) verdict: Verdict,
}

impl<K> Mutation<K> {
    /// Changes the object to this one.
    pub fn to(object: K) -> Self {
        Self {
            object: Some(object),
            verdict: Verdict::allow(),
        }
    }

    /// Changes nothing.
    pub fn none() -> Self {
        Verdict::allow().into()
    }

    /// Denies the request with a message; see [`Verdict::deny`].
    pub fn deny(message: impl Into<String>) -> Self {
        Verdict::deny(message).into()
    }

    /// Adds a warning, which clients print.
    pub fn warn(self, warning: impl Into<String>) -> Self {
        let verdict = self.verdict.warn(warning);
        Self { verdict, ..self }
    }

    /// Adds an annotation to the audit event, under the webhook's name.
    pub fn annotate(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let verdict = self.verdict.annotate(key, value);
        Self { verdict, ..self }
    }

    /// Returns the verdict.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }
}

impl<K> From<Verdict> for Mutation<K> {
    fn from(verdict: Verdict) -> Self {
        Self {
            object: None,
            verdict,
        }
    }
}

impl<K> From<Undecodable> for Mutation<K> {
    fn from(error: Undecodable) -> Self {
        Verdict::from(error).into()
    }
}

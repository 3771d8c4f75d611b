//! The decision of a mutating handler.

use super::object::Undecodable;
use super::verdict::Verdict;

/// The decision of a mutating handler: an object to store, or only a [`Verdict`].
///
/// The patch is the difference between the object as it was decoded and the returned one. Fields that the type does not
/// know, and defaults of the type that did not change, are not part of it.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::webhook::{Admission, Mutation, ReviewResult};
///
/// async fn add_label(_: Admission<Pod>, mut pod: Pod) -> ReviewResult<Mutation<Pod>> {
///     let labels = pod.metadata.labels.get_or_insert_default();
///     labels.entry("team".to_owned()).or_insert_with(|| "none".to_owned());
///     Ok(Mutation::to(pod))
/// }
/// # let _ = add_label;
/// ```
#[derive(Debug, Clone)]
#[must_use = "a mutation counts when the handler returns it"]
pub struct Mutation<K> {
    pub(super) object: Option<K>,
    pub(super) verdict: Verdict,
}

impl<K> Mutation<K> {
    /// Replaces the object by this one, and allows the request.
    pub fn to(object: K) -> Self {
        Self {
            object: Some(object),
            verdict: Verdict::allow(),
        }
    }

    /// Allows the request without a change.
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

    /// Adds an annotation to the audit event.
    ///
    /// The API server puts the name of the webhook before the key.
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

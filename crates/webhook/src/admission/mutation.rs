//! The decision of a mutating handler.

use super::decision::Decision;
use super::object::Undecodable;

/// The decision of a mutating handler: an object to store, or only a [`Decision`].
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
    pub(super) decision: Decision,
}

impl<K> Mutation<K> {
    /// Replaces the object by this one, and allows the request.
    pub fn to(object: K) -> Self {
        Self {
            object: Some(object),
            decision: Decision::allow(),
        }
    }

    /// Allows the request without a change.
    pub fn none() -> Self {
        Decision::allow().into()
    }

    /// Denies the request with a message; see [`Decision::deny`].
    pub fn deny(message: impl Into<String>) -> Self {
        Decision::deny(message).into()
    }

    /// Adds a warning, which clients print.
    pub fn warn(self, warning: impl Into<String>) -> Self {
        let decision = self.decision.warn(warning);
        Self { decision, ..self }
    }

    /// Adds an annotation to the audit event.
    ///
    /// The API server puts the name of the webhook before the key.
    pub fn annotate(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let decision = self.decision.annotate(key, value);
        Self { decision, ..self }
    }

    /// Returns the decision.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }
}

impl<K> From<Decision> for Mutation<K> {
    fn from(decision: Decision) -> Self {
        Self {
            object: None,
            decision,
        }
    }
}

impl<K> From<Undecodable> for Mutation<K> {
    fn from(error: Undecodable) -> Self {
        Decision::from(error).into()
    }
}

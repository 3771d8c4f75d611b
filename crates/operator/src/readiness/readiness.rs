//! The readiness of an object.

use std::fmt;

use serde_json::Value;

use super::fields::Fields;
use super::{generic, kinds};

/// Whether an object is ready: whether its controller has carried out the spec.
///
/// ```
/// use lariat::operator::Readiness;
/// use serde_json::json;
///
/// let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
///     "metadata": {"name": "data"}, "status": {"phase": "Pending"}});
/// assert_eq!(Readiness::of(&claim).to_string(), "in progress: the claim is not bound (Pending)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Readiness {
    /// It is ready.
    Ready,
    /// Its controller is at work, or has not begun.
    InProgress {
        /// What is missing.
        message: String,
    },
    /// Its controller reports a failure that does not resolve by itself.
    Failed {
        /// The message of the controller.
        message: String,
    },
    /// It is being deleted.
    Deleting,
    /// The content of the object was not read.
    Unknown,
}

impl Readiness {
    /// Returns whether an object is ready, by the rules of kstatus for its kind.
    ///
    /// An object is not ready while it is being deleted, or while its controller has not observed its last generation
    /// (`status.observedGeneration`). For every kind, a true condition `Reconciling` means in progress, and a true
    /// `Stalled` means failed. Otherwise:
    ///
    /// | kind | ready once |
    /// |---|---|
    /// | Deployment | all replicas are updated and available, and no old ones are left |
    /// | StatefulSet | all replicas are ready and updated, down to the partition of a rolling update |
    /// | DaemonSet | as many Pods as are scheduled are updated, available and ready |
    /// | ReplicaSet | all replicas are ready and available |
    /// | Job | it is complete, or suspended |
    /// | Pod | it is ready, or has succeeded |
    /// | PersistentVolumeClaim | it is bound |
    /// | Service | it is no load balancer, or has a cluster IP |
    /// | PodDisruptionBudget | its controller has computed it |
    /// | CustomResourceDefinition | it is established |
    /// | others | the condition `Ready` is true, if there is one |
    ///
    /// It differs from kstatus where that would let dependents begin too early. A Job is not ready while it runs. A
    /// workload is not ready before its controller has observed it. A condition `Ready` counts only for the present
    /// generation. A Pod that cannot be scheduled is in progress, however long, because a node may be added.
    ///
    /// A custom resource without a condition `Ready` counts as ready, even if its controller has not observed it yet.
    /// If the controller sets conditions, use [`of_condition`](Self::of_condition).
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let fields = Fields::of(object);
        generic::before(fields)
            .or_else(|| kinds::rule_of(object).map(|rule| rule(fields)))
            .unwrap_or_else(|| generic::after(fields))
    }

    /// Returns whether a condition of an object is true for its present generation.
    ///
    /// Without the condition the object is in progress. Objects that are deleted or stalled are as in [`of`](Self::of).
    ///
    /// ```
    /// use lariat::operator::Readiness;
    /// use serde_json::json;
    ///
    /// let new = json!({"apiVersion": "demo.dev/v1", "kind": "Database", "metadata": {"name": "db"}});
    /// assert_eq!(Readiness::of(&new), Readiness::Ready);
    /// assert!(!Readiness::of_condition(&new, "Ready").is_ready());
    /// ```
    #[must_use]
    pub fn of_condition(object: &Value, kind: &str) -> Self {
        let fields = Fields::of(object);
        generic::before(fields).unwrap_or_else(|| generic::condition(fields, kind))
    }

    /// Creates the readiness of an object whose controller is at work.
    #[must_use]
    pub fn in_progress(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::InProgress { message }
    }

    /// Creates the readiness of an object whose controller has failed.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Failed { message }
    }

    /// Returns whether the object is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }

    /// Returns whether the controller of the object reports a failure.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::InProgress { message } => write!(f, "in progress: {message}"),
            Self::Failed { message } => write!(f, "failed: {message}"),
            Self::Deleting => f.write_str("being deleted"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

//! Whether an object is ready.

use std::fmt;

use serde_json::Value;

use super::fields::Fields;
use super::{generic, kinds};

/// Whether an object is ready, which means that its controller has done what its spec says.
///
/// ```
/// use lariat_operator::Readiness;
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
    /// Its controller reports that it does not go on by itself.
    Failed {
        /// What the controller reports.
        message: String,
    },
    /// It is being deleted.
    Deleting,
    /// It is not known, because the content of the object was not read.
    Unknown,
}

impl Readiness {
    /// Returns whether an object is ready, by the rules of kstatus for its kind.
    ///
    /// An object that is being deleted is not, nor one whose controller has not seen its last generation
    /// (`status.observedGeneration`). For every kind, a condition `Reconciling` that is true means in progress, and
    /// `Stalled` failed. After that:
    ///
    /// | kind | ready once |
    /// |---|---|
    /// | Deployment | all replicas are updated and available, and none is left of before |
    /// | StatefulSet | all replicas are ready and of the last revision, down to the partition of a rolling update |
    /// | DaemonSet | as many Pods as are scheduled are updated, available and ready |
    /// | ReplicaSet | all replicas are ready and available |
    /// | Job | it is complete, or suspended |
    /// | Pod | it is ready, or has succeeded |
    /// | PersistentVolumeClaim | it is bound |
    /// | Service | it has an address in the cluster, if it is a load balancer |
    /// | PodDisruptionBudget | its controller has computed it |
    /// | CustomResourceDefinition | it is established |
    /// | others | the condition `Ready` is true, if there is one |
    ///
    /// It differs from kstatus where that would let dependents begin too early: a Job is not ready while it runs, a
    /// workload not before its controller has seen it, and a condition `Ready` counts only for the present generation.
    /// A Pod that cannot be scheduled is in progress, however long, because a node may be added.
    ///
    /// A custom object without a condition `Ready` counts as ready, also one that its controller has not seen yet. If
    /// the controller sets conditions, use [`of_condition`](Self::of_condition).
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let fields = Fields::of(object);
        generic::before(fields)
            .or_else(|| kinds::rule_of(object).map(|rule| rule(fields)))
            .unwrap_or_else(|| generic::after(fields))
    }

    /// Returns whether a condition of an object is true as of its present generation.
    ///
    /// Without the condition the object is in progress. Deleted and stalled objects are as in [`of`](Self::of).
    ///
    /// ```
    /// use lariat_operator::Readiness;
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

    /// Creates the readiness of an object whose controller has given up.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Failed { message }
    }

    /// Returns whether it is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }

    /// Returns whether its controller reports a failure.
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

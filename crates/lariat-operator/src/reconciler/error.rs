//! What registering a reconciler can fail with.

use lariat_controller::RegisterError;
use lariat_core::{Gvk, debug_as_description};

use crate::finalizer::FinalizerNameError;
use crate::status::ConditionError;

/// A reconciler that was not registered. Nothing is left behind.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ReconcilerError {
    /// It cannot be a handler.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The name of its operator cannot be a field manager: the API server would refuse whatever it writes.
    #[error("operator {operator:?} cannot have reconciler {name:?} of {gvk}: its name {why}")]
    OperatorName {
        /// The kind.
        gvk: Gvk,
        /// The name of the reconciler.
        name: String,
        /// The name of the operator.
        operator: String,
        /// What is wrong with that.
        why: &'static str,
    },
    /// Its finalizer has a name the API server would refuse.
    #[error("reconciler {name:?} of {gvk} cannot have its finalizer")]
    Finalizer {
        /// The kind.
        gvk: Gvk,
        /// The name of the reconciler.
        name: String,
        /// What is wrong.
        source: FinalizerNameError,
    },
    /// The condition it reports errors with has a type the API server would refuse.
    #[error("reconciler {name:?} of {gvk} cannot report errors")]
    Condition {
        /// The kind.
        gvk: Gvk,
        /// The name of the reconciler.
        name: String,
        /// What is wrong.
        source: ConditionError,
    },
    /// Another reconciler of the kind tells in this condition.
    #[error(
        "reconciler {name:?} of {gvk} cannot report errors in the condition {condition:?}, in which another does; \
         give each a condition of its own"
    )]
    ConditionTaken {
        /// The kind.
        gvk: Gvk,
        /// The name of the reconciler.
        name: String,
        /// The type of the condition.
        condition: String,
    },
}

debug_as_description!(ReconcilerError);

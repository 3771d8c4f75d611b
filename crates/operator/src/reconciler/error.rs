//! The errors of registering a reconciler.

use lariat_controller::RegisterError;
use lariat_core::{Gvk, debug_as_description};

use crate::finalizer::FinalizerNameError;
use crate::reconcile::Claim;
use crate::status::ConditionError;

/// A reconciler could not be registered; nothing was changed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ReconcilerError {
    /// It cannot be registered as a handler.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The name of the operator is not a valid field manager.
    ///
    /// The API server would refuse its writes.
    #[error("operator {operator:?} cannot have reconciler {name:?} of {gvk}: its name {reason}")]
    OperatorName {
        /// The kind.
        gvk: Gvk,
        /// The name of the reconciler.
        name: String,
        /// The name of the operator.
        operator: String,
        /// What is wrong with the name.
        reason: &'static str,
    },
    /// The name of its finalizer is invalid.
    #[error("reconciler {name:?} of {gvk} cannot have its finalizer: {source}")]
    Finalizer {
        /// The kind.
        gvk: Gvk,
        /// The name of the reconciler.
        name: String,
        /// What is wrong with the name.
        source: FinalizerNameError,
    },
    /// The annotation that pauses objects is not a valid annotation key.
    #[error(
        "reconciler {name:?} of {gvk} cannot be paused by {annotation:?}, which is not a valid annotation key; write it \
         like \"example.com/paused\""
    )]
    PauseAnnotation {
        /// The kind.
        gvk: Gvk,
        /// The name of the reconciler.
        name: String,
        /// The annotation.
        annotation: String,
    },
    /// The type of its condition is invalid.
    #[error("reconciler {name:?} of {gvk} cannot report errors: {source}")]
    Condition {
        /// The kind.
        gvk: Gvk,
        /// The name of the reconciler.
        name: String,
        /// What is wrong with the type.
        source: ConditionError,
    },
    /// Another reconciler of the kind reports errors in this condition.
    #[error(
        "reconciler {name:?} of {gvk} cannot report errors in the condition {condition:?}: another reconciler does; \
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
    /// Another reconciler of the kind has this finalizer.
    ///
    /// The first of them to finish would remove it before the other has cleaned up.
    #[error(
        "reconciler {name:?} of {gvk} cannot have the finalizer {finalizer:?}: another reconciler has it; give each one of its own"
    )]
    FinalizerTaken {
        /// The kind.
        gvk: Gvk,
        /// The name of the reconciler.
        name: String,
        /// The finalizer.
        finalizer: String,
    },
    /// The controller belongs to another factory, and perhaps to another cluster.
    #[error(
        "operator {operator:?} cannot have reconciler {name:?}: its controller of {gvk} belongs to another factory; \
         take the controller from `Operator::factory`"
    )]
    OtherFactory {
        /// The kind.
        gvk: Gvk,
        /// The name of the reconciler.
        name: String,
        /// The name of the operator.
        operator: String,
    },
}

impl ReconcilerError {
    pub(super) fn taken(gvk: &Gvk, name: &str, claim: &Claim) -> Self {
        let (gvk, name) = (gvk.clone(), name.to_owned());
        match claim {
            Claim::Condition(condition) => Self::ConditionTaken {
                gvk,
                name,
                condition: condition.to_string(),
            },
            Claim::Finalizer(finalizer) => Self::FinalizerTaken {
                gvk,
                name,
                finalizer: finalizer.to_string(),
            },
        }
    }
}

debug_as_description!(ReconcilerError);

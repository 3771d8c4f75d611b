//! The errors of finalizers.

use lariat_core::{Gvk, debug_as_description};

use crate::wire::ApiError;

/// The name of a finalizer is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("finalizer {name:?} needs a name like \"example.com/cleanup\": {detail}")]
pub struct FinalizerNameError {
    pub(super) name: String,
    pub(super) detail: &'static str,
}

/// A finalizer could not be removed from all objects of a kind.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum FinalizerRemovalError {
    /// The name is not valid for a finalizer.
    #[error(transparent)]
    Name(#[from] FinalizerNameError),
    /// The kind is not served, or discovery failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The objects could not be listed.
    #[error(
        "cannot list {gvk} to remove a finalizer; it was removed from {removed} objects before"
    )]
    List {
        /// The kind.
        gvk: Gvk,
        /// The number of objects from which the finalizer was removed before the error.
        removed: usize,
        /// The error of the list.
        source: Box<kube::Error>,
    },
}

debug_as_description!(FinalizerRemovalError);

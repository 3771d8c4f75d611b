//! What is wrong with finalizers, and with their removal everywhere.

use lariat_core::{Gvk, debug_as_description};

use crate::wire::ApiError;

/// A finalizer whose name the API server would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("finalizer {name:?} needs a name like \"example.com/cleanup\": {detail}")]
pub struct FinalizerNameError {
    pub(super) name: String,
    pub(super) detail: &'static str,
}

/// The objects of a kind could not be listed to the end, so a finalizer may still be on some.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum FinalizerRemovalError {
    /// The name is not one of a finalizer.
    #[error(transparent)]
    Name(#[from] FinalizerNameError),
    /// The kind is not served, or discovery failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The API server did not list the objects.
    #[error(
        "cannot list {gvk} to remove a finalizer; it was removed from {removed} objects by then"
    )]
    List {
        /// The kind.
        gvk: Gvk,
        /// From how many objects the finalizer was removed by then.
        removed: usize,
        /// Why.
        source: Box<kube::Error>,
    },
}

debug_as_description!(FinalizerRemovalError);

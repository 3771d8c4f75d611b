//! The error of a patch.

/// The error of a patch that cannot be read or applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// It is no JSON patch.
    #[error("{0}")]
    Unreadable(String),
    /// It has more operations than the API server takes.
    #[error("the patch has {sent} operations, at most {limit} are allowed")]
    TooManyOperations {
        /// The largest number of operations of a patch.
        limit: usize,
        /// The number of operations of this one.
        sent: usize,
    },
    /// An operation of a JSON patch cannot be carried out.
    #[error("{0}")]
    Inapplicable(String),
    /// The result is no object.
    #[error("the patch does not make an object")]
    NoObject,
    /// A strategic merge patch contradicts itself or the format.
    #[error("{0}")]
    Malformed(String),
    /// A strategic merge patch merges a list of lists.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// An item cannot be identified; the API server reports this as an internal error.
    #[error("{0}")]
    Unmergeable(String),
}

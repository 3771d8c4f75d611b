//! Limits of the history.

/// The limits of the history that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retention {
    /// The number of changes of each resource.
    pub(crate) changes: usize,
    /// The memory of the changes of all resources, in bytes.
    pub(crate) bytes: usize,
}

/// The limits of one read of the history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadLimit {
    pub(crate) changes: usize,
    /// The size of the objects; one is read even if it is larger.
    pub(crate) bytes: usize,
}

impl ReadLimit {
    /// Everything there is.
    pub(crate) const ALL: Self = Self {
        changes: usize::MAX,
        bytes: usize::MAX,
    };
}

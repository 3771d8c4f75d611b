//! How much history is kept.

/// How much history there may be at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retention {
    /// How many changes of each resource.
    pub(crate) changes: usize,
    /// How many bytes the changes of all resources keep in memory.
    pub(crate) bytes: usize,
}

/// How much of the history is read at a time.
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

//! What a queue remembers.

/// The size of one of the structures in which a queue remembers keys.
///
/// | `what` | keyed by | bound |
/// |---|---|---|
/// | `queue keys` | key | keys that are ready, delayed, kept for after a drain, or with a worker |
/// | `queue tickets` | place in line | twice the keys in line, and 64 for each priority |
/// | `queue deadlines` | delayed lane of a key | twice those that count, at least 1,024 more |
/// | `queue hand-outs` | key with a worker | twice the keys with workers, and 64 |
///
/// A key leaves with its last lane: when a worker gives it back, nothing is due and nothing is delayed. The failures of
/// its lanes leave with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueMemory {
    /// What is remembered.
    pub what: &'static str,
    /// How many entries there are.
    pub entries: usize,
    /// How many there are at most, by the keys in the queue at this moment.
    pub bound: usize,
}

impl QueueMemory {
    pub(crate) fn new(what: &'static str, entries: usize, bound: usize) -> Self {
        Self {
            what,
            entries,
            bound,
        }
    }
}

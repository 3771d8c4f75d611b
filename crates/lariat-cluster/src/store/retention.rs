//! How much history is kept.

use super::history::Event;
use super::object::EventType;

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
pub(crate) struct Portion {
    pub(crate) changes: usize,
    /// The size of the objects; one is read even if it is larger.
    pub(crate) bytes: usize,
}

impl Portion {
    /// Everything there is.
    pub(crate) const ALL: Self = Self {
        changes: usize::MAX,
        bytes: usize::MAX,
    };
}

/// What a change takes beside the states of its object.
const CHANGE: usize = 96;

impl Event {
    /// Returns how many bytes are in memory for this change alone.
    ///
    /// A new state is not counted, since it is stored anyway; once it is replaced, the change that did
    /// so counts it. The last state of a deletion is in the history only.
    pub(super) fn cost(&self) -> usize {
        let before = self.previous.as_ref().map_or(0, |state| state.weight());
        let last = match self.event {
            EventType::Deleted => self.object.weight(),
            EventType::Added | EventType::Modified => 0,
        };
        CHANGE + before + last
    }
}

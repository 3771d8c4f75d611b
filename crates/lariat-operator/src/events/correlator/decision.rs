//! What is decided about an event.

use crate::events::record::Record;

/// How many subjects are remembered, of each sort of memory.
pub(super) const CAPACITY: usize = 4096;

/// What to do about an event.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::events) enum Decision {
    /// Create an Event.
    Create(Record),
    /// Change an Event there should be.
    Patch(Record),
    /// Nothing yet: it is counted.
    Counted,
    /// Nothing: it is over the limit.
    Filtered,
}

//! The decision about an event.

use crate::events::record::Record;

/// The number of subjects remembered in each map.
pub(super) const CAPACITY: usize = 4096;

/// The decision about an event.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::events) enum Decision {
    /// Create an Event.
    Create(Record),
    /// Patch an Event that should exist.
    Patch(Record),
    /// Write nothing; the event is counted.
    Counted,
    /// Write nothing; the event exceeds the limit.
    Filtered,
}

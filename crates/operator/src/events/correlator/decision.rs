//! The decision of the correlator about an event.

use crate::events::record::Record;

/// The number of entries in each map of a correlator.
pub(super) const CAPACITY: usize = 4096;

/// The decision about an event: which request is sent, if any.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::events) enum Decision {
    /// Create an Event.
    Create(Record),
    /// Patch an Event that should exist.
    Patch(Record),
    /// Write nothing now: the event is counted by a later write.
    Counted,
    /// Write nothing: the event exceeds the limit.
    Filtered,
}

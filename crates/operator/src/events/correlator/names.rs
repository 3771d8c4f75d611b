//! Unique names for Events.

use jiff::Timestamp;

use crate::events::text;

/// The bound, in nanoseconds, of the offset of names from the time: about a second.
const APART: u64 = 1 << 30;

/// Numbers for the names of Events: close to the time, and never repeated.
///
/// Replicas may see a change at the same time, which on some clocks is the same number of nanoseconds. With equal
/// names, one replica would find its name taken, and could not tell the other's Event from its own after a lost answer.
/// So each process adds a random offset.
#[derive(Debug)]
pub(super) struct Names {
    last: u64,
    distance: u64,
}

impl Names {
    pub(super) fn new() -> Self {
        let distance = fastrand::u64(..APART);
        Self { last: 0, distance }
    }

    pub(super) fn next(&mut self, object: Option<&str>, time: Timestamp) -> String {
        let nanos = u64::try_from(time.as_nanosecond()).unwrap_or_default();
        let number = nanos.saturating_add(self.distance);
        // Also unique if the clock stands still or goes back.
        self.last = number.max(self.last.saturating_add(1));
        text::event_name(object.unwrap_or_default(), self.last)
    }
}

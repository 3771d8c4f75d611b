//! Names of Events.

use jiff::Timestamp;

use crate::events::text;

/// The largest distance, in nanoseconds, of a name from the time: about a second.
const APART: u64 = 1 << 30;

/// Numbers for names: close to the time, and never the same twice.
///
/// Replicas see the same change at the same time, which on some clocks is the same number of nanoseconds. With equal
/// names, one of them would count up the other's Event if the answer to its own creation was lost. So each has its own
/// distance from the time.
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
        self.last = number.max(self.last.saturating_add(1));
        text::event_name(object.unwrap_or_default(), self.last)
    }
}

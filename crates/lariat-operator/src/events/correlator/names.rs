//! Names of Events.

use jiff::Timestamp;

use crate::events::text;

/// How far, in nanoseconds, names may be off the time: a second or so.
const APART: u64 = 1 << 30;

/// Numbers for names: about the time, and never the same twice.
///
/// Replicas see the same thing at the same time, which on some clocks is the same number of nanoseconds. With equal names
/// one of them would count up the Event of the other, if the answer to its own creation was lost: so each has a
/// distance of its own from the time.
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

//! What is written of the events that are published: a state machine that is given the time.

mod counting;
mod recent;
mod series;
mod spam;
mod subject;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use tokio::time::Instant;

use super::record::{Pending, Record};
use super::{EventApi, EventOptions, text};
use counting::Counting;
use series::SeriesKeeper;

/// How many subjects are remembered, of each sort of memory.
const CAPACITY: usize = 4096;

/// What to do about an event.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision {
    /// Create an Event.
    Create(Record),
    /// Change an Event there should be.
    Patch(Record),
    /// Nothing yet: it is counted.
    Counted,
    /// Nothing: it is over the limit.
    Filtered,
}

/// Decides what is written of the events that are published.
#[derive(Debug)]
pub(super) enum Correlator {
    Counting(Counting),
    Series(SeriesKeeper),
}

impl Correlator {
    pub(super) fn new(options: EventOptions) -> Self {
        match options.api {
            EventApi::Core => Self::Counting(Counting::new(options)),
            EventApi::Events => Self::Series(SeriesKeeper::new(options)),
        }
    }

    /// Returns through which API events are written.
    pub(super) fn api(&self) -> EventApi {
        match self {
            Self::Counting(_) => EventApi::Core,
            Self::Series(_) => EventApi::Events,
        }
    }

    /// Takes in an event.
    pub(super) fn observe(&mut self, pending: Pending) -> Decision {
        match self {
            Self::Counting(counting) => counting.observe(pending),
            Self::Series(series) => series.observe(pending),
        }
    }

    /// Returns when something has to be written though nothing happens.
    pub(super) fn next_due(&self) -> Option<Instant> {
        match self {
            Self::Counting(_) => None,
            Self::Series(series) => series.next_due(),
        }
    }

    /// Takes one Event that has to be written by now; if no time is given, one that has not been written as it is.
    pub(super) fn take_due(&mut self, now: Option<Instant>) -> Option<Record> {
        match self {
            Self::Counting(_) => None,
            Self::Series(series) => series.take_due(now),
        }
    }

    /// Returns how many subjects are remembered, and how many at most.
    pub(super) fn remembered(&self) -> (usize, usize) {
        let sizes = match self {
            Self::Counting(counting) => counting.remembered(),
            Self::Series(series) => series.remembered(),
        };
        (sizes, 3 * CAPACITY)
    }

    /// Gives an Event another name, because its own is taken.
    pub(super) fn rename(&mut self, record: &mut Record) {
        match self {
            Self::Counting(counting) => counting.rename(record),
            Self::Series(series) => series.rename(record),
        }
    }
}

/// How far, in nanoseconds, names may be off the time: a second or so.
const APART: u64 = 1 << 30;

/// Numbers for names: about the time, and never the same twice.
///
/// Replicas see the same thing at the same time, which on some clocks is the same number of nanoseconds. With equal names
/// one of them would count up the Event of the other, if the answer to its own creation was lost: so each has a
/// distance of its own from the time.
#[derive(Debug)]
struct Names {
    last: u64,
    distance: u64,
}

impl Names {
    fn new() -> Self {
        let distance = fastrand::u64(..APART);
        Self { last: 0, distance }
    }

    fn next(&mut self, object: Option<&str>, time: Timestamp) -> String {
        let nanos = u64::try_from(time.as_nanosecond()).unwrap_or_default();
        let number = nanos.saturating_add(self.distance);
        self.last = number.max(self.last.saturating_add(1));
        text::event_name(object.unwrap_or_default(), self.last)
    }
}

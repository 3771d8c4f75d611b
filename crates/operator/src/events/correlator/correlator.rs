//! The correlator: one of two sets of rules, depending on the API of Events.

use tokio::time::Instant;

use super::counting::Counting;
use super::decision::{CAPACITY, Decision};
use super::series::SeriesKeeper;
use crate::events::options::{EventApi, EventOptions};
use crate::events::record::{Pending, Record};

/// Decides which published events are written.
#[derive(Debug)]
pub(in crate::events) enum Correlator {
    Counting(Counting),
    Series(SeriesKeeper),
}

impl Correlator {
    pub(in crate::events) fn new(options: EventOptions) -> Self {
        match options.api {
            EventApi::Core => Self::Counting(Counting::new(options)),
            EventApi::Events => Self::Series(SeriesKeeper::new(options)),
        }
    }

    /// Returns the API through which Events are written.
    pub(in crate::events) fn api(&self) -> EventApi {
        match self {
            Self::Counting(_) => EventApi::Core,
            Self::Series(_) => EventApi::Events,
        }
    }

    /// Adds an event, and returns the decision.
    pub(in crate::events) fn observe(&mut self, pending: Pending) -> Decision {
        match self {
            Self::Counting(counting) => counting.observe(pending),
            Self::Series(series) => series.observe(pending),
        }
    }

    /// Returns the time of the next write that needs no further event.
    pub(in crate::events) fn next_due(&self) -> Option<Instant> {
        match self {
            Self::Counting(_) => None,
            Self::Series(series) => series.next_due(),
        }
    }

    /// Takes one Event that is due for a write.
    ///
    /// Without a time, it takes any Event whose newest events are not written yet.
    pub(in crate::events) fn take_due(&mut self, now: Option<Instant>) -> Option<Record> {
        match self {
            Self::Counting(_) => None,
            Self::Series(series) => series.take_due(now),
        }
    }

    /// Returns the number of remembered entries, and its bound.
    pub(in crate::events) fn table_sizes(&self) -> (usize, usize) {
        let sizes = match self {
            Self::Counting(counting) => counting.table_sizes(),
            Self::Series(series) => series.table_sizes(),
        };
        (sizes, 3 * CAPACITY)
    }

    /// Gives an Event a new name, because its name is taken.
    pub(in crate::events) fn rename(&mut self, record: &mut Record) {
        match self {
            Self::Counting(counting) => counting.rename(record),
            Self::Series(series) => series.rename(record),
        }
    }
}

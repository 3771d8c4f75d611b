//! Combines events into series, by client-go's rules for `events.k8s.io/v1`.
//!
//! The first event of a series creates an Event, and the second one patches it with a count. Later ones are only
//! counted. The count is written every 30 minutes, so that the Event does not expire, and once more at the end of the
//! series.

use std::time::Duration;

use tokio::time::Instant;

use super::decision::{CAPACITY, Decision};
use super::names::Names;
use super::recent::Recent;
use super::spam::SpamFilter;
use super::subject;
use crate::events::EventOptions;
use crate::events::record::{Pending, Record};

/// The time without an event after which a series ends.
const FINISHED: Duration = Duration::from_secs(6 * 60);
/// The interval at which an active series is written.
///
/// By default the API server deletes Events an hour after their last write.
const REFRESHED: Duration = Duration::from_secs(30 * 60);

/// The active series.
#[derive(Debug)]
pub(in crate::events) struct SeriesKeeper {
    options: EventOptions,
    names: Names,
    spam: SpamFilter,
    series: Recent<Series>,
}

/// A series, or a single event that may become one.
#[derive(Debug)]
struct Series {
    record: Record,
    /// The count at the last write; zero before the first.
    written: i32,
    written_at: Instant,
    last_at: Instant,
}

impl Series {
    fn due(&self) -> Instant {
        let finished = self.last_at + FINISHED;
        match self.record.count {
            ..=1 => finished,
            _ => finished.min(self.written_at + REFRESHED),
        }
    }

    fn write(&mut self, now: Instant) -> Record {
        self.written = self.record.count;
        self.written_at = now;
        self.record.clone()
    }
}

impl SeriesKeeper {
    pub(super) fn new(options: EventOptions) -> Self {
        Self {
            spam: SpamFilter::new(options.burst, options.refill, CAPACITY),
            options,
            names: Names::new(),
            series: Recent::new(CAPACITY),
        }
    }

    pub(super) fn observe(&mut self, pending: Pending) -> Decision {
        let now = pending.at;
        let key = subject::same_but_note(&pending);
        // A further event of a known series writes at most once more, so the limit applies to new series only.
        // Checked before `entry`, which would create the series.
        if self.series.get_mut(&key).is_none() && !self.admits(&pending) {
            return Decision::Filtered;
        }
        let (names, api, time) = (&mut self.names, self.options.api, pending.time);
        let series = self.series.entry(&key, || Series {
            record: Record {
                api,
                name: names.next(pending.about.name.as_deref(), time),
                key: key.clone(),
                about: pending.about,
                event: pending.event,
                count: 0,
                first: time,
                last: time,
            },
            written: 0,
            written_at: now,
            last_at: now,
        });
        series.record.count = series.record.count.saturating_add(1);
        series.record.last = time;
        series.last_at = now;
        match series.record.count {
            1 => Decision::Create(series.write(now)),
            2 => Decision::Patch(series.write(now)),
            _ => Decision::Counted,
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.series.unordered().map(Series::due).min()
    }

    pub(super) fn take_due(&mut self, now: Option<Instant>) -> Option<Record> {
        loop {
            let due = self.series.iter().find(|(_, series)| match now {
                Some(now) => series.due() <= now,
                None => series.record.count > series.written,
            });
            let key = due.map(|(key, _)| key.clone())?;
            let series = self.series.get_mut(&key)?;
            // At the end of the process everything unwritten is due, whatever its time.
            let Some(now) = now else {
                return Some(series.write(series.last_at));
            };
            // A series that is over and completely written needs no write, only to be forgotten.
            let is_over = series.last_at + FINISHED <= now;
            let is_news = series.record.count > series.written;
            let record = series.write(now);
            if is_over {
                self.series.remove(&key);
            }
            if !is_over || is_news {
                return Some(record);
            }
        }
    }

    pub(super) fn rename(&mut self, record: &mut Record) {
        record.name = self.names.next(record.about.name.as_deref(), record.last);
        if let Some(series) = self.series.get_mut(&record.key) {
            series.record.name.clone_from(&record.name);
        }
    }

    pub(super) fn table_sizes(&self) -> usize {
        self.spam.len() + self.series.len()
    }

    fn admits(&mut self, pending: &Pending) -> bool {
        let key = match &self.options.spam_key {
            Some(key) => key(&pending.about, &pending.event),
            None => subject::object(&pending.about),
        };
        self.spam.admits(&key, pending.at)
    }
}

//! Counts and aggregates events by client-go's rules for `v1`.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use tokio::time::Instant;

use super::decision::{CAPACITY, Decision};
use super::names::Names;
use super::recent::Recent;
use super::spam::SpamFilter;
use super::subject;
use crate::events::EventOptions;
use crate::events::record::{Pending, Record};

/// The recent events.
#[derive(Debug)]
pub(in crate::events) struct Counting {
    options: EventOptions,
    names: Names,
    spam: SpamFilter,
    notes: Recent<Notes>,
    seen: Recent<Seen>,
    /// Makes the hashes of notes differ between processes.
    seed: u64,
}

/// The notes of similar events, as hashes, since they may be long and many.
#[derive(Debug)]
struct Notes {
    known: HashSet<u64>,
    last: Instant,
}

/// A recent Event.
#[derive(Debug)]
struct Seen {
    name: String,
    count: i32,
    first: Timestamp,
    /// Whether its creation was requested. If that failed, the next patch shows it.
    created: bool,
}

impl Counting {
    pub(super) fn new(options: EventOptions) -> Self {
        Self {
            spam: SpamFilter::new(options.burst, options.refill, CAPACITY),
            options,
            names: Names::new(),
            notes: Recent::new(CAPACITY),
            seen: Recent::new(CAPACITY),
            seed: fastrand::u64(..),
        }
    }

    pub(super) fn observe(&mut self, pending: Pending) -> Decision {
        let now = pending.at;
        let mut record = self.count(pending);
        let spam_key = match &self.options.spam_key {
            Some(key) => key(&record.about, &record.event),
            None => subject::object(&record.about),
        };
        // Last, so that an event that is not written is counted by the next write.
        if !self.spam.admits(&spam_key, now) {
            return Decision::Filtered;
        }
        let Some(seen) = self.seen.get_mut(&record.key) else {
            return Decision::Filtered;
        };
        record.name.clone_from(&seen.name);
        if std::mem::replace(&mut seen.created, true) {
            Decision::Patch(record)
        } else {
            Decision::Create(record)
        }
    }

    pub(super) fn rename(&mut self, record: &mut Record) {
        record.name = self.names.next(record.about.name.as_deref(), record.last);
        if let Some(seen) = self.seen.get_mut(&record.key) {
            seen.name.clone_from(&record.name);
        }
    }

    pub(super) fn remembered(&self) -> usize {
        self.spam.len() + self.notes.len() + self.seen.len()
    }

    /// Counts an event, by itself or aggregated with similar ones.
    fn count(&mut self, pending: Pending) -> Record {
        let (event, key) = if self.is_one_of_many(&pending) {
            let key = format!("{}combined", subject::similar(&pending));
            (pending.event.combined(), key)
        } else {
            let note = self.hash(pending.event.note());
            let key = format!("{}{note:x}", subject::same_but_note(&pending));
            (pending.event, key)
        };
        let (names, time) = (&mut self.names, pending.time);
        let seen = self.seen.entry(&key, || Seen {
            name: names.next(pending.about.name.as_deref(), time),
            count: 0,
            first: time,
            created: false,
        });
        seen.count = seen.count.saturating_add(1);
        Record {
            api: self.options.api,
            name: seen.name.clone(),
            count: seen.count,
            first: seen.first,
            last: time,
            key,
            about: pending.about,
            event,
        }
    }

    fn hash(&self, note: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, note).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns whether there were too many recent notes for this one to get an Event of its own.
    fn is_one_of_many(&mut self, pending: &Pending) -> bool {
        let (most, within) = (self.options.aggregate_after, self.options.aggregate_within);
        if most == 0 {
            return false;
        }
        let now = pending.at;
        let note = self.hash(pending.event.note());
        let notes = self.notes.entry(&subject::similar(pending), || Notes {
            known: HashSet::new(),
            last: now,
        });
        if now.saturating_duration_since(notes.last) > within {
            notes.known.clear();
        }
        notes.last = now;
        // The first notes keep their Events; the set stays one below the limit.
        if notes.known.contains(&note) {
            return false;
        }
        if notes.known.len() + 1 >= most {
            return true;
        }
        notes.known.insert(note);
        false
    }
}

//! Counts and aggregates events, by client-go's rules for `v1` Events.
//!
//! Three stages, each with a bounded memory: similar events with too many different notes are combined into one; equal
//! events are counted in one Event; a token bucket per object limits the writes.

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

/// The memory of recent events.
#[derive(Debug)]
pub(in crate::events) struct Counting {
    options: EventOptions,
    names: Names,
    spam: SpamFilter,
    notes: Recent<Notes>,
    seen: Recent<Seen>,
    /// Makes the hashes of notes differ between processes.
    ///
    /// Otherwise an attacker could craft notes with equal hashes, which would be taken for equal.
    seed: u64,
}

/// The different notes of similar events.
///
/// Kept as hashes, because notes may be long and many.
#[derive(Debug)]
struct Notes {
    known: HashSet<u64>,
    last: Instant,
}

/// An Event that was written recently.
#[derive(Debug)]
struct Seen {
    name: String,
    count: i32,
    first: Timestamp,
    /// Whether its creation was requested.
    ///
    /// If the creation failed, the next patch finds no Event, and creates it.
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
        // Counted first: an event over the limit still counts.
        let mut record = self.count(pending);
        let spam_key = match &self.options.spam_key {
            Some(key) => key(&record.about, &record.event),
            None => subject::object(&record.about),
        };
        // The limit comes last, so that an event over it is still counted, and shown by the next write.
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

    pub(super) fn table_sizes(&self) -> usize {
        self.spam.len() + self.notes.len() + self.seen.len()
    }

    /// Counts an event, by itself or combined with similar ones.
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

    /// Returns whether an event is combined with others because of too many notes.
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
        // Notes that have an Event of their own keep it. The set stays one below the limit, as in client-go.
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

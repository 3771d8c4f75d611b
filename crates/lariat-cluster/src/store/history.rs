//! The recent changes of one resource, for watchers and reads of old states.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lariat_core::ObjectKey;

use super::object::{EventType, Stored};

/// One committed change.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) event: EventType,
    /// The new state; for a deletion the last state under the deletion's revision.
    pub(crate) object: Arc<Stored>,
    /// The state before, for a change and for a deletion.
    pub(crate) previous: Option<Arc<Stored>>,
}

/// A ring of events in the order of their revisions.
#[derive(Debug)]
pub(super) struct History {
    /// Every event after `floor`, and after `dropped`.
    events: VecDeque<Arc<Event>>,
    /// Revisions before this one are expired.
    floor: u64,
    /// The revision of the last event that was dropped.
    ///
    /// Watchers that had read up to there continue.
    dropped: u64,
    capacity: usize,
}

impl History {
    pub(super) fn new(floor: u64, capacity: usize) -> Self {
        Self {
            events: VecDeque::new(),
            floor,
            dropped: floor,
            capacity,
        }
    }

    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.events.push_back(event);
        if self.events.len() > self.capacity
            && let Some(oldest) = self.events.pop_front()
        {
            self.dropped = oldest.revision;
            self.floor = self.floor.max(oldest.revision);
        }
    }

    /// Forgets everything up to a revision.
    pub(super) fn compact(&mut self, revision: u64) {
        let kept = self
            .events
            .partition_point(|event| event.revision <= revision);
        if let Some(last) = self.events.drain(..kept).next_back() {
            self.dropped = last.revision;
        }
        self.expire(revision);
    }

    /// Expires all revisions before this one.
    ///
    /// Watchers that are open continue.
    pub(super) fn expire(&mut self, revision: u64) {
        self.floor = self.floor.max(revision);
    }

    /// Returns how many changes are kept.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// Returns whether every event after `revision` is kept, expired or not.
    pub(super) fn continues(&self, revision: u64) -> bool {
        revision >= self.dropped
    }

    /// Returns whether a watch may begin at `revision`.
    pub(super) fn reaches(&self, revision: u64) -> bool {
        revision >= self.floor
    }

    /// Returns up to `limit` events after a revision.
    pub(super) fn after(&self, revision: u64, limit: usize) -> Vec<Arc<Event>> {
        let start = self
            .events
            .partition_point(|event| event.revision <= revision);
        self.events.range(start..).take(limit).cloned().collect()
    }

    /// Returns the revision so many events before another one.
    pub(super) fn rewind(&self, revision: u64, events: usize) -> u64 {
        let end = self
            .events
            .partition_point(|event| event.revision <= revision);
        let first = self.events.range(end.saturating_sub(events)..end).next();
        first.map_or(revision, |event| event.revision - 1)
    }

    /// Returns what each object changed after a revision was at that revision.
    pub(super) fn undone_to(&self, revision: u64) -> BTreeMap<ObjectKey, Option<Arc<Stored>>> {
        let mut then = BTreeMap::new();
        for event in self
            .events
            .iter()
            .rev()
            .take_while(|event| event.revision > revision)
        {
            then.insert(event.object.key().clone(), event.previous.clone());
        }
        then
    }
}

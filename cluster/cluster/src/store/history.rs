//! The recent changes of one resource, for watchers and reads of old states.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lariat_core::ObjectKey;

use super::object::{EventType, Stored};
use super::retention::ReadLimit;

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

/// The memory of a change beside the states of its object.
const CHANGE: usize = 96;

/// A ring of events in the order of their revisions.
#[derive(Debug)]
pub(super) struct History {
    /// Every event after `floor`, and after `dropped`.
    events: VecDeque<Kept>,
    /// The sum of the costs of `events`.
    bytes: usize,
    /// Revisions before this one are expired.
    // Two bounds: a new watch begins at `floor` or later, while an open one continues from `dropped`. A compaction or
    // an age raises the first at once, so that clients see 410, and need not end slow watchers.
    floor: u64,
    /// The revision of the last event that was dropped.
    ///
    /// Watchers that had read up to there continue.
    dropped: u64,
    capacity: usize,
}

#[derive(Debug)]
struct Kept {
    event: Arc<Event>,
    /// [What it cost](Event::cost) when it came; later it may be more.
    cost: usize,
}

/// A ring with room for this many events is not worth making smaller.
const SMALL: usize = 1024;

impl Event {
    /// Returns how many bytes are in memory for this change alone.
    ///
    /// A new state is not counted, since it is stored anyway; once it is replaced, the change that did
    /// so counts it. The last state of a deletion is in the history only.
    pub(super) fn cost(&self) -> usize {
        let before = self.previous.as_ref().map_or(0, |state| state.weight());
        let last = match self.event {
            EventType::Deleted => self.object.weight(),
            EventType::Added | EventType::Modified => 0,
        };
        CHANGE + before + last
    }
}

impl History {
    pub(super) fn new(floor: u64, capacity: usize) -> Self {
        Self {
            events: VecDeque::new(),
            bytes: 0,
            floor,
            dropped: floor,
            capacity,
        }
    }

    pub(super) fn push(&mut self, event: Arc<Event>) {
        let cost = event.cost();
        self.bytes += cost;
        self.events.push_back(Kept { event, cost });
        if self.events.len() > self.capacity {
            self.drop_oldest();
        }
    }

    /// Drops the oldest event, after which revisions before it are expired.
    pub(super) fn drop_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            // By the cost at the time of the push: the weight of a state grows when its metadata frame is made, and a
            // difference would let the sum drift below zero.
            self.bytes -= oldest.cost;
            self.dropped = oldest.event.revision;
            self.expire(oldest.event.revision);
            self.give_back();
        }
    }

    /// Drops the events up to a revision.
    pub(super) fn forget(&mut self, revision: u64) {
        let dropped = self.position_after(revision);
        let mut last = None;
        for kept in self.events.drain(..dropped) {
            self.bytes -= kept.cost;
            last = Some(kept.event.revision);
        }
        if let Some(last) = last {
            self.dropped = last;
            self.expire(last);
            self.give_back();
        }
    }

    /// Drops the events up to a revision, and expires earlier states.
    ///
    /// Those after `unread` stay, for a watcher that is open and has not read them.
    pub(super) fn age(&mut self, revision: u64, unread: Option<u64>) {
        let old = self.position_after(revision);
        if let Some(last) = old.checked_sub(1).and_then(|last| self.events.get(last)) {
            let last = last.event.revision;
            // New watches may not begin here any more. Open ones that have not read these events keep them: otherwise
            // age alone would end a slow watcher.
            self.expire(last);
            self.forget(unread.map_or(last, |unread| last.min(unread)));
        }
    }

    /// Forgets everything up to a revision, before which all are expired.
    pub(super) fn compact(&mut self, revision: u64) {
        self.forget(revision);
        // Also where nothing was forgotten: `forget` expires no further than the last event it drops.
        self.expire(revision);
    }

    /// Expires all revisions before this one.
    ///
    /// Watchers that are open continue.
    pub(super) fn expire(&mut self, revision: u64) {
        // Ageing, dropping and compaction come in any order, and a floor never goes back.
        self.floor = self.floor.max(revision);
    }

    /// Returns how many changes are kept.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns how many bytes the changes keep in memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns for how many changes there is memory.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.events.capacity()
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

    /// Returns the first events after a revision, and whether these are all.
    pub(super) fn after(&self, revision: u64, limit: ReadLimit) -> (Vec<Arc<Event>>, bool) {
        let start = self.position_after(revision);
        let mut bytes = 0;
        let fits = |kept: &&Kept| {
            // Compared before the object is added, so that an object larger than the limit is read alone instead of
            // never.
            let before = bytes;
            bytes += kept.event.object.size();
            before < limit.bytes
        };
        let kept = self.events.range(start..).take(limit.changes);
        let events = kept.take_while(fits).map(|kept| Arc::clone(&kept.event));
        let events: Vec<Arc<Event>> = events.collect();
        let is_all = start + events.len() == self.events.len();
        (events, is_all)
    }

    /// Returns the revision so many events before another one.
    pub(super) fn rewind(&self, revision: u64, events: usize) -> u64 {
        // Events may have been dropped: then there are fewer to send again than asked for.
        let end = self.position_after(revision);
        let first = self.events.range(end.saturating_sub(events)..end).next();
        // A cursor stands behind what is read, so it goes before the first event that is to be read again.
        first.map_or(revision, |first| first.event.revision - 1)
    }

    /// Returns the state that each object changed after a revision had at that revision.
    pub(super) fn undone_to(&self, revision: u64) -> BTreeMap<ObjectKey, Option<Arc<Stored>>> {
        let mut then = BTreeMap::new();
        let events = self.events.range(self.position_after(revision)..).rev();
        for Kept { event, .. } in events {
            // Newest first, so that the oldest change after the revision has the last word: its previous state is the
            // one at the revision. `None` is an object that did not exist yet.
            then.insert(event.object.key().clone(), event.previous.clone());
        }
        then
    }

    /// Returns the place of the first event after a revision.
    fn position_after(&self, revision: u64) -> usize {
        let is_before = |kept: &Kept| kept.event.revision <= revision;
        self.events.partition_point(is_before)
    }

    /// Gives memory back of which little is in use.
    fn give_back(&mut self) {
        let (used, room) = (self.events.len(), self.events.capacity());
        // A `VecDeque` never shrinks by itself, and a burst of changes would hold its memory for the life of the
        // cluster. A quarter leaves room between shrinking and growing again, so that neither happens at each change.
        if room > SMALL && used < room / 4 {
            self.events.shrink_to(2 * used);
        }
    }
}

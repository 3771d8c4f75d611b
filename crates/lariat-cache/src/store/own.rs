//! The writes of this process, until a list or the watch shows them.

use std::cmp::Ordering;
use std::time::Duration;

use hashbrown::{HashMap, HashSet};
use lariat_core::{ObjectKey, ObjectMetadata, ResourceVersion, Uid};
use tokio::time::Instant;

use super::object::CachedObject;
use super::reached::Reached;

/// How long older events of an object may arrive after this process deleted it.
///
/// The time counts from the answer to the deletion, or from when a watch is opened: see [`OwnWrites::watch_opened`]. It
/// is limited because a server that was restored from a backup has the object again, and never reports its deletion.
const LATEST_EVENT: Duration = Duration::from_secs(60);

/// How many writes are remembered before old ones are removed.
const CLEAR_AT: usize = 1024;

/// Fences against older states that arrive late.
///
/// A write is remembered until it is shown by the watch, or by a list that began after the write was answered: such a
/// list cannot be older than the write. If versions cannot be compared there is no fence: the server's state is used.
#[derive(Debug, Default)]
pub(super) struct OwnWrites {
    /// The last write of each object that left it in a known version.
    by_key: HashMap<ObjectKey, (Mark, Written)>,
    /// Objects that were deleted.
    deleted: HashMap<Uid, (Mark, ObjectKey)>,
    /// The number of the last deletion of each key in `deleted`.
    deletions: HashMap<ObjectKey, u64>,
    /// How many lists have begun.
    lists: u64,
    /// How many writes were left when old ones were last removed.
    recent: usize,
}

/// When a write was answered.
#[derive(Debug, Clone, Copy)]
struct Mark {
    answered: Instant,
    /// When the time of the fence began: see [`OwnWrites::watch_opened`].
    at: Instant,
    /// How many lists had begun.
    lists: u64,
}

/// The version of an object after a write, or its last one before it was deleted.
#[derive(Debug)]
struct Written {
    version: ResourceVersion,
    /// The object; `None` if it was deleted or left the selection.
    uid: Option<Uid>,
}

impl OwnWrites {
    /// Returns the number of a list that begins now; the first is 1.
    pub(super) fn begin_listing(&mut self) -> u64 {
        self.lists += 1;
        self.lists
    }

    /// Ends the list of a number, and forgets the writes that it has shown.
    pub(super) fn end_listing(&mut self, begun: u64, covers: impl Fn(&ObjectKey) -> bool) {
        let stays = |mark: &Mark, key: &ObjectKey| mark.is_after(begun) || !covers(key);
        self.by_key.retain(|key, (mark, _)| stays(mark, key));
        self.deleted.retain(|_, (mark, key)| stays(mark, key));
        self.forget_deletions();
        self.shrink();
    }

    /// Notes that an object was created or changed.
    pub(super) fn wrote(&mut self, object: &CachedObject, reached: &Reached) {
        let written = Written {
            version: object.version().clone(),
            uid: Some(object.uid().clone()),
        };
        self.remember(object.key(), written, reached);
    }

    /// Notes that an object left the selection at a version.
    ///
    /// It may come back at a later one.
    pub(super) fn left(&mut self, object: &ObjectMetadata, reached: &Reached) {
        let version = object.version().clone();
        self.remember(object.key(), Written { version, uid: None }, reached);
    }

    /// Notes that an object was deleted.
    ///
    /// The answer does not contain the version of the deletion. So if the process never saw the object, neither in a
    /// cache nor in an answer, earlier objects of its name may be shown until the watch reaches the deletion.
    pub(super) fn deleted(&mut self, key: &ObjectKey, uid: &Uid, reached: &Reached) {
        let mark = self.mark(reached);
        self.deleted.insert(uid.clone(), (mark, key.clone()));
    }

    /// Notes the number of a deletion that was answered.
    pub(super) fn deletion_sent(&mut self, key: &ObjectKey, number: u64) {
        let last = self.deletions.entry(key.clone()).or_default();
        *last = number.max(*last);
    }

    /// Forgets the deletions of keys without a remembered deleted object.
    fn forget_deletions(&mut self) {
        if self.deleted.is_empty() {
            self.deletions.clear();
        } else if self.deletions.len() > 2 * self.deleted.len() {
            let keys: HashSet<&ObjectKey> = self.deleted.values().map(|(_, key)| key).collect();
            self.deletions.retain(|key, _| keys.contains(key));
        }
    }

    /// Returns whether a deletion is remembered.
    pub(super) fn has_deleted(&self) -> bool {
        !self.deleted.is_empty()
    }

    /// Extends the fences of deletions that the previous watch may not have reported.
    ///
    /// A new watch first reports what the previous one did not. A connection that drops packets is noticed only after
    /// minutes, and the events it lost must not undo a deletion that was answered meanwhile. So the time of a deletion
    /// counts from the new watch, unless some watch has reported an event at least [`LATEST_EVENT`] after the answer.
    /// `last_event` is when the last event of these keys arrived, on any watch: if a proxy cuts all watches before that
    /// time is over, deletions would never be forgotten otherwise.
    pub(super) fn watch_opened(
        &mut self,
        last_event: Option<Instant>,
        reached: &Reached,
        covers: impl Fn(&ObjectKey) -> bool,
    ) {
        let now = Instant::now();
        let is_delivered = |mark: &Mark| {
            let after = |at: Instant| at.saturating_duration_since(mark.answered);
            last_event.is_some_and(|at| after(at) >= LATEST_EVENT)
        };
        self.deleted.retain(|_, (mark, key)| {
            if !covers(key) {
                return true;
            }
            if !is_delivered(mark) {
                mark.at = now;
            }
            mark.stays(key, now, reached)
        });
    }

    fn remember(&mut self, key: &ObjectKey, written: Written, reached: &Reached) {
        let mark = self.mark(reached);
        self.by_key.insert(key.clone(), (mark, written));
    }

    /// Returns the mark of a write that is answered now.
    fn mark(&mut self, reached: &Reached) -> Mark {
        let now = Instant::now();
        // After each doubling, so that many writes a minute do not search through all of them each time.
        if self.len() >= self.clear_at() {
            // Writes that no list and no watch will show, such as of objects that were never selected, must not stay
            // for ever.
            self.by_key
                .retain(|key, (mark, _)| mark.stays(key, now, reached));
            self.deleted
                .retain(|_, (mark, key)| mark.stays(key, now, reached));
            self.forget_deletions();
            self.recent = self.len();
            self.shrink();
        }
        Mark {
            answered: now,
            at: now,
            lists: self.lists,
        }
    }

    fn clear_at(&self) -> usize {
        CLEAR_AT.max(2 * self.recent)
    }

    fn shrink(&mut self) {
        if self.by_key.capacity() + self.deleted.capacity() > 8 * self.len().max(CLEAR_AT) {
            self.by_key.shrink_to(CLEAR_AT);
            self.deleted.shrink_to(CLEAR_AT);
            self.deletions.shrink_to(CLEAR_AT);
        }
    }

    /// Returns the versions of own writes that no list and no watch has shown since.
    pub(super) fn versions(&self) -> HashMap<ObjectKey, ResourceVersion> {
        let written = self.by_key.iter();
        let version = |(key, (_, written)): (&ObjectKey, &(Mark, Written))| {
            (key.clone(), written.version.clone())
        };
        written.map(version).collect()
    }

    /// Returns how many writes are remembered.
    pub(super) fn len(&self) -> usize {
        self.by_key.len() + self.deleted.len()
    }

    /// Returns how many writes may be remembered.
    ///
    /// Twice those of the last minute and of the time since the lists in progress began, as of the last removal.
    pub(super) fn most(&self) -> usize {
        // A deletion is remembered in both maps.
        self.clear_at() + 1
    }

    fn is_empty(&self) -> bool {
        self.by_key.is_empty() && self.deleted.is_empty()
    }

    /// Returns whether a state is older than an own write.
    ///
    /// Forgets a write that it shows.
    pub(super) fn outdates(&mut self, state: &ObjectMetadata) -> bool {
        // Nearly always.
        if self.is_empty() {
            return false;
        }
        let deleted = self.deleted.get(state.uid());
        let is_deleted = deleted.is_some_and(|(mark, _)| mark.at.elapsed() < LATEST_EVENT);
        is_deleted || self.is_before(state)
    }

    /// Returns whether the answer to a write is older than the answer to another one.
    ///
    /// An answer, unlike a watch event, does not confirm the previous write. A write that changes nothing is answered
    /// with the present state, and a list in progress may be older than that state.
    ///
    /// An object whose creation was sent before a deletion of the name, and is answered after it, does not exist any
    /// more: either the deleted object came after it, or it was deleted itself. If the API server has handled the two
    /// in the other order, the watch will show it.
    pub(super) fn outdates_answer(&self, answer: &ObjectMetadata, sent: u64) -> bool {
        let deletion = self.deletions.get(answer.key());
        // The creation was sent before the deletion of its name, so the object does not exist any more.
        if deletion.is_some_and(|number| sent < *number) {
            return true;
        }
        let deleted = self.deleted.get(answer.uid());
        let is_deleted = deleted.is_some_and(|(mark, _)| mark.at.elapsed() < LATEST_EVENT);
        is_deleted || self.order(answer) == Some(Ordering::Less)
    }

    /// Returns whether a state in the list of a number is older than an own write.
    pub(super) fn outdates_listed(&mut self, begun: u64, state: &ObjectMetadata) -> bool {
        if self.is_empty() {
            return false;
        }
        let deleted = self.deleted.get(state.uid());
        if deleted.is_some_and(|(mark, _)| mark.is_after(begun)) {
            return true;
        }
        // Earlier deletions are forgotten at the end of the list, but this object exists again.
        self.deleted.remove(state.uid());
        let written = self.by_key.get(state.key());
        if written.is_some_and(|(mark, _)| !mark.is_after(begun)) {
            self.by_key.remove(state.key());
        }
        self.is_before(state)
    }

    /// Returns whether this process wrote the object after the given deletion event.
    ///
    /// Then the object left the selection and came back. That an object was deleted is not forgotten yet: this may be
    /// the earlier event of leaving the selection, and the watch may go on to report that it came back before it was
    /// deleted.
    pub(super) fn outdates_end(&mut self, last: &ObjectMetadata) -> bool {
        !self.is_empty() && self.is_before(last)
    }

    fn is_before(&mut self, state: &ObjectMetadata) -> bool {
        match self.order(state) {
            Some(Ordering::Less) => true,
            Some(_) => {
                self.by_key.remove(state.key());
                false
            }
            None => false,
        }
    }

    /// Compares a state with an own write.
    fn order(&self, state: &ObjectMetadata) -> Option<Ordering> {
        let (_, written) = self.by_key.get(state.key())?;
        state.version().compare(&written.version)
    }

    /// Returns whether an unlisted object was written after the list.
    pub(super) fn is_after(
        &self,
        object: &CachedObject,
        begun: u64,
        version: &ResourceVersion,
    ) -> bool {
        let written = self.by_key.get(object.key());
        written.is_some_and(|(mark, written)| {
            // Three conditions: the list may be older than the write, it is the same object, and the write is newer
            // than the list.
            mark.is_after(begun)
                && written.uid.as_ref() == Some(object.uid())
                && written.version.compare(version) == Some(Ordering::Greater)
        })
    }
}

impl Mark {
    /// Returns whether an earlier state may still arrive, in a watch or in a list.
    fn stays(&self, key: &ObjectKey, now: Instant, reached: &Reached) -> bool {
        // A list in progress may be older than the write, however long ago that was.
        now - self.at < LATEST_EVENT || reached.is_listing(key, self.lists)
    }

    /// Returns whether the answer came after the list of a number had begun.
    ///
    /// The list may then be older than the write.
    fn is_after(&self, begun: u64) -> bool {
        self.lists >= begun
    }
}

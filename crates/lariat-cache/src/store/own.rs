//! Own writes: the writes of this process, until a list or the watch reports them.
//!
//! The answer to a write is in the store before the watch reports it. Until then, older states may still arrive, from a
//! watch that lags behind or from a list that began before the write. The store asks this table whether an arriving
//! state is older than an own write, and drops it if so.

use std::cmp::Ordering;
use std::time::Duration;

use hashbrown::{HashMap, HashSet};
use lariat_core::{ObjectKey, ObjectMetadata, ResourceVersion, Uid};
use tokio::time::Instant;

use super::object::CachedObject;
use super::reached::Reached;

/// How long after a deletion older states of the object are dropped.
///
/// The time counts from the answer to the deletion, or from the opening of a watch: see [`OwnWrites::watch_opened`]. It
/// is limited because a server that was restored from a backup has the object again, and never reports its deletion.
const LATEST_EVENT: Duration = Duration::from_secs(60);

/// How many writes are remembered before old ones are removed.
const CLEAR_AT: usize = 1024;

/// Fences against older states that arrive late.
///
/// A write is remembered until the watch reports it, or a list that began after its answer: such a list cannot be older
/// than the write. If versions cannot be compared there is no fence, and the state that the server sends is used.
#[derive(Debug, Default)]
pub(super) struct OwnWrites {
    /// The last write of each key, with the version in which it left the object.
    by_key: HashMap<ObjectKey, (Fence, FencedState)>,
    /// The uids of deleted objects. A uid is never used again, so no version is needed.
    deleted: HashMap<Uid, Deletion>,
    /// The last deletion of each key in `deleted`, by number in the order of sending.
    deletions: HashMap<ObjectKey, u64>,
    /// How many lists have begun.
    lists: u64,
    /// How many writes were left when old ones were last removed.
    recent: usize,
}

/// What hides states of an object that are older than a write.
#[derive(Debug, Clone, Copy)]
struct Fence {
    answered: Instant,
    /// When the fence's time began: see [`OwnWrites::watch_opened`].
    at: Instant,
    /// How many lists had begun by then.
    lists: u64,
}

/// An answered deletion.
#[derive(Debug)]
struct Deletion {
    fence: Fence,
    key: ObjectKey,
    /// Whether a watch has reported a state of the object that was dropped, and no deletion since.
    ///
    /// Once the fence is over, the object may exist: the server was restored, or has not deleted it yet.
    hides: bool,
}

impl Deletion {
    fn is_fresh(&self) -> bool {
        self.fence.at.elapsed() < LATEST_EVENT
    }
}

/// The version of an object after a write, or its last one before a deletion.
#[derive(Debug)]
struct FencedState {
    version: ResourceVersion,
    /// The object; `None` if it was deleted or left the selection.
    uid: Option<Uid>,
}

impl OwnWrites {
    /// Returns the number of a list that begins now; the first number is 1.
    pub(super) fn begin_listing(&mut self) -> u64 {
        self.lists += 1;
        self.lists
    }

    /// Ends the list of a number, and forgets the writes that it contains.
    pub(super) fn end_listing(&mut self, begun: u64, covers: impl Fn(&ObjectKey) -> bool) {
        let stays = |fence: &Fence, key: &ObjectKey| fence.is_after(begun) || !covers(key);
        self.by_key.retain(|key, (fence, _)| stays(fence, key));
        self.deleted.retain(|_, it| stays(&it.fence, &it.key));
        self.forget_deletions();
        self.shrink();
    }

    /// Records that an object was created or changed.
    pub(super) fn wrote(&mut self, object: &CachedObject, reached: &Reached) {
        let fenced = FencedState {
            version: object.version().clone(),
            uid: Some(object.uid().clone()),
        };
        self.remember(object.key(), fenced, reached);
    }

    /// Records that an object left the selection at a version.
    ///
    /// It may be selected again at a later one.
    pub(super) fn left(&mut self, object: &ObjectMetadata, reached: &Reached) {
        let version = object.version().clone();
        self.remember(object.key(), FencedState { version, uid: None }, reached);
    }

    /// Records that an object was deleted.
    ///
    /// The answer does not contain the version of the deletion. So if this process never saw the object, neither in a
    /// cache nor in an answer, earlier objects of its name may appear until the watch reaches the deletion.
    pub(super) fn deleted(&mut self, key: &ObjectKey, uid: &Uid, reached: &Reached) {
        let deletion = Deletion {
            fence: self.fence(reached),
            key: key.clone(),
            hides: false,
        };
        self.deleted.insert(uid.clone(), deletion);
    }

    /// Records the number of a deletion that was answered.
    pub(super) fn deletion_sent(&mut self, key: &ObjectKey, number: u64) {
        let last = self.deletions.entry(key.clone()).or_default();
        *last = number.max(*last);
    }

    /// Forgets the numbers of keys that have no remembered deletion.
    fn forget_deletions(&mut self) {
        // Searched only if there are twice as many, so that most calls are cheap.
        if self.deleted.is_empty() {
            self.deletions.clear();
        } else if self.deletions.len() > 2 * self.deleted.len() {
            let keys: HashSet<&ObjectKey> = self.deleted.values().map(|it| &it.key).collect();
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
    /// minutes, and the events that it lost must not undo a deletion that was answered meanwhile. So the time of a
    /// deletion counts from the new watch, unless some watch has reported an event at least [`LATEST_EVENT`] after the
    /// answer.
    ///
    /// `last_event` is the time of the last event for these keys, on any watch. Without it, a proxy that cuts all
    /// watches before their time is over would keep deletions for ever. Returns whether a list is needed, as
    /// [`hides`](Self::hides) does.
    #[must_use]
    pub(super) fn watch_opened(
        &mut self,
        last_event: Option<Instant>,
        reached: &Reached,
        covers: impl Fn(&ObjectKey) -> bool,
    ) -> bool {
        let now = Instant::now();
        let is_delivered = |fence: &Fence| {
            let after = |at: Instant| at.saturating_duration_since(fence.answered);
            last_event.is_some_and(|at| after(at) >= LATEST_EVENT)
        };
        for deletion in self.deleted.values_mut().filter(|it| covers(&it.key)) {
            if !is_delivered(&deletion.fence) {
                deletion.fence.at = now;
            }
        }
        self.deleted
            .retain(|_, it| it.hides || !covers(&it.key) || it.fence.stays(&it.key, now, reached));
        self.hides(covers)
    }

    /// Returns whether an object may exist whose states were dropped since it was deleted.
    ///
    /// Only a list shows it.
    pub(super) fn hides(&self, covers: impl Fn(&ObjectKey) -> bool) -> bool {
        let mut deleted = self.deleted.values();
        deleted.any(|it| it.hides && !it.is_fresh() && covers(&it.key))
    }

    fn remember(&mut self, key: &ObjectKey, fenced: FencedState, reached: &Reached) {
        let fence = self.fence(reached);
        self.by_key.insert(key.clone(), (fence, fenced));
    }

    /// Returns the fence of a write that is answered now, after removing old writes.
    fn fence(&mut self, reached: &Reached) -> Fence {
        let now = Instant::now();
        // After each doubling, so that a program that writes much does not search all writes each time.
        if self.len() >= self.clear_at() {
            // Removes writes that no list and no watch will show, such as writes of objects that were never selected.
            self.by_key
                .retain(|key, (fence, _)| fence.stays(key, now, reached));
            self.deleted
                .retain(|_, it| it.hides || it.fence.stays(&it.key, now, reached));
            self.forget_deletions();
            self.recent = self.len();
            self.shrink();
        }
        Fence {
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

    /// Returns the versions of own writes that no list and no watch has reported yet.
    pub(super) fn versions(&self) -> HashMap<ObjectKey, ResourceVersion> {
        let fenced = self.by_key.iter();
        let version = |(key, (_, fenced)): (&ObjectKey, &(Fence, FencedState))| {
            (key.clone(), fenced.version.clone())
        };
        fenced.map(version).collect()
    }

    /// Returns how many writes are remembered.
    pub(super) fn len(&self) -> usize {
        self.by_key.len() + self.deleted.len()
    }

    /// Returns how many writes may be remembered.
    ///
    /// That is twice as many (and at least 1,024) as were left when old ones were last removed: those of the last
    /// minute, and those since the lists in progress began.
    pub(super) fn most(&self) -> usize {
        // A deletion is remembered in both maps.
        self.clear_at() + 1
    }

    fn is_empty(&self) -> bool {
        self.by_key.is_empty() && self.deleted.is_empty()
    }

    /// Returns whether a state of a watch is older than an own write.
    ///
    /// A state that contains the write, or a later one, ends its fence.
    pub(super) fn outdates(&mut self, state: &ObjectMetadata) -> bool {
        // The usual case: nothing was written recently.
        if self.is_empty() {
            return false;
        }
        let deleted = self.deleted.get_mut(state.uid());
        if let Some(deleted) = deleted.filter(|it| it.is_fresh()) {
            deleted.hides = true;
            return true;
        }
        self.is_before(state)
    }

    /// Returns whether the answer to a write is older than the answer to another one.
    ///
    /// An answer does not end the fence of the previous write, as a watch event does: a write that changes nothing is
    /// answered with the present state, and a list in progress may be older than that state.
    ///
    /// An object whose creation was sent before a deletion of its name, and answered after it, does not exist any more:
    /// either it was created first and is the object that was deleted, or it replaced that object and was deleted
    /// itself. If the API server handled the two in the other order, the watch will report the object.
    pub(super) fn outdates_answer(&self, answer: &ObjectMetadata, sent: u64) -> bool {
        let deletion = self.deletions.get(answer.key());
        // Sent before the deletion, answered after it.
        if deletion.is_some_and(|number| sent < *number) {
            return true;
        }
        let deleted = self.deleted.get(answer.uid());
        deleted.is_some_and(Deletion::is_fresh) || self.order(answer) == Some(Ordering::Less)
    }

    /// Returns whether a listed state is older than an own write.
    ///
    /// `begun` is the number of the list.
    pub(super) fn outdates_listed(&mut self, begun: u64, state: &ObjectMetadata) -> bool {
        if self.is_empty() {
            return false;
        }
        let deleted = self.deleted.get(state.uid());
        if deleted.is_some_and(|it| it.fence.is_after(begun)) {
            return true;
        }
        // The list began after the deletion and contains the object, so it exists again, as after a restore from a
        // backup.
        self.deleted.remove(state.uid());
        let fenced = self.by_key.get(state.key());
        // The list began after the write was answered, so its state is at least as new, even if versions cannot be
        // compared.
        if fenced.is_some_and(|(fence, _)| !fence.is_after(begun)) {
            self.by_key.remove(state.key());
        }
        self.is_before(state)
    }

    /// Returns whether this process wrote the object after the given deletion event.
    ///
    /// Then the object left the selection and was selected again. A remembered deletion stays: this may be the earlier
    /// event of leaving the selection, and the watch may go on to report that the object was selected again before it
    /// was deleted.
    pub(super) fn outdates_end(&mut self, last: &ObjectMetadata) -> bool {
        if let Some(deleted) = self.deleted.get_mut(last.uid()) {
            deleted.hides = false;
        }
        !self.is_empty() && self.is_before(last)
    }

    fn is_before(&mut self, state: &ObjectMetadata) -> bool {
        // Without comparable versions, nothing shows that the state is older.
        match self.order(state) {
            Some(Ordering::Less) => true,
            Some(_) => {
                self.by_key.remove(state.key());
                false
            }
            None => false,
        }
    }

    /// Compares a state with the last own write of its key.
    fn order(&self, state: &ObjectMetadata) -> Option<Ordering> {
        let (_, fenced) = self.by_key.get(state.key())?;
        state.version().compare(&fenced.version)
    }

    /// Returns whether an object that a list did not contain was written after it.
    pub(super) fn is_after(
        &self,
        object: &CachedObject,
        begun: u64,
        version: &ResourceVersion,
    ) -> bool {
        let fenced = self.by_key.get(object.key());
        fenced.is_some_and(|(fence, fenced)| {
            // The list may be older than the write, the write was to this object and not to an earlier one of the name,
            // and it is newer than the list. Otherwise the object was deleted.
            fence.is_after(begun)
                && fenced.uid.as_ref() == Some(object.uid())
                && fenced.version.compare(version) == Some(Ordering::Greater)
        })
    }
}

impl Fence {
    /// Returns whether an earlier state may still arrive, in a watch or in a list.
    fn stays(&self, key: &ObjectKey, now: Instant, reached: &Reached) -> bool {
        // A list in progress may be older than the write, however long it takes.
        now - self.at < LATEST_EVENT || reached.is_listing(key, self.lists)
    }

    /// Returns whether the answer came after the list of a number had begun.
    ///
    /// Such a list may be older than the write.
    fn is_after(&self, begun: u64) -> bool {
        self.lists >= begun
    }
}

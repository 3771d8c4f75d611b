//! Own writes: what this process has written, until a list or the watch reports it.
//!
//! The answer to a write is in the store before the watch reports it. Until then older states may still arrive, from a
//! watch that lags behind or from a list that began before the write. This is the memory of the transition table
//! (`table`): it turns what arrives into an event of the table.

use std::time::Duration;

use hashbrown::HashMap;
use lariat_core::{ObjectKey, ObjectMetadata, ResourceVersion, Uid};
use tokio::time::Instant;

use super::object::CachedObject;
use super::reached::Reached;
use super::table::{Age, Event, State, View, Which};

/// How long after a deletion states of the object are dropped.
///
/// The time counts from the answer to the deletion, or from the opening of a watch: see [`OwnWrites::watch_opened`]. It
/// is limited because a server that was restored from a backup has the object again, and never reports its deletion.
const LATEST_EVENT: Duration = Duration::from_secs(60);

/// How long after a deletion the opening of a watch begins that time again.
///
/// A connection that drops packets is noticed after a minute, or by the silence of the watch.
const LATEST_WATCH: Duration = Duration::from_secs(600);

/// How many names are remembered before old writes are removed.
const CLEAR_AT: usize = 1024;

/// The writes of this process that neither a list nor a watch has reported yet.
#[derive(Debug, Default)]
pub(super) struct OwnWrites {
    names: HashMap<ObjectKey, Name>,
    /// How many lists have begun.
    lists: u64,
    /// How many names were left when old writes were last removed.
    recent: usize,
}

/// What this process has written to a name; never empty.
#[derive(Debug, Default)]
struct Name {
    /// The last write, unless it was settled; a name with one is in the state `Written` or `Removed`.
    write: Option<LastWrite>,
    /// The objects that this process has deleted, cached or not. A uid is never used again.
    deleted: Vec<Deletion>,
}

/// The last write to a name.
#[derive(Debug)]
struct LastWrite {
    /// The version in which it left the object, or the last one that is known before a deletion.
    version: ResourceVersion,
    answered: Answered,
}

/// An answered deletion.
#[derive(Debug)]
struct Deletion {
    uid: Uid,
    /// The cached version of the object. Later versions of the name are of successors.
    version: Option<ResourceVersion>,
    /// The number of the request, in the order of sending.
    sent: u64,
    answered: Answered,
    /// Whether a watch has reported a state of the object that was dropped, and no deletion since.
    ///
    /// Once the time is over, the object may exist: the server was restored, or has not deleted it yet.
    has_hidden: bool,
}

/// When a write was answered.
#[derive(Debug, Clone, Copy)]
struct Answered {
    at: Instant,
    /// When the minute began in which earlier states may arrive.
    since: Instant,
    /// How many lists had begun by then.
    lists: u64,
}

impl OwnWrites {
    /// Returns the number of a list that begins now; the first number is 1.
    pub(super) fn begin_listing(&mut self) -> u64 {
        self.lists += 1;
        self.lists
    }

    /// Ends the list of a number: forgets the writes that it contains.
    pub(super) fn end_listing(&mut self, begun: u64, covers: impl Fn(&ObjectKey) -> bool) {
        self.retain(|key, answered, _| answered.is_after(begun) || !covers(key));
    }

    /// Returns the state of a name.
    pub(super) fn state(&self, key: &ObjectKey, known: Option<&CachedObject>) -> State {
        State::of(known.is_some(), self.write(key).is_some())
    }

    /// Returns the event of a state that a watch reports.
    pub(super) fn watched(
        &mut self,
        object: &ObjectMetadata,
        known: Option<&CachedObject>,
    ) -> Event {
        let Some(deletion) = self.deletion(object) else {
            return Event::Watched(self.age(object, known));
        };
        if deletion.is_hiding() {
            deletion.has_hidden = true;
            return Event::Watched(Age::Hidden);
        }
        // The server has the object, so there was no deletion, or it was undone.
        self.forget_deletion(object);
        Event::Watched(self.age(object, known))
    }

    /// Returns the event of a deletion that a watch reports.
    ///
    /// A deletion by this process stays remembered: this may be the earlier event of leaving the selection, and the
    /// watch may go on to report that the object was selected again before it was deleted.
    pub(super) fn ended(&mut self, last: &ObjectMetadata, known: Option<&CachedObject>) -> Event {
        if let Some(deletion) = self.deletion(last) {
            deletion.has_hidden = false;
        }
        let which = match known {
            Some(known) if known.uid() == last.uid() => Which::Cached,
            _ => Which::Another,
        };
        Event::Ended(which, self.age(last, known))
    }

    /// Returns the event of a listed state; `begun` is the number of the list.
    pub(super) fn listed(
        &mut self,
        begun: u64,
        object: &ObjectMetadata,
        known: Option<&CachedObject>,
    ) -> Event {
        match self.deletion(object) {
            Some(deletion) if deletion.answered.is_after(begun) => {
                return Event::Listed(Age::Hidden, View::MayLack);
            }
            // The list began after the deletion, so the object exists again, as after a restore.
            Some(_) => self.forget_deletion(object),
            None => {}
        }
        let view = self.view(object.key(), begun);
        Event::Listed(self.age(object, known), view)
    }

    /// Returns the event of a cached object that a list at a version did not contain.
    pub(super) fn missing(
        &self,
        begun: u64,
        version: &ResourceVersion,
        object: &CachedObject,
    ) -> Event {
        // A list that has passed the write contains it, whenever the answer came. Whether it has is unknown if versions
        // are not numbers.
        Event::Missing(match Age::of(object.version(), version) {
            Age::Newer | Age::Unordered => self.view(object.key(), begun),
            _ => View::Contains,
        })
    }

    /// Returns the age of an answer, whose request has the number `sent`.
    ///
    /// A creation may be sent before a deletion of its name and answered after it. If its version is later than the
    /// cached version of the deleted object, the API server has created the object after the deletion. If the deleted
    /// object was not cached, the order is unknown, and the answer is left to the watch.
    pub(super) fn answered(
        &self,
        object: &ObjectMetadata,
        known: Option<&CachedObject>,
        reached: &Reached,
        sent: u64,
    ) -> Age {
        let name = self.names.get(object.key());
        let mut deleted = name.into_iter().flat_map(|name| &name.deleted);
        if deleted.any(|it| it.hides_answer(object, sent)) {
            Age::Hidden
        } else if known.is_none() && reached.includes(object) {
            // The watch has passed the answer and there is no object: it was deleted before the answer came.
            Age::Older
        } else {
            self.age(object, known)
        }
    }

    /// Remembers the last write of a name, with the version in which it left the object.
    pub(super) fn remember(
        &mut self,
        key: &ObjectKey,
        version: &ResourceVersion,
        reached: &Reached,
    ) {
        let answered = self.answered_now(reached);
        let version = version.clone();
        let name = self.names.entry(key.clone()).or_default();
        name.write = Some(LastWrite { version, answered });
    }

    /// Forgets the last write of a name: it was reported.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        if let Some(name) = self.names.get_mut(key) {
            name.write = None;
            self.prune(key);
        }
    }

    /// Remembers that an object was deleted, cached or not.
    ///
    /// The answer does not contain the version of the deletion. So if this process never saw the object, neither in a
    /// cache nor in an answer, earlier objects of its name may appear until the watch reaches the deletion.
    /// `version` is the one in which it was cached.
    pub(super) fn deleted(
        &mut self,
        key: &ObjectKey,
        uid: &Uid,
        version: Option<&ResourceVersion>,
        sent: u64,
        reached: &Reached,
    ) {
        let deletion = Deletion {
            uid: uid.clone(),
            version: version.cloned(),
            sent,
            answered: self.answered_now(reached),
            has_hidden: false,
        };
        let name = self.names.entry(key.clone()).or_default();
        name.deleted.retain(|it| it.uid != *uid);
        name.deleted.push(deletion);
    }

    /// Begins the time of recent deletions again, as the previous watch may not have reported them.
    ///
    /// A new watch first reports what the previous one did not, which must not undo a deletion that was answered
    /// meanwhile. Returns whether a list is needed, as [`must_list`](Self::must_list) does.
    #[must_use]
    pub(super) fn watch_opened(&mut self, covers: impl Fn(&ObjectKey) -> bool) -> bool {
        let now = Instant::now();
        let covered = self.names.iter_mut().filter(|(key, _)| covers(key));
        for deletion in covered.flat_map(|(_, name)| &mut name.deleted) {
            let must_list = deletion.has_hidden && !deletion.is_hiding();
            if !must_list && now - deletion.answered.at < LATEST_WATCH {
                deletion.answered.since = now;
            }
        }
        self.must_list(covers)
    }

    /// Returns whether an object may exist whose states were dropped since it was deleted.
    ///
    /// Only a list shows it.
    pub(super) fn must_list(&self, covers: impl Fn(&ObjectKey) -> bool) -> bool {
        let covered = self.names.iter().filter(|(key, _)| covers(key));
        let mut deleted = covered.flat_map(|(_, name)| &name.deleted);
        deleted.any(|it| it.has_hidden && !it.is_hiding())
    }

    /// Returns whether an object may exist whose states are dropped since it was deleted.
    pub(super) fn hides(&self) -> bool {
        let mut deleted = self.names.values().flat_map(|name| &name.deleted);
        deleted.any(|it| it.has_hidden)
    }

    /// Returns the versions of own writes that no list and no watch has reported yet.
    pub(super) fn versions(&self) -> HashMap<ObjectKey, ResourceVersion> {
        let version = |(key, name): (&ObjectKey, &Name)| {
            let write = name.write.as_ref()?;
            Some((key.clone(), write.version.clone()))
        };
        self.names.iter().filter_map(version).collect()
    }

    /// Returns how many names are remembered.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns how many names may be remembered.
    ///
    /// That is twice as many (and at least 1,024) as were left when old writes were last removed: those of the last
    /// minute, and those since the lists in progress began.
    pub(super) fn most(&self) -> usize {
        CLEAR_AT.max(2 * self.recent)
    }

    /// Returns the present moment, after removing old writes.
    fn answered_now(&mut self, reached: &Reached) -> Answered {
        let now = Instant::now();
        // After each doubling, so that a program that writes much does not search all writes each time.
        if self.len() >= self.most() {
            // Removes writes that no list and no watch will show, such as writes of objects that were never selected.
            self.retain(|key, answered, has_hidden| {
                has_hidden || answered.stays(key, now, reached)
            });
            self.recent = self.len();
        }
        Answered {
            at: now,
            since: now,
            lists: self.lists,
        }
    }

    /// Compares a state with the cached one, or else with the last write.
    fn age(&self, object: &ObjectMetadata, known: Option<&CachedObject>) -> Age {
        let Some(known) = known else {
            let age = |write: &LastWrite| Age::of(object.version(), &write.version);
            return self.write(object.key()).map_or(Age::Newer, age);
        };
        match Age::of(object.version(), known.version()) {
            // As after a restore: in one history, no two objects have the same version.
            Age::Same if object.uid() != known.uid() => Age::Unordered,
            age => age,
        }
    }

    /// Returns what the list of a number shows of the last write of a name.
    fn view(&self, key: &ObjectKey, begun: u64) -> View {
        match self.write(key) {
            Some(write) if write.answered.is_after(begun) => View::MayLack,
            _ => View::Contains,
        }
    }

    fn write(&self, key: &ObjectKey) -> Option<&LastWrite> {
        self.names.get(key)?.write.as_ref()
    }

    fn deletion(&mut self, object: &ObjectMetadata) -> Option<&mut Deletion> {
        let mut deleted = self.names.get_mut(object.key())?.deleted.iter_mut();
        deleted.find(|it| it.uid == *object.uid())
    }

    fn forget_deletion(&mut self, object: &ObjectMetadata) {
        if let Some(name) = self.names.get_mut(object.key()) {
            name.deleted.retain(|it| it.uid != *object.uid());
            self.prune(object.key());
        }
    }

    /// Removes a name of which nothing is remembered.
    fn prune(&mut self, key: &ObjectKey) {
        if self.names.get(key).is_some_and(Name::is_empty) {
            self.names.remove(key);
        }
    }

    /// Keeps some writes; a deletion has hidden states or not.
    fn retain(&mut self, stays: impl Fn(&ObjectKey, &Answered, bool) -> bool) {
        self.names.retain(|key, name| {
            name.write.take_if(|it| !stays(key, &it.answered, false));
            name.deleted
                .retain(|it| stays(key, &it.answered, it.has_hidden));
            !name.is_empty()
        });
        if self.names.capacity() > 8 * self.len().max(CLEAR_AT) {
            self.names.shrink_to(CLEAR_AT);
        }
    }
}

impl Name {
    fn is_empty(&self) -> bool {
        self.write.is_none() && self.deleted.is_empty()
    }
}

impl Deletion {
    /// Returns whether the answer to request number `sent` is dropped.
    fn hides_answer(&self, object: &ObjectMetadata, sent: u64) -> bool {
        if self.uid == *object.uid() {
            return sent < self.sent || self.is_hiding();
        }
        let age = |version| Age::of(object.version(), version);
        let is_successor = self.version.as_ref().map(age) == Some(Age::Newer);
        sent < self.sent && !is_successor
    }

    /// Returns whether states of the object are dropped.
    fn is_hiding(&self) -> bool {
        self.answered.since.elapsed() < LATEST_EVENT
    }
}

impl Answered {
    /// Returns whether an earlier state may still arrive, in a watch or in a list.
    fn stays(&self, key: &ObjectKey, now: Instant, reached: &Reached) -> bool {
        // A list in progress may be older than the write, however long it takes.
        now - self.since < LATEST_EVENT || reached.is_listing(key, self.lists)
    }

    /// Returns whether the answer came after the list of a number had begun.
    ///
    /// Such a list may be older than the write.
    fn is_after(&self, begun: u64) -> bool {
        self.lists >= begun
    }
}

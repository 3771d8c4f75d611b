//! The writer: applies watch events and own writes to a store.
//!
//! All writes go through [`Writing`], which holds the lock of writers. A state that arrives is applied unless the store
//! has a later one. Versions of a kind are compared as numbers, across objects: a deleted object and its successor of
//! the same name have different uids, and the versions of the successor are greater. If two versions cannot be
//! compared, the state that arrived last wins, because a watch sends states in order. See [`Listing`](super::Listing)
//! for lists.

use std::cmp::Ordering;
use std::sync::Arc;

use hashbrown::HashMap;
use lariat_core::{ObjectKey, ObjectMetadata, RawObject, ResourceVersion, Uid};
use parking_lot::{Mutex, MutexGuard};

use super::body::Codec;
use super::change::{Change, Content, Delta};
use super::index::{IndexFn, Values, values};
use super::object::CachedObject;
use super::objects::{CHUNK, Edit, Indexing, Objects};
use super::own::OwnWrites;
use super::reached::Reached;
use crate::content_filter::KindFilter;
use crate::selection::Selection;
use crate::transform::metadata_of;

/// The state that only the writer needs.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) codec: Codec,
    pub(super) own: OwnWrites,
    pub(super) reached: Reached,
    /// The selection for which `reached` was recorded.
    selection: Option<Selection>,
    /// The functions of the custom indexes, in the order of the indexes.
    pub(super) functions: Vec<(Arc<str>, Arc<IndexFn>)>,
    /// Changes that are in the table, and not in the list state yet.
    pending: Vec<Edit>,
}

impl Writer {
    /// Returns how many own writes are remembered, and the upper bound.
    pub(super) fn own_writes(&self) -> (usize, usize) {
        (self.own.len(), self.own.most())
    }

    /// Returns the versions of own writes that no list and no watch has reported yet.
    pub(super) fn unconfirmed(&self) -> HashMap<ObjectKey, ResourceVersion> {
        self.own.versions()
    }

    /// Returns how many collections are read.
    pub(super) fn collections(&self) -> usize {
        self.reached.len()
    }

    /// Returns how many namespaces are read one by one, if that is known.
    pub(super) fn namespaces(&self) -> Option<usize> {
        let selection = self.selection.as_ref();
        selection.map(|selection| selection.namespaces().len())
    }

    /// Records that a watch of a namespace, or of all, was opened.
    ///
    /// Returns whether a list is needed instead, because an object may exist whose states were dropped.
    #[must_use]
    pub(super) fn watch_opened(&mut self, namespace: Option<&str>) -> bool {
        let last_event = self.reached.last_event(namespace);
        let covers = covers(namespace);
        self.own.watch_opened(last_event, &self.reached, covers)
    }

    /// Records that the watch of a namespace, or of all, received a bookmark.
    ///
    /// Returns whether a list is needed, as [`watch_opened`](Self::watch_opened) does.
    #[must_use]
    pub(super) fn watch_progressed(&mut self, namespace: Option<&str>) -> bool {
        self.reached.progressed(namespace);
        self.own.hides(covers(namespace))
    }
}

fn covers(namespace: Option<&str>) -> impl Fn(&ObjectKey) -> bool {
    move |key| namespace.is_none_or(|it| key.namespace() == Some(it))
}

/// The objects of a kind, which change only through its writer.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) objects: Objects,
    /// Locked during a write.
    pub(super) writer: Mutex<Writer>,
    /// Selects the objects whose content is kept; `None` keeps all.
    pub(super) filter: Option<KindFilter>,
}

impl Kept {
    /// Begins a write, once the previous one has ended.
    pub(super) fn writing(&self) -> Writing<'_> {
        Writing {
            store: self,
            writer: self.writer.lock(),
            changes: Vec::new(),
        }
    }

    /// Returns whether the content of an object is kept.
    ///
    /// `content` is how much of the kind is read.
    pub(super) fn wants_content(&self, content: Content, object: &ObjectMetadata) -> bool {
        content == Content::Whole
            && self
                .filter
                .as_ref()
                .is_none_or(|filter| filter.selects(object))
    }

    /// Returns whether a state that was read can be compared with the cached one.
    pub(super) fn is_comparable(&self, known: &CachedObject, content: Content) -> bool {
        let is_whole = content == Content::Whole;
        // With a filter, metadata is cut out of the same whole objects. Without one, metadata was read separately,
        // before an upgrade, and a transform may change it from then on.
        known.has_content() == is_whole || (is_whole && self.filter.as_ref().is_some())
    }
}

/// An exclusive write: holds the lock of writers, and collects the changes.
pub(super) struct Writing<'a> {
    pub(super) store: &'a Kept,
    pub(super) writer: MutexGuard<'a, Writer>,
    changes: Vec<Change>,
}

impl Writing<'_> {
    /// Applies the deltas of a watch, in order.
    pub(super) fn apply(mut self, deltas: Vec<Delta>, content: Content) -> Vec<Change> {
        self.changes.reserve(deltas.len());
        let writer = &mut *self.writer;
        // All deltas of a batch are of one collection, so the first key finds it.
        if let Some(first) = deltas.first().filter(|_| writer.own.has_deleted()) {
            writer.reached.event_arrived(first.key());
        }
        for delta in deltas {
            match delta {
                Delta::Present(object) => self.put_watched(object, content),
                Delta::Deleted(last) => self.remove_watched(last, content),
            }
        }
        self.finish()
    }

    /// Applies the answer to a write of this process, before the watch reports it.
    pub(super) fn wrote(mut self, object: RawObject, content: Content, sent: u64) -> Vec<Change> {
        let known = self.known(object.key().as_str());
        // If versions cannot be compared, the watch may be ahead of this answer, and will show the write in any case.
        let unknowable = |known: &CachedObject| object.version().compare(known.version()).is_none();
        // The watch has passed the answer's version and there is no object: it was deleted before the answer came.
        let has_ended = known.is_none() && self.writer.reached.includes(&object);
        if has_ended || known.as_deref().is_some_and(unknowable) {
            return Vec::new();
        }
        // An answer may also be older than a later write of this process, or than a deletion of the name.
        if !self.writer.own.outdates_answer(&object, sent) {
            self.put_newer(object, content);
        }
        // If the watch was ahead, nothing was changed, and there is nothing to remember.
        let writer = &mut *self.writer;
        for change in &self.changes {
            if let Change::Added { object, .. } | Change::Updated { new: object, .. } = change {
                writer.own.wrote(object, &writer.reached);
            }
        }
        self.finish()
    }

    /// Applies the answer to a write after which an object is no longer selected.
    pub(super) fn left(mut self, object: &ObjectMetadata) -> Vec<Change> {
        let known = self.known(object.key().as_str());
        let writer = &mut *self.writer;
        // The watch may be ahead of the answer, and the object selected again.
        let is_behind = match &known {
            Some(known) => !is_at_most(known.version(), object.version()),
            None => writer.reached.includes(object),
        };
        // An older answer must not remove a newer state.
        if is_behind || writer.own.outdates(object) {
            return Vec::new();
        }
        writer.own.left(object, &writer.reached);
        self.remove_known(known)
    }

    /// Applies a deletion by this process, before the watch reports it.
    pub(super) fn deleted(
        mut self,
        key: &ObjectKey,
        uid: &Uid,
        before: Option<&Uid>,
        sent: u64,
    ) -> Vec<Change> {
        let known = self.known(key.as_str());
        let writer = &mut *self.writer;
        writer.own.deletion_sent(key, sent);
        // Even if the object is not cached: a list in progress or the watch may still report it.
        writer.own.deleted(key, uid, &writer.reached);
        // An object that appeared after the deletion was sent may be the successor and stays; one from before is
        // deleted.
        let is_over = |known: &Arc<CachedObject>| known.uid() == uid || before == Some(known.uid());
        let known = known.filter(is_over);
        if let Some(known) = &known {
            // Two fences. By uid, against late states of this object; by version, against late states of earlier
            // objects of the same name, whose uids are unknown here.
            writer.own.deleted(key, known.uid(), &writer.reached);
            writer.own.left(known, &writer.reached);
        }
        self.remove_known(known)
    }

    /// Removes every object outside a selection.
    pub(super) fn restrict(mut self, selection: &Selection) -> Vec<Change> {
        let before = self.writer.selection.replace(selection.clone());
        if before.is_some_and(|before| before != *selection) {
            // The reached version was complete for the previous selection only.
            self.writer.reached.forget();
        }
        self.remove_where(|_, object| !selection.may_match(object));
        self.finish()
    }

    /// Makes the write visible to readers of lists, and returns its changes.
    pub(super) fn finish(mut self) -> Vec<Change> {
        self.flush();
        self.changes
    }

    /// Returns an object, as this write has left it so far.
    pub(super) fn known(&self, key: &str) -> Option<Arc<CachedObject>> {
        self.store.objects.get(key)
    }

    fn put_watched(&mut self, object: RawObject, content: Content) {
        if !self.writer.own.outdates(&object) {
            self.put_newer(object, content);
        }
    }

    /// Applies a state, unless a later one is cached.
    fn put_newer(&mut self, object: RawObject, content: Content) {
        let known = self.known(object.key().as_str());
        let stale = known.as_ref().is_some_and(|known| is_stale(known, &object));
        // An answer may have been read as metadata just before content was requested.
        let completes = known.as_ref().is_some_and(|known| {
            !known.has_content()
                && is_same_state(known, &object)
                && self.store.wants_content(content, &object)
        });
        // The same version may arrive twice: first with metadata, then with content.
        if stale && !completes {
            return;
        }
        let new = self.arrived(object, content);
        // A list in progress may have listed the previous state. Without its mark, the end of the list would delete the
        // object.
        if let Some(known) = &known {
            new.mark_listed(known.listed_by());
        }
        // Content alone is no change: subscribers have received this version.
        if !completes {
            self.publish(known, &new, false);
        }
        self.put_new(new);
    }

    /// Creates an object from a state that has just arrived.
    ///
    /// It is packed later, if at all.
    fn arrived(&mut self, object: RawObject, content: Content) -> Arc<CachedObject> {
        let (object, partial) = self.kept(object, content);
        let bytes = object.json().len();
        let object = CachedObject::plain(object, partial, self.writer.codec.retains());
        self.writer.codec.pack_later(&object, bytes);
        Arc::new(object)
    }

    /// Creates an object from a listed state, in the form that is chosen for the kind.
    pub(super) fn listed(&self, object: RawObject, content: Content) -> Arc<CachedObject> {
        let (object, partial) = self.kept(object, content);
        Arc::new(CachedObject::packed(object, partial, &self.writer.codec))
    }

    /// Returns the part of an object to store, and whether that is metadata only.
    fn kept(&self, object: RawObject, content: Content) -> (RawObject, bool) {
        let partial = content == Content::MetadataOnly;
        // The form of the kind excludes content now, but the watch still reports it for a moment.
        let is_kept =
            || self.writer.codec.keeps_content() && self.store.wants_content(content, &object);
        if partial || is_kept() {
            return (object, partial);
        }
        match metadata_of(object.json()) {
            Some(json) => (object.with_json(json), true),
            None => (object, true),
        }
    }

    /// Records the change from the cached state of an object to a new one.
    pub(super) fn publish(
        &mut self,
        known: Option<Arc<CachedObject>>,
        new: &Arc<CachedObject>,
        initial: bool,
    ) {
        let object = Arc::clone(new);
        let change = match known {
            None => Change::Added { object, initial },
            Some(old) if old.uid() == new.uid() => Change::Updated { old, new: object },
            // Another object of the same name: the predecessor was deleted without an event, as between two watches.
            // Subscribers receive both changes, as if the deletion had been reported.
            Some(last) => {
                self.changes.push(Change::Deleted { last });
                let initial = false;
                Change::Added { object, initial }
            }
        };
        self.changes.push(change);
    }

    /// Inserts a state that is new for the custom indexes.
    pub(super) fn put_new(&mut self, new: Arc<CachedObject>) {
        let functions = self.writer.functions.iter();
        let found_under: Values = functions
            .map(|(name, function)| values(name, &**function, &new))
            .collect();
        self.put(new, Indexing::Replace(found_under));
    }

    /// Removes an object whose deletion a watch reported.
    fn remove_watched(&mut self, last: RawObject, content: Content) {
        self.writer.reached.ended(&last);
        let known = self.known(last.key().as_str());
        let is_selected_again = self.writer.own.outdates_end(&last);
        // A deletion that is reported a second time must not remove the successor of the object.
        if is_selected_again || known.is_none_or(|known| known.uid() != last.uid()) {
            return;
        }
        // The last state is published but not stored, so it is not packed.
        let (last, partial) = self.kept(last, content);
        let last = CachedObject::plain(last, partial, self.writer.codec.retains());
        self.remove(Arc::new(last));
    }

    fn remove_known(mut self, known: Option<Arc<CachedObject>>) -> Vec<Change> {
        if let Some(last) = known {
            self.remove(last);
        }
        self.finish()
    }

    /// Removes objects, which are searched in a snapshot so that readers need not wait.
    pub(super) fn remove_where(&mut self, is_removed: impl Fn(&Writer, &CachedObject) -> bool) {
        let snapshot = self.store.objects.tree();
        let all = snapshot.iter();
        let removed: Vec<_> = all
            .filter(|object| is_removed(&self.writer, object))
            .cloned()
            .collect();
        drop(snapshot);
        self.changes.reserve(removed.len());
        for last in removed {
            self.remove(last);
        }
    }

    /// Removes an object, and records its last state as a deletion.
    fn remove(&mut self, last: Arc<CachedObject>) {
        let edit = self.store.objects.remove(last.key().as_str());
        self.add(edit);
        self.changes.push(Change::Deleted { last });
    }

    /// Inserts an object or replaces its earlier state.
    pub(super) fn put(&mut self, new: Arc<CachedObject>, indexing: Indexing) {
        let edit = self.store.objects.put(new, indexing);
        self.add(edit);
    }

    fn add(&mut self, edit: Edit) {
        self.writer.pending.push(edit);
        // Bounds how long readers of lists wait for one write, and how long they see an older state.
        if self.writer.pending.len() >= CHUNK {
            self.flush();
        }
    }

    /// Applies pending changes to the list state.
    pub(super) fn flush(&mut self) {
        if !self.writer.pending.is_empty() {
            self.store.objects.complete(&mut self.writer.pending);
        }
    }
}

/// Returns whether two states are the same; states without a version never are.
pub(super) fn is_same_state(known: &CachedObject, object: &ObjectMetadata) -> bool {
    !known.version().is_empty()
        && known.uid() == object.uid()
        && known.version() == object.version()
}

/// Returns whether a state is not newer than the cached one.
///
/// A watch reports known states again after a reconnection, and states of an earlier object of the same name. A state
/// is not stale if the versions cannot be compared.
fn is_stale(known: &ObjectMetadata, object: &ObjectMetadata) -> bool {
    !known.version().is_empty() && is_at_most(object.version(), known.version())
}

fn is_at_most(version: &ResourceVersion, other: &ResourceVersion) -> bool {
    matches!(
        version.compare(other),
        Some(Ordering::Less | Ordering::Equal)
    )
}

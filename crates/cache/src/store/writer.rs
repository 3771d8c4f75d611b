//! The writer: applies watch events and own writes to a store.
//!
//! All writes go through [`Writing`], which holds the lock of writers. What an event changes is decided by the
//! transition table ([`table`]); see [`Listing`](super::Listing) for lists.

use std::sync::Arc;

use lariat_core::{ObjectKey, ObjectMetadata, RawObject, Uid};
use parking_lot::{Mutex, MutexGuard};

use super::body::Codec;
use super::change::{Change, Content, Delta};
use super::index::{IndexFn, Values, values};
use super::object::CachedObject;
use super::objects::{CHUNK, Edit, Indexing, Objects};
use super::own::OwnWrites;
use super::reached::Reached;
use super::table::{self, Age, Effect, Event, View, Which};
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
        self.own.watch_opened(covers(namespace))
    }

    /// Returns whether a list of a namespace, or of all, is needed, as [`watch_opened`](Self::watch_opened) does.
    #[must_use]
    pub(super) fn must_list(&self, namespace: Option<&str>) -> bool {
        self.own.must_list(covers(namespace))
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
        let Writer { own, reached, .. } = &*self.writer;
        let age = own.answered(&object, known.as_deref(), reached, sent);
        self.put_arrived(Event::Written(age), known, object, content);
        self.finish()
    }

    /// Applies the answer to a write after which an object is no longer selected.
    pub(super) fn left(mut self, object: &ObjectMetadata) -> Vec<Change> {
        let known = self.known(object.key().as_str());
        let Writer { own, reached, .. } = &*self.writer;
        // The order of requests does not matter: the object is not shown in either case.
        let age = own.answered(object, known.as_deref(), reached, u64::MAX);
        self.remove_by(Event::Left(age), object, known);
        self.finish()
    }

    /// Applies a deletion by this process, before the watch reports it.
    pub(super) fn deleted(
        mut self,
        key: &ObjectKey,
        uid: &Uid,
        before: Option<&CachedObject>,
        sent: u64,
    ) -> Vec<Change> {
        let known = self.known(key.as_str());
        let Writer { own, reached, .. } = &mut *self.writer;
        let is_it = |cached: &&CachedObject| cached.uid() == uid;
        let cached = known
            .as_deref()
            .filter(is_it)
            .or_else(|| before.filter(is_it));
        let version = cached.map(|cached| cached.version());
        // Even if the object is not cached: a list in progress or the watch may still report it.
        own.deleted(key, uid, version, sent, reached);
        // An object that appeared after the deletion was sent may be the successor and stays; one from before is
        // deleted.
        let is_over = |known: &&Arc<CachedObject>| {
            known.uid() == uid || before.is_some_and(|before| before.uid() == known.uid())
        };
        if let Some(over) = known.as_ref().filter(is_over).cloned() {
            // By uid, against late states of this object; the table goes by version, against late states of earlier
            // objects of the name, whose uids are unknown here.
            own.deleted(key, over.uid(), Some(over.version()), sent, reached);
            self.remove_by(Event::Deleted(Which::Cached), &over, known);
        }
        self.finish()
    }

    /// Removes every object outside a selection.
    pub(super) fn restrict(mut self, selection: &Selection) -> Vec<Change> {
        let before = self.writer.selection.replace(selection.clone());
        if before.is_some_and(|before| before != *selection) {
            // The reached version was complete for the previous selection only.
            self.writer.reached.forget();
        }
        self.remove_where(|_, object| (!selection.may_match(object)).then_some(Event::Deselected));
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

    /// Makes the transition that an event leads to; returns what is to be done with the cache.
    ///
    /// `object` has the name, and the version in which an answered write has left the object.
    pub(super) fn step(
        &mut self,
        event: Event,
        object: &ObjectMetadata,
        known: Option<&CachedObject>,
    ) -> Effect {
        let Writer { own, reached, .. } = &mut *self.writer;
        let (key, version) = (object.key(), object.version());
        let state = own.state(key, known);
        let (next, effect) = table::next(state, event);
        if effect == Effect::Ignored {
            return effect;
        }
        if event.is_answer() {
            own.remember(key, version, reached);
        } else if state.is_remembered() && !next.is_remembered() {
            own.forget(key);
        }
        effect
    }

    /// Notes that a list contains an object in its cached state.
    pub(super) fn confirm(&mut self, known: &CachedObject) {
        self.step(Event::Listed(Age::Same, View::Contains), known, Some(known));
    }

    fn put_watched(&mut self, object: RawObject, content: Content) {
        let known = self.known(object.key().as_str());
        let event = self.writer.own.watched(&object, known.as_deref());
        self.put_arrived(event, known, object, content);
    }

    /// Applies a state of a watch or an answer, if the table says so.
    fn put_arrived(
        &mut self,
        event: Event,
        known: Option<Arc<CachedObject>>,
        object: RawObject,
        content: Content,
    ) {
        let is_put = self.step(event, &object, known.as_deref()) == Effect::Put;
        // The same version may arrive twice: first with metadata, as an answer that was read just before content was
        // requested, then with content.
        let completes = event.is_same()
            && known.as_ref().is_some_and(|known| !known.has_content())
            && self.store.wants_content(content, &object);
        if !is_put && !completes {
            return;
        }
        let new = self.arrived(object, content);
        // A list in progress may have listed the previous state. Without its mark, the end of the list would delete the
        // object.
        if let Some(known) = &known {
            new.mark_listed(known.listed_by());
        }
        // Content alone is no change: subscribers have received this version.
        if is_put {
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
        let event = self.writer.own.ended(&last, known.as_deref());
        if self.step(event, &last, known.as_deref()) == Effect::Removed {
            // The last state is published but not stored, so it is not packed.
            let (last, partial) = self.kept(last, content);
            let last = CachedObject::plain(last, partial, self.writer.codec.retains());
            self.remove(Arc::new(last));
        }
    }

    /// Removes the cached object, if the table says so.
    fn remove_by(
        &mut self,
        event: Event,
        object: &ObjectMetadata,
        known: Option<Arc<CachedObject>>,
    ) {
        let effect = self.step(event, object, known.as_deref());
        if let Some(last) = known.filter(|_| effect == Effect::Removed) {
            self.remove(last);
        }
    }

    /// Removes the objects for which there is such an event.
    ///
    /// They are searched in a snapshot, so that readers need not wait.
    pub(super) fn remove_where(&mut self, event: impl Fn(&Writer, &CachedObject) -> Option<Event>) {
        let snapshot = self.store.objects.tree();
        let of_object = |object: &Arc<CachedObject>| {
            let event = event(&self.writer, object)?;
            Some((event, Arc::clone(object)))
        };
        let events: Vec<_> = snapshot.iter().filter_map(of_object).collect();
        drop(snapshot);
        self.changes.reserve(events.len());
        for (event, last) in events {
            self.remove_by(event, &Arc::clone(&last), Some(last));
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

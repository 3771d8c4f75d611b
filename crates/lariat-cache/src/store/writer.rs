//! Writing: how a store takes in lists, watches and writes of this process.

use std::cmp::Ordering;
use std::sync::Arc;

use hashbrown::HashMap;
use lariat_core::{ObjectKey, ObjectMetadata, RawObject, ResourceVersion, Scan, Uid};

use super::Store;
use super::body::Codec;
use super::change::Change;
use super::delta::{Content, Delta, Listing};
use super::index::{IndexFn, Values, values};
use super::object::CachedObject;
use super::own::OwnWrites;
use super::reached::Reached;
use super::young::Young;
use crate::selection::Selection;
use crate::transform::metadata_of;

/// How many objects are changed while readers of lists wait.
pub(super) const CHUNK: usize = 64;

/// What only the one who writes needs.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) codec: Codec,
    pub(super) young: Young,
    own: OwnWrites,
    reached: Reached,
    /// What `reached` is about.
    selection: Option<Selection>,
    /// The functions of the custom indexes, in their order.
    pub(super) functions: Vec<(Arc<str>, Arc<IndexFn>)>,
    /// Changes that readers by key see already, and readers of lists do not yet.
    pending: Vec<Edit>,
}

impl Writer {
    /// Returns how many writes of this process are remembered, and how many are at most.
    pub(super) fn own_writes(&self) -> (usize, usize) {
        (self.own.len(), self.own.most())
    }

    /// Returns the versions of own writes that no list and no watch has shown since.
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

    fn fences(&mut self) -> (&mut OwnWrites, &Reached) {
        (&mut self.own, &self.reached)
    }
}

/// A change of the order and the indexes.
pub(super) enum Edit {
    Put(Arc<CachedObject>, Option<Values>),
    /// The same state with its content or without, which indexes do not find out.
    Replace(Arc<CachedObject>),
    Remove(ObjectKey),
}

impl Store {
    /// Begins a list, of a namespace or of all; one that is given up is simply never ended.
    ///
    /// It is begun before it is requested: what this process wrote before is in it then.
    pub(crate) fn begin_listing(
        &self,
        initial: bool,
        content: Content,
        namespace: Option<Arc<str>>,
    ) -> Listing {
        let mut writer = self.writer.lock();
        let listing = Listing {
            namespace,
            ..Listing::new(writer.own.begin_listing(), initial, content)
        };
        writer.reached.begin(&listing);
        writer.codec.expect(content == Content::MetadataOnly);
        listing
    }

    /// Notes that no reflector is left: lists that were begun and not ended are given up.
    pub(crate) fn give_up_lists(&self) {
        self.writer.lock().reached.give_up();
    }

    /// Returns whether a list shows nothing new about an object, and notes that it was mentioned.
    pub(crate) fn is_listed(&self, listing: &Listing, scan: &Scan<'_>, key: &str) -> bool {
        if listing.compares {
            return false;
        }
        // Repacking replaces objects under this lock, and a mark on one that was replaced would be lost.
        let _writer = self.writer.lock();
        let known = self.table.get(key).filter(|known| {
            scan.is_state(known.uid(), known.version())
                && known.has_content() == self.wants_content(listing.content, known)
        });
        known.inspect(|known| known.see(listing.mark)).is_some()
    }

    /// Takes in a page of a list; what has the version that is known already stays as it is, unless the list compares
    /// contents and finds another.
    pub(crate) fn list_page(&self, listing: &Listing, page: Vec<RawObject>) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut writer = self.writer.lock();
        for object in page {
            self.put_listed(&mut writer, listing, object, &mut changes);
        }
        self.flush(&mut writer);
        changes
    }

    /// Notes that a list mentions an object in a state that cannot be read: the last one that could be
    /// stays.
    pub(crate) fn list_unreadable(&self, listing: &Listing, key: &ObjectKey) {
        if let Some(known) = self.table.get(key.as_str()) {
            known.see(listing.mark);
        }
    }

    /// Ends a list of a version: what it did not mention is gone.
    pub(crate) fn end_listing(&self, listing: &Listing, version: &ResourceVersion) -> Vec<Change> {
        let mut writer = self.writer.lock();
        let is_gone = |writer: &Writer, object: &CachedObject| {
            object.seen_by() != listing.mark
                && listing.covers(object.key())
                && !writer.own.is_after(object, (listing, version))
        };
        let changes = self.remove_where(&mut writer, is_gone);
        writer.own.end_listing(listing);
        writer.reached.end(listing, version);
        changes
    }

    /// Records that a watch of a namespace, or of all, is opened.
    ///
    /// It may report what the one before it did not.
    pub(crate) fn watch_opened(&self, namespace: Option<&str>) {
        let mut writer = self.writer.lock();
        let last_event = writer.reached.last_event(namespace);
        let covers = |key: &ObjectKey| namespace.is_none_or(|it| key.namespace() == Some(it));
        let (own, reached) = writer.fences();
        own.watch_opened(last_event, reached, covers);
    }

    /// Records that the watch of a namespace, or of all, reported its progress.
    pub(crate) fn watch_progressed(&self, namespace: Option<&str>) {
        self.writer.lock().reached.progressed(namespace);
    }

    /// Removes every object that a selection leaves out.
    pub(crate) fn restrict(&self, selection: &Selection) -> Vec<Change> {
        let mut writer = self.writer.lock();
        let before = writer.selection.replace(selection.clone());
        if before.is_some_and(|before| before != *selection) {
            writer.reached.forget();
        }
        self.remove_where(&mut writer, |_, object| !selection.may_hold(object))
    }

    /// Removes every object.
    pub(crate) fn clear(&self) -> Vec<Change> {
        let mut writer = self.writer.lock();
        self.remove_where(&mut writer, |_, _| true)
    }

    /// Removes objects. They are looked for in a snapshot, so that readers need not wait.
    fn remove_where(
        &self,
        writer: &mut Writer,
        is_gone: impl Fn(&Writer, &CachedObject) -> bool,
    ) -> Vec<Change> {
        let snapshot = self.tree();
        let gone: Vec<_> = snapshot
            .iter()
            .filter(|object| is_gone(writer, object))
            .cloned()
            .collect();
        drop(snapshot);
        let mut changes = Vec::with_capacity(gone.len());
        for last in gone {
            self.take_out(writer, last.key());
            changes.push(Change::Deleted { last });
        }
        self.flush(writer);
        changes
    }

    /// Takes in what a watch told, in its order.
    pub(crate) fn apply(&self, deltas: Vec<Delta>, content: Content) -> Vec<Change> {
        let mut changes = Vec::with_capacity(deltas.len());
        let mut writer = self.writer.lock();
        if let Some(first) = deltas.first().filter(|_| writer.own.has_deleted()) {
            writer.reached.event_arrived(first.key());
        }
        for delta in deltas {
            match delta {
                Delta::Present(object) => {
                    self.put_watched(&mut writer, object, content, &mut changes)
                }
                Delta::Gone(last) => {
                    writer.reached.ended(&last);
                    self.remove(&mut writer, last, content, &mut changes);
                }
            }
        }
        self.flush(&mut writer);
        changes
    }

    /// Takes in the answer to a write of this process, ahead of the watch.
    ///
    /// `sent` is the number of the write, in the order in which they were sent.
    pub(crate) fn wrote(&self, object: RawObject, content: Content, sent: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut writer = self.writer.lock();
        let known = self.table.get(object.key().as_str());
        // Where versions do not compare, the watch may be ahead of this answer.
        let unknowable = |known: &CachedObject| object.version().compare(known.version()).is_none();
        // It may have ended before the answer came.
        let has_ended = known.is_none() && writer.reached.includes(&object);
        if has_ended || known.as_deref().is_some_and(unknowable) {
            return changes;
        }
        if !writer.own.outdates_answer(&object, sent) {
            self.put_newer(&mut writer, object, content, &mut changes);
        }
        for change in &changes {
            if let Change::Added { object, .. } | Change::Updated { new: object, .. } = change {
                let (own, reached) = writer.fences();
                own.wrote(object, reached);
            }
        }
        self.flush(&mut writer);
        changes
    }

    /// Takes in the answer to a write by which an object left the selection, ahead of the watch.
    pub(crate) fn left(&self, object: &ObjectMetadata) -> Vec<Change> {
        let mut writer = self.writer.lock();
        let known = self.table.get(object.key().as_str());
        // The watch may be ahead, and the object back.
        let is_behind = match &known {
            Some(known) => !is_at_most(known.version(), object.version()),
            None => writer.reached.includes(object),
        };
        if is_behind || writer.own.outdates(object) {
            return Vec::new();
        }
        let (own, reached) = writer.fences();
        own.left(object, reached);
        self.take_out_known(&mut writer, known)
    }

    /// Takes in that this process deleted an object, ahead of the watch; `before` is the object that had the name
    /// here when the deletion was sent.
    ///
    /// `sent` is as for [`wrote`](Self::wrote).
    pub(crate) fn deleted(
        &self,
        (key, uid): (&ObjectKey, &Uid),
        before: Option<&Uid>,
        sent: u64,
    ) -> Vec<Change> {
        let mut writer = self.writer.lock();
        writer.own.deletion_sent(key, sent);
        // Also if it is not here: a list in progress or the watch may still show it.
        let (own, reached) = writer.fences();
        own.deleted(key, uid, reached);
        let known = self.table.get(key.as_str());
        // One that came after the deletion was sent may be its successor; one from before is not.
        let is_over = |known: &Arc<CachedObject>| known.uid() == uid || before == Some(known.uid());
        let known = known.filter(is_over);
        if let Some(known) = &known {
            own.deleted(key, known.uid(), reached);
            own.left(known, reached);
        }
        self.take_out_known(&mut writer, known)
    }

    fn take_out_known(&self, writer: &mut Writer, known: Option<Arc<CachedObject>>) -> Vec<Change> {
        let Some(last) = known else {
            return Vec::new();
        };
        self.take_out(writer, last.key());
        self.flush(writer);
        vec![Change::Deleted { last }]
    }

    fn put_listed(
        &self,
        writer: &mut Writer,
        listing: &Listing,
        object: RawObject,
        changes: &mut Vec<Change>,
    ) {
        let known = self.table.get(object.key().as_str());
        if writer.own.outdates_listed(listing, &object) {
            if let Some(known) = known {
                known.see(listing.mark);
            }
            return;
        }
        let is_other_state = |known: &Arc<CachedObject>| {
            listing.compares
                && self.is_comparable(known, listing.content)
                && !known.has_same_content(object.json())
        };
        let is_other_state = known.as_ref().is_some_and(is_other_state);
        let (object, partial) = self.kept(writer, object, listing.content);
        let new = Arc::new(CachedObject::packed(object, partial, &writer.codec));
        new.see(listing.mark);
        match known {
            Some(known) if is_same_state(&known, &new) && !is_other_state => {
                match (known.has_content(), new.has_content()) {
                    // Indexes that read content find it now …
                    (false, true) => self.put_new(writer, new),
                    // … and keep what they found while it was here.
                    (true, false) => self.put(writer, Edit::Replace(new)),
                    _ => known.see(listing.mark),
                }
            }
            known => {
                tell(known, &new, listing.initial, changes);
                self.put_new(writer, new);
            }
        }
    }

    fn put_watched(
        &self,
        writer: &mut Writer,
        object: RawObject,
        content: Content,
        changes: &mut Vec<Change>,
    ) {
        if !writer.own.outdates(&object) {
            self.put_newer(writer, object, content, changes);
        }
    }

    /// Takes in a state, unless a later one is known.
    fn put_newer(
        &self,
        writer: &mut Writer,
        object: RawObject,
        content: Content,
        changes: &mut Vec<Change>,
    ) {
        let known = self.table.get(object.key().as_str());
        let stale = known.as_ref().is_some_and(|known| is_stale(known, &object));
        // An answer may have been read as metadata at the moment when content came to be wanted.
        let completes = |known: &Arc<CachedObject>| {
            !known.has_content()
                && is_same_state(known, &object)
                && self.wants_content(content, &object)
        };
        let completes = known.as_ref().is_some_and(completes);
        if stale && !completes {
            return;
        }
        let new = self.young(writer, object, content);
        if let Some(known) = &known {
            new.see(known.seen_by());
        }
        if !completes {
            tell(known, &new, false, changes);
        }
        self.put_new(writer, new);
    }

    /// Returns whether what is read of an object can be compared with what is known of it.
    pub(crate) fn is_comparable(&self, known: &CachedObject, content: Content) -> bool {
        let is_whole = content == Content::Whole;
        // With a filter, metadata is cut out of the same whole objects. Without one it was read by itself, before an
        // upgrade, and a transform may change it from then on.
        known.has_content() == is_whole || (is_whole && self.filter().is_some())
    }

    /// Returns what is kept of an object, and whether that is its metadata alone.
    fn kept(&self, writer: &Writer, object: RawObject, content: Content) -> (RawObject, bool) {
        let partial = content == Content::MetadataOnly;
        // The watch goes on reporting content for a moment after it was given up.
        let is_kept = || writer.codec.keeps_content() && self.wants_content(content, &object);
        if partial || is_kept() {
            return (object, partial);
        }
        match metadata_of(object.json()) {
            Some(json) => (object.with_json(json), true),
            None => (object, true),
        }
    }

    /// Makes an object of a state that has just come; it is packed later, if at all.
    fn young(&self, writer: &mut Writer, object: RawObject, content: Content) -> Arc<CachedObject> {
        let (object, partial) = self.kept(writer, object, content);
        let bytes = object.json().len();
        let object = CachedObject::plain(object, partial, &writer.codec);
        if writer.codec.dictionary(bytes).is_some() {
            writer.young.add(&object, bytes);
        }
        Arc::new(object)
    }

    fn put_new(&self, writer: &mut Writer, new: Arc<CachedObject>) {
        let functions = writer.functions.iter();
        let found_under = functions.map(|(name, function)| values(name, &**function, &new));
        let found_under: Values = found_under.collect();
        self.put(writer, Edit::Put(new, Some(found_under)));
    }

    /// Removes an object whose end a watch told.
    fn remove(
        &self,
        writer: &mut Writer,
        last: RawObject,
        content: Content,
        changes: &mut Vec<Change>,
    ) {
        let known = self.table.get(last.key().as_str());
        let is_back = writer.own.outdates_end(&last);
        // A deletion that is told again must not remove the object's successor.
        if is_back || known.is_none_or(|known| known.uid() != last.uid()) {
            return;
        }
        // It is not stored any more, so it is not packed.
        let (last, partial) = self.kept(writer, last, content);
        let last = Arc::new(CachedObject::plain(last, partial, &writer.codec));
        self.take_out(writer, last.key());
        changes.push(Change::Deleted { last });
    }

    pub(super) fn put(&self, writer: &mut Writer, edit: Edit) {
        if let Edit::Put(object, _) | Edit::Replace(object) = &edit {
            self.table.insert(Arc::clone(object));
        }
        writer.pending.push(edit);
        if writer.pending.len() >= CHUNK {
            self.flush(writer);
        }
    }

    fn take_out(&self, writer: &mut Writer, key: &ObjectKey) {
        self.table.remove(key.as_str());
        self.put(writer, Edit::Remove(key.clone()));
    }

    /// Shows readers of lists what readers by key see already.
    pub(super) fn flush(&self, writer: &mut Writer) {
        if writer.pending.is_empty() {
            return;
        }
        // Freed behind the lock: freeing takes longer than replacing.
        let mut dropped = Vec::with_capacity(writer.pending.len());
        let mut state = self.state.write();
        for edit in writer.pending.drain(..) {
            dropped.extend(state.edit(edit));
        }
        drop(state);
    }
}

impl super::State {
    /// Counts that objects take another number of bytes than before.
    pub(super) fn resize(&mut self, before: usize, after: usize) {
        self.bytes = self.bytes + after - before;
    }

    /// Makes a change; returns what it replaces, to be dropped.
    fn edit(&mut self, edit: Edit) -> Option<Arc<CachedObject>> {
        let (old, new, reindex) = match edit {
            Edit::Put(new, values) => (self.tree.insert(Arc::clone(&new)), Some(new), Some(values)),
            Edit::Replace(new) => (self.tree.insert(Arc::clone(&new)), Some(new), None),
            Edit::Remove(key) => (self.tree.remove(key.as_str()), None, Some(None)),
        };
        if let Some(values) = reindex {
            self.indexes.update(old.as_deref(), new.as_deref(), values);
        }
        self.bytes += new.as_ref().map_or(0, |new| new.bytes());
        self.bytes -= old.as_ref().map_or(0, |old| old.bytes());
        let whole = |object: Option<&Arc<CachedObject>>| {
            usize::from(object.is_some_and(|o| o.has_content()))
        };
        self.whole += whole(new.as_ref());
        self.whole -= whole(old.as_ref());
        old
    }
}

/// Tells what it means that an object is there in a state.
fn tell(
    known: Option<Arc<CachedObject>>,
    new: &Arc<CachedObject>,
    initial: bool,
    changes: &mut Vec<Change>,
) {
    let object = Arc::clone(new);
    match known {
        None => changes.push(Change::Added { object, initial }),
        Some(old) if old.uid() == new.uid() => changes.push(Change::Updated { old, new: object }),
        // Another object under the same name: its predecessor's end was not seen.
        Some(last) => {
            changes.push(Change::Deleted { last });
            let initial = false;
            changes.push(Change::Added { object, initial });
        }
    }
}

/// Returns whether nothing happened between two states.
fn is_same_state(known: &CachedObject, object: &ObjectMetadata) -> bool {
    !known.version().is_empty()
        && known.uid() == object.uid()
        && known.version() == object.version()
}

/// Returns whether a watch tells something that is known already, as after a reconnection; also of another
/// object that had the name before.
fn is_stale(known: &ObjectMetadata, object: &ObjectMetadata) -> bool {
    !known.version().is_empty() && is_at_most(object.version(), known.version())
}

fn is_at_most(version: &ResourceVersion, other: &ResourceVersion) -> bool {
    matches!(
        version.compare(other),
        Some(Ordering::Less | Ordering::Equal)
    )
}

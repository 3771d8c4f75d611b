//! The store of a kind: its public reads, and the entry points of its writers.

use std::fmt;
use std::sync::Arc;

use hashbrown::HashMap;
use lariat_core::{
    Gvk, ObjectKey, ObjectMetadata, RawObject, ResourceVersion, Scan, TableSize, Uid,
};

use super::body::{Age, Storage};
use super::change::{Change, Content, Delta};
use super::decoded::Decodes;
use super::error::IndexError;
use super::index::{self, CustomIndex, IndexFn};
use super::listing::Listing;
use super::object::CachedObject;
use super::packing::{Packing, pack_waiting};
use super::query::{Candidates, Query};
use super::tree::Snapshot;
use super::writer::Kept;
use crate::content_filter::KindFilter;
use crate::selection::Selection;

/// The store of one kind's raw objects.
///
/// Readers do not wait for requests: reads by key use one of sixteen hash tables, lists and queries a snapshot. Each
/// reader sees the states of an object in the order in which the server changed it. The state for which a handler was
/// called is visible to both kinds of reads.
///
/// The only writers are the reflectors of the kind, and the answers to this process's own writes.
///
/// ```
/// use lariat::{Cache, Metadata, ObjectKey};
///
/// fn version(pods: &Cache<Metadata>, key: &ObjectKey) -> Option<String> {
///     let pod = pods.store().get(key)?;
///     Some(pod.version().to_string())
/// }
/// # let _ = version;
/// ```
#[derive(Default)]
pub struct Store {
    pub(super) kept: Kept,
    packing: Packing,
    decodes: Decodes,
}

impl Store {
    /// Creates a store that keeps the content of objects that a filter selects.
    pub(crate) fn filtered(filter: Option<KindFilter>) -> Self {
        let kept = Kept {
            filter,
            ..Kept::default()
        };
        Self {
            kept,
            ..Self::default()
        }
    }

    /// Returns the filter, if there is one.
    pub(crate) fn filter(&self) -> Option<&KindFilter> {
        self.kept.filter.as_ref()
    }

    /// Returns whether the content of an object is kept.
    ///
    /// `content` is how much of the kind is read.
    pub(crate) fn wants_content(&self, content: Content, object: &ObjectMetadata) -> bool {
        self.kept.wants_content(content, object)
    }

    /// Returns whether the content filter leaves out the content of an object.
    ///
    /// See [`ContentFilter`](crate::ContentFilter); only the metadata is cached then.
    #[must_use]
    pub fn leaves_out(&self, object: &ObjectMetadata) -> bool {
        !self.wants_content(Content::Whole, object)
    }

    /// Returns whether a state that was read can be compared with the cached one.
    pub(crate) fn is_comparable(&self, known: &CachedObject, content: Content) -> bool {
        self.kept.is_comparable(known, content)
    }

    /// Returns an object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<CachedObject>> {
        self.kept.objects.get(key.as_str())
    }

    /// Returns the key of an object by its text, sharing the text of the cached key.
    pub(crate) fn key_of(&self, key: &str) -> Option<ObjectKey> {
        self.kept.objects.key(key)
    }

    /// Returns whether an object exists.
    #[must_use]
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.kept.objects.get(key.as_str()).is_some()
    }

    /// Returns a snapshot of all objects, without copying any.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.kept.objects.snapshot()
    }

    /// Returns the objects that match a query, in key order, at one moment.
    #[must_use]
    pub fn select(&self, query: &Query) -> Vec<Arc<CachedObject>> {
        let mut found = Vec::new();
        query.visit(&self.kept, |object| found.push(Arc::clone(object)));
        found
    }

    /// Returns how many objects match a query, without decoding any.
    #[must_use]
    pub fn count(&self, query: &Query) -> usize {
        let mut count = 0;
        query.visit(&self.kept, |_| count += 1);
        count
    }

    /// Returns the objects that a custom index has under a value, in key order.
    pub(crate) fn by_index(
        &self,
        gvk: &Gvk,
        name: &str,
        value: &str,
    ) -> Result<Vec<Arc<CachedObject>>, IndexError> {
        let state = self.kept.objects.state();
        let keys = state.index(gvk, name)?.keys(value);
        // The lock of the list state is released before objects are visited.
        let candidates = Candidates::with_keys(&keys.collect::<Vec<_>>(), &state.tree);
        drop(state);
        let mut found = Vec::new();
        candidates.visit(|object| found.push(Arc::clone(object)));
        Ok(found)
    }

    /// Returns how many objects a custom index has under a value.
    pub(crate) fn count_by_index(
        &self,
        gvk: &Gvk,
        name: &str,
        value: &str,
    ) -> Result<usize, IndexError> {
        Ok(self.kept.objects.state().index(gvk, name)?.count(value))
    }

    /// Adds an index over existing and future objects.
    pub(crate) fn add_index(
        &self,
        gvk: &Gvk,
        name: &str,
        function: Arc<IndexFn>,
    ) -> Result<(), IndexError> {
        // Locked until the index is in place: a change in between would be missing in it.
        let mut writer = self.kept.writer.lock();
        if self.kept.objects.state().index(gvk, name).is_ok() {
            return Err(IndexError::NameTaken {
                gvk: gvk.clone(),
                name: name.to_owned(),
            });
        }
        let mut index = CustomIndex::new(name);
        for object in self.snapshot().iter() {
            index.put(object.key(), index::values(name, &*function, object));
        }
        writer.functions.push((name.into(), function));
        self.kept.objects.state_mut().indexes.custom.push(index);
        Ok(())
    }

    /// Returns all keys in order, at one moment.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.kept.objects.keys()
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.objects.state().tree.len()
    }

    /// Returns whether the store is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the objects in bytes, without decoded values.
    ///
    /// The sum is updated with every change, so this call is cheap. It counts what each object owns; what several
    /// objects share (equal label sets, the kinds of owners) counts for each of them. [`overhead`](Self::overhead) is
    /// the rest.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.kept.objects.state().bytes
    }

    /// Estimates the size of order, tables, indexes and dictionary in bytes.
    ///
    /// Hash tables grow depending on how their entries fall, so this differs a little between two runs of a program.
    /// Memory budgets use [`bytes`](Self::bytes), which does not.
    #[must_use]
    pub fn overhead(&self) -> usize {
        self.kept.writer.lock().codec.bytes() + self.kept.objects.overhead()
    }

    /// Returns the versions of own writes that no list and no watch has reported yet.
    pub(crate) fn unconfirmed(&self) -> HashMap<ObjectKey, ResourceVersion> {
        self.kept.writer.lock().own.versions()
    }

    /// Returns the sizes of the tables, indexes and own writes.
    ///
    /// See [`SharedCacheFactory::table_sizes`](crate::SharedCacheFactory::table_sizes).
    pub(crate) fn table_sizes(&self) -> impl Iterator<Item = TableSize> + use<> {
        // Locked, so that table and tree contain the same objects.
        let writer = self.kept.writer.lock();
        let (writes, most_writes) = (writer.own.len(), writer.own.most());
        let collections = writer.reached.len();
        let (waiting, most_waiting) = writer.codec.waiting();
        // Until a selection is known, one collection is read.
        let most_collections = writer
            .namespaces()
            .map_or(1, |namespaces| namespaces.max(1));
        let state = self.kept.objects.state();
        let objects = state.tree.len();
        let of_indexes = state.indexes.table_sizes(objects);
        let of_store = [
            TableSize::new("cached objects", self.kept.objects.len(), objects),
            TableSize::new("own writes", writes, most_writes),
            TableSize::new("collections", collections, most_collections),
            TableSize::new("objects to pack", waiting, most_waiting),
        ];
        of_store.into_iter().chain(of_indexes)
    }

    /// Counts the decoded values that are kept alive.
    ///
    /// In kinds that are stored [`Decoded`](Storage::Decoded), these are all values that were read; in others, none.
    #[must_use]
    pub fn retained(&self) -> usize {
        self.snapshot().iter().map(|object| object.retained()).sum()
    }

    /// Returns how many values were decoded for readers of the kind.
    ///
    /// Readers are the kind's caches, handlers, relations and streams.
    #[must_use]
    pub fn decodes(&self) -> u64 {
        self.decodes.count()
    }

    /// Returns how many values were read without a decode.
    pub(crate) fn hits(&self) -> u64 {
        self.decodes.hits()
    }

    /// Returns the counter of decodes.
    pub(crate) fn decoding(&self) -> &Decodes {
        &self.decodes
    }

    /// Returns whether there is a dictionary, so that new objects are compressed.
    pub(crate) fn is_packed(&self) -> bool {
        self.kept.writer.lock().codec.bytes() > 0
    }

    /// Returns the form in which objects are stored.
    #[must_use]
    pub fn storage(&self) -> Storage {
        self.packing.storage()
    }

    /// Applies the deltas of a watch, in order.
    pub(crate) fn apply(&self, deltas: Vec<Delta>, content: Content) -> Vec<Change> {
        self.kept.writing().apply(deltas, content)
    }

    /// Begins a list of a namespace, or of all.
    ///
    /// Begin it before the request is sent: then the list contains every write that this process had finished before. A
    /// list that is abandoned need not be ended.
    pub(crate) fn begin_listing(
        &self,
        initial: bool,
        content: Content,
        namespace: Option<Arc<str>>,
    ) -> Listing {
        let mut writer = self.kept.writer.lock();
        let begun = writer.own.begin_listing();
        let listing = Listing::new(begun, initial, content, namespace);
        let namespace = listing.namespace.as_ref();
        writer.reached.begin(begun, namespace);
        writer.codec.expect(content == Content::MetadataOnly);
        listing
    }

    /// Records that no reflector is left, so that unfinished lists are abandoned.
    pub(crate) fn abandon_lists(&self) {
        self.kept.writer.lock().reached.abandon();
    }

    /// Returns whether a listed state is the cached one; marks the object if so.
    pub(crate) fn is_listed(&self, listing: &Listing, scan: &Scan<'_>, key: &str) -> bool {
        listing.is_known(&self.kept, scan, key)
    }

    /// Applies a page of a list.
    ///
    /// Cached objects of the same version are kept, unless the list compares contents and these differ.
    pub(crate) fn list_page(&self, listing: &Listing, page: Vec<RawObject>) -> Vec<Change> {
        listing.page(self.kept.writing(), page)
    }

    /// Marks an object as listed whose state cannot be read.
    ///
    /// Its last readable state is kept.
    pub(crate) fn list_unreadable(&self, listing: &Listing, key: &ObjectKey) {
        listing.mention(self.get(key));
    }

    /// Ends a list at a version: deletes the objects that it did not contain.
    pub(crate) fn end_listing(&self, listing: &Listing, version: &ResourceVersion) -> Vec<Change> {
        listing.end(self.kept.writing(), version)
    }

    /// Records that a watch of a namespace, or of all, was opened.
    ///
    /// The watch may report events that the previous one did not deliver. Returns whether a list is needed instead,
    /// because an object may exist whose states were dropped.
    #[must_use]
    pub(crate) fn watch_opened(&self, namespace: Option<&str>) -> bool {
        self.kept.writer.lock().watch_opened(namespace)
    }

    /// Returns whether a list of a namespace, or of all, is needed, as [`watch_opened`](Self::watch_opened) does.
    ///
    /// To be asked at each bookmark.
    #[must_use]
    pub(crate) fn must_list(&self, namespace: Option<&str>) -> bool {
        self.kept.writer.lock().must_list(namespace)
    }

    /// Returns whether an object may exist that a deletion by this process hides.
    pub(crate) fn hides(&self) -> bool {
        self.kept.writer.lock().own.hides()
    }

    /// Removes every object outside a selection.
    pub(crate) fn restrict(&self, selection: &Selection) -> Vec<Change> {
        self.kept.writing().restrict(selection)
    }

    /// Applies the answer to a write of this process, before the watch reports it.
    ///
    /// `sent` is the number of the write, in the order in which writes were sent.
    pub(crate) fn wrote(&self, object: RawObject, content: Content, sent: u64) -> Vec<Change> {
        self.kept.writing().wrote(object, content, sent)
    }

    /// Applies the answer to a write after which an object is no longer selected.
    pub(crate) fn left(&self, object: &ObjectMetadata) -> Vec<Change> {
        self.kept.writing().left(object)
    }

    /// Applies a deletion by this process, before the watch reports it.
    ///
    /// `before` is the cached object of that name when the deletion was sent. `sent` is as for [`wrote`](Self::wrote).
    pub(crate) fn deleted(
        &self,
        key: &ObjectKey,
        uid: &Uid,
        before: Option<&CachedObject>,
        sent: u64,
    ) -> Vec<Change> {
        self.kept.writing().deleted(key, uid, before, sent)
    }

    /// Trains a dictionary once the kind is large enough, and packs existing objects.
    ///
    /// No lock is held during the training, and waiting writers proceed while objects are packed.
    pub(crate) fn train(&self) {
        self.packing.train(&self.kept);
    }

    /// Returns whether objects wait to be packed.
    pub(crate) fn has_waiting(&self) -> bool {
        self.kept.writer.lock().codec.waiting_bytes() > 0
    }

    /// Packs recently changed objects, without the lock of writers.
    pub(crate) fn pack_waiting(&self, age: Age) {
        pack_waiting(&self.kept, age);
    }

    /// Stores the kind in another form from now on.
    pub(crate) fn set_storage(&self, storage: Storage) {
        self.packing.set_storage(&self.kept, storage);
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("objects", &self.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

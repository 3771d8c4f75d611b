//! The store itself: what is read of it, and what is handed to those who write.

use std::fmt;
use std::sync::Arc;

use hashbrown::HashMap;
use lariat_core::{
    Gvk, ObjectKey, ObjectMetadata, RawObject, Remembered, ResourceVersion, Scan, Uid,
};

use super::body::{Age, Storage};
use super::change::{Change, Content, Delta};
use super::decoded::Decodes;
use super::error::IndexError;
use super::index::{self, CustomIndex, IndexFn};
use super::listing::Listing;
use super::object::CachedObject;
use super::packing::{Packing, pack_young};
use super::query::{Candidates, Query};
use super::tree::Snapshot;
use super::writer::Kept;
use crate::content_filter::KindFilter;
use crate::selection::Selection;

/// The objects of one kind.
///
/// Readers see each of them as it was at some moment, in the order in which the server changed it, and
/// never wait for a list or a watch: reads by key go to one of sixteen hash tables, lists and queries to a
/// snapshot.
/// What a handler was called for is in both. Only the reflector of the kind writes, and the overlay of this
/// process' own writes.
#[derive(Default)]
pub struct Store {
    pub(super) kept: Kept,
    packing: Packing,
    decodes: Decodes,
}

impl Store {
    /// Makes a store that keeps the content of the objects of a filter.
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

    /// Returns whether the content of an object is kept, where so much of the kind is read.
    pub(crate) fn wants_content(&self, content: Content, object: &ObjectMetadata) -> bool {
        self.kept.wants_content(content, object)
    }

    /// Returns whether what is read of an object can be compared with what is known of it.
    pub(crate) fn is_comparable(&self, known: &CachedObject, content: Content) -> bool {
        self.kept.is_comparable(known, content)
    }

    /// Returns an object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<CachedObject>> {
        self.kept.objects.get(key.as_str())
    }

    /// Returns the key of an object by its text, which the copy shares with the store.
    pub(crate) fn key_of(&self, key: &str) -> Option<ObjectKey> {
        self.kept.objects.key(key)
    }

    /// Returns whether there is an object.
    #[must_use]
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.kept.objects.get(key.as_str()).is_some()
    }

    /// Returns all objects as they are at this moment, without copying any.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.kept.objects.snapshot()
    }

    /// Returns the objects that are wanted, in key order, as they are at one moment.
    #[must_use]
    pub fn select(&self, query: &Query) -> Vec<Arc<CachedObject>> {
        let mut found = Vec::new();
        query.visit(&self.kept, |object| found.push(Arc::clone(object)));
        found
    }

    /// Returns how many objects are wanted; nothing is decoded.
    #[must_use]
    pub fn count(&self, query: &Query) -> usize {
        let mut count = 0;
        query.visit(&self.kept, |_| count += 1);
        count
    }

    /// Returns the objects that a custom index finds under a value, in key order.
    pub(crate) fn by_index(
        &self,
        gvk: &Gvk,
        name: &str,
        value: &str,
    ) -> Result<Vec<Arc<CachedObject>>, IndexError> {
        let state = self.kept.objects.state();
        let keys = state.index(gvk, name)?.keys(value);
        let candidates = Candidates::with_keys(&keys.collect::<Vec<_>>(), &state.tree);
        drop(state);
        let mut found = Vec::new();
        candidates.visit(|object| found.push(Arc::clone(object)));
        Ok(found)
    }

    /// Returns how many objects a custom index finds under a value.
    pub(crate) fn count_by_index(
        &self,
        gvk: &Gvk,
        name: &str,
        value: &str,
    ) -> Result<usize, IndexError> {
        Ok(self.kept.objects.state().index(gvk, name)?.count(value))
    }

    /// Adds an index; it holds what there is, and follows from now on.
    pub(crate) fn add_index(
        &self,
        gvk: &Gvk,
        name: &str,
        function: Arc<IndexFn>,
    ) -> Result<(), IndexError> {
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

    /// Returns all keys in order, as they are at one moment.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.kept.objects.keys()
    }

    /// Returns how many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.objects.state().tree.len()
    }

    /// Returns whether there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes the objects hold; values decoded by users are theirs and not counted.
    ///
    /// The sum is kept up to date with every change, so asking costs nothing. It counts what objects own,
    /// byte by byte; what several share (equal label sets, the kinds of owners) counts for each of them.
    /// [`overhead`](Self::overhead) is the rest.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.kept.objects.state().bytes
    }

    /// Estimates the bytes of what finds the objects: order, tables, indexes, dictionary.
    ///
    /// Hash tables grow by how their entries fall, so this differs a little between two runs of a program. Nothing is
    /// decided by it; [`bytes`](Self::bytes), which budgets count, is the same in each run.
    #[must_use]
    pub fn overhead(&self) -> usize {
        self.kept.writer.lock().codec.bytes() + self.kept.objects.overhead()
    }

    /// Returns the versions of own writes that no list and no watch has shown since.
    pub(crate) fn unconfirmed(&self) -> HashMap<ObjectKey, ResourceVersion> {
        self.kept.writer.lock().unconfirmed()
    }

    /// Returns how much is remembered to find objects and to fence own writes; see
    /// [`SharedCacheFactory::remembered`](crate::SharedCacheFactory::remembered).
    pub(crate) fn remembered(&self) -> impl Iterator<Item = Remembered> + use<> {
        // Held, so that table and tree have the same objects.
        let writer = self.kept.writer.lock();
        let (writes, most_writes) = writer.own_writes();
        let collections = writer.collections();
        let (young, most_young) = writer.codec.young();
        // Until a selection is known, one reads all.
        let most_collections = writer
            .namespaces()
            .map_or(1, |namespaces| namespaces.max(1));
        let state = self.kept.objects.state();
        let objects = state.tree.len();
        let of_indexes = state.indexes.remembered(objects);
        let of_store = [
            Remembered::new("cached objects", self.kept.objects.len(), objects),
            Remembered::new("own writes", writes, most_writes),
            Remembered::new("collections", collections, most_collections),
            Remembered::new("objects to pack", young, most_young),
        ];
        of_store.into_iter().chain(of_indexes)
    }

    /// Counts the decoded values that are kept, which is all that were asked for in kinds that are kept
    /// [`Decoded`](Storage::Decoded), and none in others.
    #[must_use]
    pub fn retained(&self) -> usize {
        self.snapshot().iter().map(|object| object.retained()).sum()
    }

    /// Returns how many values had to be decoded for those who read objects through the kind's caches, its
    /// handlers, relations and streams.
    #[must_use]
    pub fn decodes(&self) -> u64 {
        self.decodes.count()
    }

    /// Returns what counts them.
    pub(crate) fn decoding(&self) -> &Decodes {
        &self.decodes
    }

    /// Returns whether a dictionary was made, so that what comes is compressed.
    pub(crate) fn is_packed(&self) -> bool {
        self.kept.writer.lock().codec.bytes() > 0
    }

    /// Returns in which form objects are kept.
    #[must_use]
    pub fn storage(&self) -> Storage {
        self.packing.storage()
    }

    /// Takes in what a watch reported, in its order.
    pub(crate) fn apply(&self, deltas: Vec<Delta>, content: Content) -> Vec<Change> {
        self.kept.writing().apply(deltas, content)
    }

    /// Begins a list, of a namespace or of all; one that is given up is simply never ended.
    ///
    /// It is begun before it is requested: what this process wrote before is in it then.
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

    /// Notes that no reflector is left: lists that were begun and not ended are given up.
    pub(crate) fn give_up_lists(&self) {
        self.kept.writer.lock().reached.give_up();
    }

    /// Returns whether a list shows nothing new about an object, and notes that it was mentioned.
    pub(crate) fn is_listed(&self, listing: &Listing, scan: &Scan<'_>, key: &str) -> bool {
        listing.is_known(&self.kept, scan, key)
    }

    /// Takes in a page of a list; what has the version that is known already stays as it is, unless the list compares
    /// contents and finds another.
    pub(crate) fn list_page(&self, listing: &Listing, page: Vec<RawObject>) -> Vec<Change> {
        listing.page(self.kept.writing(), page)
    }

    /// Notes that a list mentions an object in a state that cannot be read: the last one that could be
    /// stays.
    pub(crate) fn list_unreadable(&self, listing: &Listing, key: &ObjectKey) {
        listing.mention(self.get(key));
    }

    /// Ends a list of a version: what it did not mention is gone.
    pub(crate) fn end_listing(&self, listing: &Listing, version: &ResourceVersion) -> Vec<Change> {
        listing.end(self.kept.writing(), version)
    }

    /// Records that a watch of a namespace, or of all, is opened.
    ///
    /// It may report what the one before it did not.
    pub(crate) fn watch_opened(&self, namespace: Option<&str>) {
        self.kept.writer.lock().watch_opened(namespace);
    }

    /// Records that the watch of a namespace, or of all, reported its progress.
    pub(crate) fn watch_progressed(&self, namespace: Option<&str>) {
        self.kept.writer.lock().reached.progressed(namespace);
    }

    /// Removes every object that a selection leaves out.
    pub(crate) fn restrict(&self, selection: &Selection) -> Vec<Change> {
        self.kept.writing().restrict(selection)
    }

    /// Removes every object.
    pub(crate) fn clear(&self) -> Vec<Change> {
        self.kept.writing().clear()
    }

    /// Takes in the answer to a write of this process, ahead of the watch.
    ///
    /// `sent` is the number of the write, in the order in which they were sent.
    pub(crate) fn wrote(&self, object: RawObject, content: Content, sent: u64) -> Vec<Change> {
        self.kept.writing().wrote(object, content, sent)
    }

    /// Takes in the answer to a write by which an object left the selection, ahead of the watch.
    pub(crate) fn left(&self, object: &ObjectMetadata) -> Vec<Change> {
        self.kept.writing().left(object)
    }

    /// Takes in that this process deleted an object, ahead of the watch; `before` is the object that had the name
    /// here when the deletion was sent.
    ///
    /// `sent` is as for [`wrote`](Self::wrote).
    pub(crate) fn deleted(
        &self,
        key: &ObjectKey,
        uid: &Uid,
        before: Option<&Uid>,
        sent: u64,
    ) -> Vec<Change> {
        self.kept.writing().deleted(key, uid, before, sent)
    }

    /// Makes a dictionary of a kind once it has grown enough, and packs what is there.
    ///
    /// No lock is held while the dictionary is made, and while objects are packed others write in between.
    pub(crate) fn learn(&self) {
        self.packing.learn(&self.kept);
    }

    /// Returns whether objects wait to be packed.
    pub(crate) fn has_young(&self) -> bool {
        self.kept.writer.lock().codec.young_bytes() > 0
    }

    /// Packs objects that have changed lately. No lock is held while it packs.
    pub(crate) fn pack_young(&self, age: Age) {
        pack_young(&self.kept, age);
    }

    /// Keeps the kind in another form from now on.
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

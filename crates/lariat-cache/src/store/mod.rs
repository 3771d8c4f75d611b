//! The raw store of one kind: the only place where its objects are kept.

mod body;
mod change;
mod decodes;
mod delta;
mod error;
mod forms;
mod index;
mod object;
mod own;
mod query;
mod reached;
mod recent;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod writer;
mod young;

use std::fmt;
use std::sync::Arc;

use hashbrown::HashMap;
use lariat_core::{Gvk, ObjectKey, ObjectMetadata, Remembered, ResourceVersion};
use parking_lot::{Mutex, RwLock};

pub use body::{ObjectJson, Storage};
pub use change::Change;
pub(crate) use decodes::Decodes;
pub(crate) use delta::{Content, Delta, Listing};
pub use error::{DecodeError, IndexError};
pub(crate) use index::IndexFn;
use index::{CustomIndex, Indexes, LabelIndex};
pub use object::CachedObject;
use query::Missing;
pub use query::Query;
use table::Table;
use tree::Tree;
use writer::Writer;
pub(crate) use young::Age;

use crate::content_filter::KindFilter;

/// The objects of one kind.
///
/// Readers see each of them as it was at some moment, in the order in which the server changed it, and
/// never wait for a list or a watch: reads by key go to one of sixteen hash tables, lists and queries to a
/// snapshot.
/// What a handler was called for is in both. Only the reflector of the kind writes, and the overlay of this
/// process' own writes.
#[derive(Default)]
pub struct Store {
    /// By key.
    table: Table,
    /// In order, and by other things than the key.
    state: RwLock<State>,
    /// Held while something is written.
    writer: Mutex<Writer>,
    /// In which form objects are kept.
    storage: Mutex<Storage>,
    /// Held while a dictionary is made.
    learning: Mutex<()>,
    decodes: Decodes,
    /// Says of which objects the content is kept; of all, if there is none.
    filter: Option<KindFilter>,
}

/// What readers of lists see.
#[derive(Debug, Default)]
struct State {
    tree: Tree,
    indexes: Indexes,
    /// The sum of [`CachedObject::bytes`] over all objects.
    bytes: usize,
    /// How many objects have content.
    whole: usize,
}

/// The objects of a kind as they are at one moment; a clone is the same moment.
///
/// Holding one costs nothing until objects change, and then what has changed since.
#[derive(Debug, Clone)]
pub struct Snapshot {
    tree: Tree,
}

/// Below this many objects looking at each is as fast as an index.
const WORTH_AN_INDEX: usize = 256;

impl Store {
    /// Makes a store that keeps the content of the objects of a filter.
    pub(crate) fn filtered(filter: Option<KindFilter>) -> Self {
        Self {
            filter,
            ..Self::default()
        }
    }

    /// Returns the filter, if there is one.
    pub(crate) fn filter(&self) -> Option<&KindFilter> {
        self.filter.as_ref()
    }

    /// Returns whether the content of an object is kept, where so much of the kind is read.
    pub(crate) fn wants_content(&self, content: Content, object: &ObjectMetadata) -> bool {
        content == Content::Whole && self.filter().is_none_or(|filter| filter.keeps(object))
    }

    /// Returns an object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<CachedObject>> {
        self.table.get(key.as_str())
    }

    /// Returns whether there is an object.
    #[must_use]
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.table.get(key.as_str()).is_some()
    }

    /// Returns all objects as they are at this moment, without copying any.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { tree: self.tree() }
    }

    fn tree(&self) -> Tree {
        self.state.read().tree.clone()
    }

    /// Returns the objects that are wanted, in key order, as they are at one moment.
    #[must_use]
    pub fn select(&self, query: &Query) -> Vec<Arc<CachedObject>> {
        let mut found = Vec::new();
        self.visit(query, |object| found.push(Arc::clone(object)));
        found
    }

    /// Returns how many objects are wanted; nothing is decoded.
    #[must_use]
    pub fn count(&self, query: &Query) -> usize {
        let mut count = 0;
        self.visit(query, |_| count += 1);
        count
    }

    /// Calls a function for each object that is wanted, in key order, as they are at one moment.
    fn visit(&self, query: &Query, mut found: impl FnMut(&Arc<CachedObject>)) {
        self.prepare(query);
        // The lock is held for finding out where they are; looking at them takes longer.
        let candidates = self.state.read().candidates(query);
        candidates.visit(|object| {
            if query.matches(object) {
                found(object);
            }
        });
    }

    /// Makes the indexes that help with a query.
    fn prepare(&self, query: &Query) {
        if self.len() >= WORTH_AN_INDEX {
            self.index_for(query);
        }
    }

    fn index_for(&self, query: &Query) {
        if self.state.read().missing(query).is_none() {
            return;
        }
        // Writers wait until the new index can be kept up to date; readers do not.
        let _writer = self.writer.lock();
        // Somebody may have made it meanwhile.
        let missing = self.state.read().missing(query);
        let tree = self.tree();
        match missing {
            Some(Missing::Owners) => {
                let mut fresh = Indexes::default();
                fresh.index_owners(tree.iter().map(|object| &**object));
                self.state.write().indexes.adopt_owners(fresh);
            }
            Some(Missing::Label(label)) => {
                let index = LabelIndex::over(label, tree.iter());
                self.state.write().indexes.labels.add(label, index);
            }
            None => {}
        }
    }

    /// Returns the objects that a custom index finds under a value, in key order.
    pub(crate) fn by_index(
        &self,
        gvk: &Gvk,
        name: &str,
        value: &str,
    ) -> Result<Vec<Arc<CachedObject>>, IndexError> {
        let state = self.state.read();
        let keys = state.index(gvk, name)?.keys(value);
        let candidates = state.with_keys(&keys.collect::<Vec<_>>());
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
        Ok(self.state.read().index(gvk, name)?.count(value))
    }

    /// Adds an index; it holds what there is, and follows from now on.
    pub(crate) fn add_index(
        &self,
        gvk: &Gvk,
        name: &str,
        function: Arc<IndexFn>,
    ) -> Result<(), IndexError> {
        let mut writer = self.writer.lock();
        if self.state.read().index(gvk, name).is_ok() {
            return Err(IndexError::NameTaken {
                gvk: gvk.clone(),
                name: name.to_owned(),
            });
        }
        let mut index = CustomIndex::new(name);
        for object in self.tree().iter() {
            index.put(object.key(), index::values(name, &*function, object));
        }
        writer.functions.push((name.into(), function));
        self.state.write().indexes.custom.push(index);
        Ok(())
    }

    /// Returns all keys in order, as they are at one moment.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.tree()
            .iter()
            .map(|object| object.key().clone())
            .collect()
    }

    /// Returns how many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.read().tree.len()
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
        self.state.read().bytes
    }

    /// Estimates the bytes of what finds the objects: order, tables, indexes, dictionary.
    ///
    /// Hash tables grow by how their entries fall, so this differs a little between two runs of a program. Nothing is
    /// decided by it; [`bytes`](Self::bytes), which budgets count, is the same in each run.
    #[must_use]
    pub fn overhead(&self) -> usize {
        let dictionary = self.writer.lock().codec.bytes();
        let state = self.state.read();
        dictionary + state.tree.bytes() + state.indexes.bytes() + self.table.bytes()
    }

    /// Returns the versions of own writes that no list and no watch has shown since.
    pub(crate) fn unconfirmed(&self) -> HashMap<ObjectKey, ResourceVersion> {
        self.writer.lock().unconfirmed()
    }

    /// Returns how much is remembered to find objects and to fence own writes; see
    /// [`SharedCacheFactory::remembered`](crate::SharedCacheFactory::remembered).
    pub(crate) fn remembered(&self) -> impl Iterator<Item = Remembered> + use<> {
        // Held, so that table and tree have the same objects.
        let writer = self.writer.lock();
        let (writes, most_writes) = writer.own_writes();
        let collections = writer.collections();
        let (young, most_young) = (writer.young.len(), writer.young.most());
        // Until a selection is known, one reads all.
        let most_collections = writer
            .namespaces()
            .map_or(1, |namespaces| namespaces.max(1));
        let state = self.state.read();
        let objects = state.tree.len();
        let of_indexes = state.indexes.remembered(objects);
        let of_store = [
            Remembered::new("cached objects", self.table.len(), objects),
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
        self.tree().iter().map(|object| object.retained()).sum()
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
        self.writer.lock().codec.bytes() > 0
    }

    /// Returns in which form objects are kept.
    #[must_use]
    pub fn storage(&self) -> Storage {
        *self.storage.lock()
    }
}

impl State {
    fn index(&self, gvk: &Gvk, name: &str) -> Result<&CustomIndex, IndexError> {
        let mut custom = self.indexes.custom.iter();
        custom
            .find(|index| index.name() == name)
            .ok_or_else(|| IndexError::Unknown {
                gvk: gvk.clone(),
                name: name.to_owned(),
            })
    }
}

impl Snapshot {
    /// Returns an object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<CachedObject>> {
        self.tree.get(key.as_str())
    }

    /// Iterates over the objects in key order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<CachedObject>> {
        self.tree.iter()
    }

    /// Iterates over the objects of a namespace, in key order.
    pub fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Arc<CachedObject>> {
        let prefix = format!("{namespace}/");
        let objects = self.tree.from(&prefix);
        objects.take_while(move |object| object.key().as_str().starts_with(&prefix))
    }

    /// Iterates over the objects that are wanted, in key order. Every object is looked at; for large kinds a
    /// [`Cache::select`](crate::Cache::select) finds them through indexes.
    pub fn select<'a>(&'a self, query: &'a Query) -> impl Iterator<Item = &'a Arc<CachedObject>> {
        self.iter().filter(|object| query.matches(object))
    }

    /// Returns how many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Returns whether there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

//! Where the objects of a kind are: by key, for reads that wait for nobody, and in order, for lists.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use lariat_core::{Gvk, ObjectKey};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::error::IndexError;
use super::index::{CustomIndex, Indexes, Values};
use super::object::CachedObject;
use super::tree::{Snapshot, Tree};

/// How many objects are changed while readers of lists wait.
pub(super) const CHUNK: usize = 64;

/// How many locks the table has.
const SHARDS: usize = 16;

/// The objects of a kind. A change shows in the table at once, and in what lists read with others of its batch.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// By key.
    table: ShardedTable,
    /// In order, and by other things than the key.
    state: RwLock<ListState>,
}

/// What readers of lists see.
#[derive(Debug, Default)]
pub(super) struct ListState {
    pub(super) tree: Tree,
    pub(super) indexes: Indexes,
    /// The sum of [`CachedObject::bytes`] over all objects.
    pub(super) bytes: usize,
    /// How many objects have content.
    pub(super) whole: usize,
}

/// A change of one object that readers by key see already, and readers of lists do not yet.
pub(super) struct Edit {
    old: Option<Arc<CachedObject>>,
    new: Option<Arc<CachedObject>>,
    indexing: Indexing,
}

/// What becomes of the entries of an object in the indexes.
pub(super) enum Indexing {
    /// They are made anew; the values are those in the custom indexes.
    Anew(Values),
    /// They stay: it is the same state with its content or without, which indexes do not find out.
    Same,
}

impl Objects {
    /// Returns an object.
    pub(super) fn get(&self, key: &str) -> Option<Arc<CachedObject>> {
        self.table.get(key)
    }

    /// Returns the key of an object, as the store has it.
    pub(super) fn key(&self, key: &str) -> Option<ObjectKey> {
        self.table.key(key)
    }

    /// Returns what readers of lists see. Writers wait meanwhile.
    pub(super) fn state(&self) -> RwLockReadGuard<'_, ListState> {
        self.state.read()
    }

    /// Returns what readers of lists see, to be changed while they wait.
    pub(super) fn state_mut(&self) -> RwLockWriteGuard<'_, ListState> {
        self.state.write()
    }

    /// Returns the objects in key order, as they are at this moment.
    pub(super) fn tree(&self) -> Tree {
        self.state.read().tree.clone()
    }

    /// Returns all objects as they are at this moment, without copying any.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot { tree: self.tree() }
    }

    /// Returns all keys in order, as they are at one moment.
    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        let snapshot = self.snapshot();
        snapshot.iter().map(|object| object.key().clone()).collect()
    }

    /// Returns how many objects readers by key see.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Estimates the bytes of what finds the objects.
    pub(super) fn overhead(&self) -> usize {
        let state = self.state.read();
        state.tree.bytes() + state.indexes.bytes() + self.table.bytes()
    }

    /// Puts an object in, in the place of its earlier state, for readers by key.
    pub(super) fn put(&self, new: Arc<CachedObject>, indexing: Indexing) -> Edit {
        Edit {
            old: self.table.insert(Arc::clone(&new)),
            new: Some(new),
            indexing,
        }
    }

    /// Takes an object out, for readers by key.
    pub(super) fn remove(&self, key: &str) -> Edit {
        Edit {
            old: self.table.remove(key),
            new: None,
            indexing: Indexing::Anew(Values::new()),
        }
    }

    /// Shows changes to readers of lists.
    pub(super) fn complete(&self, edits: &mut Vec<Edit>) {
        // Freed behind the lock: freeing takes longer than replacing.
        let mut dropped = Vec::with_capacity(edits.len());
        let mut state = self.state.write();
        for edit in edits.drain(..) {
            dropped.extend(state.edit(edit));
        }
        drop(state);
    }
}

impl ListState {
    /// Counts that objects take another number of bytes than before.
    pub(super) fn resize(&mut self, before: usize, after: usize) {
        self.bytes = self.bytes + after - before;
    }

    /// Returns a custom index.
    pub(super) fn index(&self, gvk: &Gvk, name: &str) -> Result<&CustomIndex, IndexError> {
        let mut custom = self.indexes.custom.iter();
        custom
            .find(|index| index.name() == name)
            .ok_or_else(|| IndexError::Unknown {
                gvk: gvk.clone(),
                name: name.to_owned(),
            })
    }

    /// Makes a change; returns what it replaces, to be dropped.
    ///
    /// Changes come in the order in which the table took them, so that what the table held is what is here.
    fn edit(&mut self, edit: Edit) -> Option<Arc<CachedObject>> {
        let Edit { old, new, indexing } = edit;
        if let Indexing::Anew(values) = indexing {
            self.indexes.update(old.as_deref(), new.as_deref(), values);
        }
        self.count(old.as_deref(), new.as_deref());
        match (&old, new) {
            (Some(old), Some(new)) => self.tree.replace(old, new),
            (None, Some(new)) => self.tree.insert(new),
            (Some(old), None) => self.tree.remove(old.key().as_str()),
            (None, None) => None,
        };
        old
    }

    fn count(&mut self, old: Option<&CachedObject>, new: Option<&CachedObject>) {
        let bytes = |object: Option<&CachedObject>| object.map_or(0, CachedObject::bytes);
        self.bytes = self.bytes + bytes(new) - bytes(old);
        let whole =
            |object: Option<&CachedObject>| usize::from(object.is_some_and(|o| o.has_content()));
        self.whole = self.whole + whole(new) - whole(old);
    }
}

/// A hash table in shards: a read takes one lock of sixteen, for a lookup and a reference count.
#[derive(Debug, Default)]
struct ShardedTable {
    shards: [RwLock<HashTable<Arc<CachedObject>>>; SHARDS],
    hasher: DefaultHashBuilder,
}

impl ShardedTable {
    /// Returns an object.
    fn get(&self, key: &str) -> Option<Arc<CachedObject>> {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard(hash).read();
        shard
            .find(hash, |object| object.key().as_str() == key)
            .cloned()
    }

    /// Returns the key of an object.
    fn key(&self, key: &str) -> Option<ObjectKey> {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard(hash).read();
        let object = shard.find(hash, |object| object.key().as_str() == key)?;
        Some(object.key().clone())
    }

    /// Puts an object in; returns its earlier state.
    fn insert(&self, object: Arc<CachedObject>) -> Option<Arc<CachedObject>> {
        let hash = self.hasher.hash_one(object.key().as_str());
        let mut shard = self.shard(hash).write();
        let is_it = |each: &Arc<CachedObject>| each.key() == object.key();
        if let Some(place) = shard.find_mut(hash, is_it) {
            return Some(std::mem::replace(place, object));
        }
        let rehash = |each: &Arc<CachedObject>| self.hasher.hash_one(each.key().as_str());
        shard.insert_unique(hash, object, rehash);
        None
    }

    /// Takes an object out.
    fn remove(&self, key: &str) -> Option<Arc<CachedObject>> {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash).write();
        let is_it = |each: &Arc<CachedObject>| each.key().as_str() == key;
        let (old, _) = shard.find_entry(hash, is_it).ok()?.remove();
        if shard.len() < shard.capacity() / 8 {
            let rehash = |each: &Arc<CachedObject>| self.hasher.hash_one(each.key().as_str());
            shard.shrink_to_fit(rehash);
        }
        Some(old)
    }

    /// Returns how many objects there are.
    fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().len()).sum()
    }

    /// Returns the memory of the table itself.
    fn bytes(&self) -> usize {
        let sizes = self
            .shards
            .iter()
            .map(|shard| shard.read().allocation_size());
        sizes.sum()
    }

    fn shard(&self, hash: u64) -> &RwLock<HashTable<Arc<CachedObject>>> {
        // hashbrown takes the lowest and the highest bits.
        &self.shards[(hash >> 40) as usize % SHARDS]
    }
}

//! The objects of a kind: by key, for reads that never wait for a list; and in order, for lists.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use lariat_core::{Gvk, ObjectKey};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::error::IndexError;
use super::index::{CustomIndex, Indexes, Values};
use super::object::CachedObject;
use super::tree::{Snapshot, Tree};

/// How many objects are changed under one lock of the list state.
pub(super) const CHUNK: usize = 64;

/// How many shards the hash table has.
const SHARDS: usize = 16;

/// The objects of a kind, in two structures.
///
/// A change is visible in the table at once. It is visible in the list state together with the other changes of its
/// batch, so that readers of lists wait for a batch and not for each change.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// By key; written first.
    table: ShardedTable,
    /// In key order and by indexes; written in batches by [`complete`](Self::complete).
    state: RwLock<ListState>,
}

/// The state that readers of lists see.
#[derive(Debug, Default)]
pub(super) struct ListState {
    pub(super) tree: Tree,
    pub(super) indexes: Indexes,
    /// The sum of [`CachedObject::bytes`] over all objects; memory budgets use it.
    pub(super) bytes: usize,
    /// How many objects have content.
    pub(super) whole: usize,
}

/// A change that is in the table, but not in the list state yet.
pub(super) struct Edit {
    old: Option<Arc<CachedObject>>,
    new: Option<Arc<CachedObject>>,
    indexing: Indexing,
}

/// What happens to the index entries of an object.
pub(super) enum Indexing {
    /// They are replaced by these values in the custom indexes.
    Replace(Values),
    /// They stay: it is the same version with its content or without.
    Keep,
}

impl Objects {
    /// Returns an object.
    pub(super) fn get(&self, key: &str) -> Option<Arc<CachedObject>> {
        self.table.get(key)
    }

    /// Returns the key of an object, which shares the text of the cached key.
    pub(super) fn key(&self, key: &str) -> Option<ObjectKey> {
        self.table.key(key)
    }

    /// Locks the state that readers of lists see; writers wait meanwhile.
    pub(super) fn state(&self) -> RwLockReadGuard<'_, ListState> {
        self.state.read()
    }

    /// Locks the state that readers of lists see, to change it while they wait.
    pub(super) fn state_mut(&self) -> RwLockWriteGuard<'_, ListState> {
        self.state.write()
    }

    /// Returns a snapshot of the objects in key order.
    pub(super) fn tree(&self) -> Tree {
        self.state.read().tree.clone()
    }

    /// Returns a snapshot of all objects, without copying any.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot { tree: self.tree() }
    }

    /// Returns all keys in order, at one moment.
    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        let snapshot = self.snapshot();
        snapshot.iter().map(|object| object.key().clone()).collect()
    }

    /// Returns how many objects the table contains.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Estimates the size of table, order and indexes in bytes.
    pub(super) fn overhead(&self) -> usize {
        let state = self.state.read();
        state.tree.bytes() + state.indexes.bytes() + self.table.bytes()
    }

    /// Inserts or replaces an object in the table; the edit completes the change.
    pub(super) fn put(&self, new: Arc<CachedObject>, indexing: Indexing) -> Edit {
        Edit {
            // From here on readers by key see the change.
            old: self.table.insert(Arc::clone(&new)),
            new: Some(new),
            indexing,
        }
    }

    /// Removes an object from the table; the edit completes the change.
    pub(super) fn remove(&self, key: &str) -> Edit {
        Edit {
            old: self.table.remove(key),
            new: None,
            indexing: Indexing::Replace(Values::new()),
        }
    }

    /// Applies edits to the list state, all under one lock.
    pub(super) fn complete(&self, edits: &mut Vec<Edit>) {
        // Replaced objects are freed after the lock is released: freeing takes longer than replacing.
        let mut dropped = Vec::with_capacity(edits.len());
        // One lock for the batch: readers of lists see all of its changes or none, up to `CHUNK` at a time.
        let mut state = self.state.write();
        for edit in edits.drain(..) {
            dropped.extend(state.edit(edit));
        }
        drop(state);
    }
}

impl ListState {
    /// Updates the total size after the form of objects has changed.
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

    /// Applies an edit; returns the object that it replaces, to be dropped later.
    ///
    /// Edits come in the order in which the table applied them, so the old object is the one in the tree.
    fn edit(&mut self, edit: Edit) -> Option<Arc<CachedObject>> {
        let Edit { old, new, indexing } = edit;
        if let Indexing::Replace(values) = indexing {
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
        // Added first: the sum is unsigned.
        self.bytes = self.bytes + bytes(new) - bytes(old);
        let whole =
            |object: Option<&CachedObject>| usize::from(object.is_some_and(|o| o.has_content()));
        self.whole = self.whole + whole(new) - whole(old);
    }
}

/// A hash table in shards: a read takes one of sixteen locks, for a lookup and a reference count.
///
/// Keys are in the objects. With keys kept there, dashmap takes a fifth to a third longer for a change; with keys
/// beside the objects, it takes more memory: `docs/benchmarks.md`.
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

    /// Inserts an object; returns its previous state.
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

    /// Removes an object.
    fn remove(&self, key: &str) -> Option<Arc<CachedObject>> {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash).write();
        let is_it = |each: &Arc<CachedObject>| each.key().as_str() == key;
        let (old, _) = shard.find_entry(hash, is_it).ok()?.remove();
        // A kind that has shrunk must not keep the table of its largest size. An eighth, so that shrinking is rare.
        if shard.len() < shard.capacity() / 8 {
            let rehash = |each: &Arc<CachedObject>| self.hasher.hash_one(each.key().as_str());
            shard.shrink_to_fit(rehash);
        }
        Some(old)
    }

    /// Returns the number of objects.
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
        // hashbrown uses the lowest and the highest bits, so the shard uses bits between.
        &self.shards[(hash >> 40) as usize % SHARDS]
    }
}

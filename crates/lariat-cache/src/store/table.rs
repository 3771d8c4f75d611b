//! Objects by key, for reads that wait for nobody.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::RwLock;

use super::object::CachedObject;

/// How many locks there are.
const SHARDS: usize = 16;

/// A hash table in shards: a read takes one lock of sixteen, for a lookup and a reference count.
#[derive(Debug, Default)]
pub(super) struct Table {
    shards: [RwLock<HashTable<Arc<CachedObject>>>; SHARDS],
    hasher: DefaultHashBuilder,
}

impl Table {
    /// Returns an object.
    pub(super) fn get(&self, key: &str) -> Option<Arc<CachedObject>> {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard(hash).read();
        shard
            .find(hash, |object| object.key().as_str() == key)
            .cloned()
    }

    /// Puts an object in, in the place of its earlier state.
    pub(super) fn insert(&self, object: Arc<CachedObject>) {
        let hash = self.hasher.hash_one(object.key().as_str());
        let mut shard = self.shard(hash).write();
        let is_it = |each: &Arc<CachedObject>| each.key() == object.key();
        match shard.find_mut(hash, is_it) {
            Some(place) => {
                let old = std::mem::replace(place, object);
                drop(shard);
                drop(old);
            }
            None => {
                let rehash = |each: &Arc<CachedObject>| self.hasher.hash_one(each.key().as_str());
                shard.insert_unique(hash, object, rehash);
            }
        }
    }

    /// Takes an object out.
    pub(super) fn remove(&self, key: &str) {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash).write();
        let is_it = |each: &Arc<CachedObject>| each.key().as_str() == key;
        if let Ok(entry) = shard.find_entry(hash, is_it) {
            let (old, _) = entry.remove();
            if shard.len() < shard.capacity() / 8 {
                let rehash = |each: &Arc<CachedObject>| self.hasher.hash_one(each.key().as_str());
                shard.shrink_to_fit(rehash);
            }
            drop(shard);
            drop(old);
        }
    }

    /// Returns how many objects there are.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().len()).sum()
    }

    /// Returns the memory of the table itself.
    pub(super) fn bytes(&self) -> usize {
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

//! Keys to slots: each key is stored once and named by a number.

use std::hash::{BuildHasher, Hash};
use std::ops::{Index as Indexing, IndexMut};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::slab::Slab;

/// A map whose entries keep their slot number until they are removed.
///
/// The hash of a key is kept beside its slot and its entry, so that growing, shrinking and removing do
/// not read keys, which lie somewhere else in memory.
#[derive(Debug)]
pub(super) struct Index<K, V> {
    table: HashTable<Place>,
    hasher: Hasher,
    slots: Slab<Slotted<K, V>>,
}

/// A slot in use, and the hash of its key.
#[derive(Debug, Clone, Copy)]
struct Place {
    slot: u32,
    hash: Hashed,
}

/// Hashes keys, also outside the lock around the table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hasher(DefaultHashBuilder);

impl Hasher {
    pub(crate) fn hash(&self, key: &impl Hash) -> Hashed {
        let hash = self.0.hash_one(key);
        Hashed((hash ^ (hash >> 32)) as u32)
    }
}

/// Half of a hash: 32 bits tell four billion keys apart well enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hashed(u32);

impl Hashed {
    /// Returns what the table needs: it takes its bits from both ends.
    fn spread(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.0)
    }
}

#[derive(Debug)]
pub(super) struct Slotted<K, V> {
    pub(super) key: K,
    hash: Hashed,
    pub(super) value: V,
}

/// A table smaller than this is not worth shrinking, only to grow again.
const SHRINK_FROM: usize = 16 * 1024;

impl<K: Eq + Hash, V> Index<K, V> {
    pub(super) fn new() -> Self {
        Self {
            table: HashTable::new(),
            hasher: Hasher::default(),
            slots: Slab::new(),
        }
    }

    pub(super) fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    fn find_hashed(&self, key: &K, hash: Hashed) -> Option<u32> {
        let is_it = |place: &Place| place.hash == hash && key_at(&self.slots, place.slot) == key;
        self.table
            .find(hash.spread(), is_it)
            .map(|place| place.slot)
    }

    /// Returns the slot of a key, if it has one.
    pub(super) fn find(&self, key: &K) -> Option<u32> {
        self.find_hashed(key, self.hasher.hash(key))
    }

    /// Returns the slot of a key, with a new value if there is none.
    pub(super) fn find_or_insert(
        &mut self,
        (key, hash): (K, Hashed),
        value: impl FnOnce() -> V,
    ) -> u32 {
        if let Some(slot) = self.find_hashed(&key, hash) {
            return slot;
        }
        let value = value();
        let slot = self.slots.insert(Slotted { key, hash, value });
        let place = Place { slot, hash };
        self.table
            .insert_unique(hash.spread(), place, |place| place.hash.spread());
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let Some(slotted) = self.slots.remove(slot) else {
            return;
        };
        let hash = slotted.hash.spread();
        if let Ok(entry) = self.table.find_entry(hash, |place| place.slot == slot) {
            entry.remove();
        }
        // Keys that were forgotten leave no memory behind; shrinking to a quarter keeps the cost per
        // removal constant.
        if self.table.capacity() > SHRINK_FROM && self.table.len() < self.table.capacity() / 8 {
            let size = self.table.capacity() / 4;
            self.table.shrink_to(size, |place| place.hash.spread());
        }
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Slotted<K, V>> {
        self.slots.get(slot)
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Slotted<K, V>> {
        self.slots.get_mut(slot)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Iterates over the slots in use, in ascending order: that of the table differs between two runs of a program.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        self.slots.numbers()
    }
}

#[cfg(test)]
impl<K, V> Index<K, V> {
    /// Returns how many keys there is room for without growing.
    pub(super) fn room(&self) -> usize {
        self.table.capacity().max(self.slots.room())
    }
}

fn key_at<K, V>(slots: &Slab<Slotted<K, V>>, slot: u32) -> &K {
    &slots.get(slot).expect("the table names slots in use").key
}

impl<K: Eq + Hash, V> Indexing<u32> for Index<K, V> {
    type Output = Slotted<K, V>;

    fn index(&self, slot: u32) -> &Slotted<K, V> {
        self.get(slot).expect("the slot is in use")
    }
}

impl<K: Eq + Hash, V> IndexMut<u32> for Index<K, V> {
    fn index_mut(&mut self, slot: u32) -> &mut Slotted<K, V> {
        self.get_mut(slot).expect("the slot is in use")
    }
}

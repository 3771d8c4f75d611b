//! Maps keys to slots: each key is stored once and is identified by its slot number.

use std::hash::{BuildHasher, Hash};
use std::ops::{Index as Indexing, IndexMut};

use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;

/// A map from keys to values with stable slot numbers.
///
/// A value keeps its slot number until it is removed; then the number is used again. The hash of each key is stored in
/// its entry, so that growing and removing read no keys: keys usually point to memory elsewhere.
#[derive(Debug)]
pub(super) struct Index<K, V> {
    /// The slot of every key.
    table: HashTable<u32>,
    /// Hashes the keys.
    hasher: Hasher,
    /// The keys and values: slot `n` is place `n % CHUNK` of chunk `n / CHUNK`.
    ///
    /// Values do not move, so growing copies at most one chunk. A chunk without values has no memory.
    chunks: Vec<Slab<Slotted<K, V>>>,
    /// The numbers of the chunks that have room, each once; the last one is filled first.
    open: Vec<u32>,
}

/// The number of places in a chunk.
const CHUNK: usize = 256;

/// A table up to this size keeps its memory.
const SHRINK_FROM: usize = 16 * 1024;

/// Hashes keys; a clone hashes outside the lock of the queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hasher(DefaultHashBuilder);

impl Hasher {
    /// Returns the hash of a key.
    pub(crate) fn hash(&self, key: &impl Hash) -> Hashed {
        Hashed(self.0.hash_one(key))
    }
}

/// The hash of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hashed(u64);

/// A key, its hash and its value.
#[derive(Debug)]
pub(super) struct Slotted<K, V> {
    /// The key.
    pub(super) key: K,
    hash: Hashed,
    /// The value.
    pub(super) value: V,
}

impl<K: Eq + Hash, V> Index<K, V> {
    /// Creates an empty map.
    pub(super) fn new() -> Self {
        Self {
            table: HashTable::new(),
            hasher: Hasher::default(),
            chunks: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Returns the hasher of the keys.
    pub(super) fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Returns the slot of a key with this hash, if the map contains it.
    fn find_hashed(&self, key: &K, hash: Hashed) -> Option<u32> {
        let is_it = |slot: &u32| in_use(&self.chunks, *slot).key == *key;
        self.table.find(hash.0, is_it).copied()
    }

    /// Returns the slot of a key, if the map contains it.
    pub(super) fn find(&self, key: &K) -> Option<u32> {
        self.find_hashed(key, self.hasher.hash(key))
    }

    /// Returns the slot of a key; inserts a new value if there is none.
    pub(super) fn find_or_insert(
        &mut self,
        key: K,
        hash: Hashed,
        value: impl FnOnce() -> V,
    ) -> u32 {
        if let Some(slot) = self.find_hashed(&key, hash) {
            return slot;
        }
        let value = value();
        let slot = self.store(Slotted { key, hash, value });
        let chunks = &self.chunks;
        let rehash = |slot: &u32| in_use(chunks, *slot).hash.0;
        self.table.insert_unique(hash.0, slot, rehash);
        slot
    }

    /// Stores a value in a chunk with room and returns its slot.
    fn store(&mut self, slotted: Slotted<K, V>) -> u32 {
        let number = self.open.last().copied().unwrap_or_else(|| {
            let number = u32::try_from(self.chunks.len()).expect("memory ends before the numbers");
            self.chunks.push(Slab::new());
            self.open.push(number);
            number
        });
        let chunk = &mut self.chunks[number as usize];
        let place = chunk.insert(slotted);
        if chunk.len() == CHUNK {
            self.open.pop();
        }
        number * CHUNK as u32 + place as u32
    }

    /// Removes the key and value of a slot; does nothing if the slot is vacant.
    pub(super) fn remove(&mut self, slot: u32) {
        let (number, place) = split(slot);
        let Some(chunk) = self.chunks.get_mut(number) else {
            return;
        };
        let was_full = chunk.len() == CHUNK;
        let Some(slotted) = chunk.try_remove(place) else {
            return;
        };
        if was_full {
            self.open.push(number as u32);
        }
        if chunk.is_empty() {
            *chunk = Slab::new();
        }
        let found = self.table.find_entry(slotted.hash.0, |each| *each == slot);
        if let Ok(found) = found {
            found.remove();
        }
        // Shrinking by four at an eighth leaves the table half full, so growing and shrinking cannot alternate, and the
        // cost per removal stays constant.
        let most = self.table.capacity();
        if most > SHRINK_FROM && self.table.len() < most / 8 {
            let chunks = &self.chunks;
            let rehash = |slot: &u32| in_use(chunks, *slot).hash.0;
            self.table.shrink_to(most / 4, rehash);
        }
    }

    /// Returns the key and value of a slot.
    pub(super) fn get(&self, slot: u32) -> Option<&Slotted<K, V>> {
        let (chunk, place) = split(slot);
        self.chunks.get(chunk)?.get(place)
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Iterates over the slots in use, in ascending order.
    ///
    /// This order is reproducible. The order of the table is not: its hasher is seeded at random.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        let chunks = (0_u32..).step_by(CHUNK).zip(&self.chunks);
        chunks.flat_map(|(first, chunk)| chunk.iter().map(move |(place, _)| first + place as u32))
    }
}

#[cfg(test)]
impl<K, V> Index<K, V> {
    /// Returns how many keys fit without growing.
    pub(super) fn room(&self) -> usize {
        let chunks = self.chunks.iter().map(Slab::capacity);
        self.table.capacity().max(chunks.sum())
    }
}

impl<K: Eq + Hash, V> Indexing<u32> for Index<K, V> {
    type Output = Slotted<K, V>;

    fn index(&self, slot: u32) -> &Slotted<K, V> {
        in_use(&self.chunks, slot)
    }
}

impl<K: Eq + Hash, V> IndexMut<u32> for Index<K, V> {
    fn index_mut(&mut self, slot: u32) -> &mut Slotted<K, V> {
        let (chunk, place) = split(slot);
        &mut self.chunks[chunk][place]
    }
}

/// Returns the key and value of a slot in use.
fn in_use<K, V>(chunks: &[Slab<Slotted<K, V>>], slot: u32) -> &Slotted<K, V> {
    let (chunk, place) = split(slot);
    &chunks[chunk][place]
}

/// Returns the chunk of a slot and the place within it.
fn split(slot: u32) -> (usize, usize) {
    (slot as usize / CHUNK, slot as usize % CHUNK)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn insert(index: &mut Index<u32, u32>, key: u32, value: u32) -> u32 {
        let hash = index.hasher().hash(&key);
        index.find_or_insert(key, hash, || value)
    }

    #[test]
    fn index_gives_memory_back_although_last_key_stays() {
        let mut index = Index::new();
        let slots: Vec<u32> = (0..100_000).map(|key| insert(&mut index, key, 0)).collect();
        assert!(
            (100_000..300_000).contains(&index.room()),
            "{}",
            index.room()
        );
        let (last, others) = slots.split_last().unwrap();
        others.iter().for_each(|slot| index.remove(*slot));
        assert_eq!((index.len(), index.find(&99_999)), (1, Some(*last)));
        assert!(index.room() <= SHRINK_FROM, "{}", index.room());
        for key in 0..1_000 {
            insert(&mut index, key, 0);
        }
        assert!(
            index.slots().all(|slot| slot < 100_000),
            "slots are used again"
        );
        let held: usize = index.chunks.iter().map(Slab::capacity).sum();
        assert!(held <= 1_001 + 2 * CHUNK, "{held}");
    }

    #[test]
    fn index_of_many_keys_shrinks_once_an_eighth_is_left() {
        let mut index = Index::new();
        let slots: Vec<u32> = (0..20_000).map(|key| insert(&mut index, key, 0)).collect();
        let mut room = index.table.capacity();
        for slot in slots {
            index.remove(slot);
            // A removed key may leave a tombstone, which takes one place.
            if index.table.capacity() + 1 < room {
                break;
            }
            room = index.table.capacity();
        }
        assert!(index.len() < room / 8, "{} of {room}", index.len());
        assert!(index.len() + 2 > room / 16, "{} of {room}", index.len());
        assert!(index.table.capacity() >= 2 * index.len());
    }

    #[test]
    fn index_of_few_keys_keeps_its_room() {
        let mut index = Index::new();
        let slots: Vec<u32> = (0..10_000).map(|key| insert(&mut index, key, 0)).collect();
        slots.iter().for_each(|slot| index.remove(*slot));
        assert!(index.table.capacity() >= 5_000);
    }

    proptest! {
        #[test]
        fn index_is_a_map_whose_slots_stay(steps in prop::collection::vec((any::<bool>(), 0_u32..1500), 0..4000)) {
            let (mut index, mut model) = (Index::new(), BTreeMap::new());
            for (at, (inserts, key)) in (0..).zip(steps) {
                if inserts {
                    let slot = insert(&mut index, key, at);
                    let known = *model.entry(key).or_insert((slot, at));
                    prop_assert_eq!((slot, index[slot].value), known);
                } else if let Some((slot, _)) = model.remove(&key) {
                    index.remove(slot);
                    index.remove(slot);
                    prop_assert!(index.get(slot).is_none());
                }
                prop_assert_eq!(index.len(), model.len());
                let vacant = |chunk: &Slab<_>| chunk.len() < CHUNK;
                prop_assert_eq!(index.open.len(), index.chunks.iter().filter(|chunk| vacant(chunk)).count());
            }
            let mut slots: Vec<u32> = model.values().map(|(slot, _)| *slot).collect();
            slots.sort_unstable();
            prop_assert!(index.slots().eq(slots));
            for (key, (slot, value)) in &model {
                prop_assert_eq!(index.find(key), Some(*slot));
                prop_assert_eq!((index[*slot].key, index[*slot].value), (*key, *value));
            }
        }
    }
}

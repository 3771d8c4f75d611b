//! Keys to slots: each key is stored once and named by a number.

use std::hash::{BuildHasher, Hash};
use std::ops::{Index as Indexing, IndexMut};

use hashbrown::{DefaultHashBuilder, HashTable};

/// A map whose entries keep their slot number until they are removed.
#[derive(Debug)]
pub(super) struct Index<K, V> {
    /// The slots in use, found by the hash of their key.
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// `None` exactly at the positions in `free`.
    slots: Vec<Option<Slotted<K, V>>>,
    free: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Slotted<K, V> {
    pub(super) key: K,
    pub(super) value: V,
}

impl<K: Eq + Hash, V> Index<K, V> {
    pub(super) fn new() -> Self {
        Self {
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Returns the slot of a key, with a new value if there is none.
    pub(super) fn find_or_insert(&mut self, key: K, value: impl FnOnce() -> V) -> u32 {
        let hash = self.hasher.hash_one(&key);
        let slots = &self.slots;
        if let Some(slot) = self.table.find(hash, |slot| *key_at(slots, *slot) == key) {
            return *slot;
        }
        let value = Some(Slotted {
            key,
            value: value(),
        });
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = value;
            slot
        } else {
            self.slots.push(value);
            u32::try_from(self.slots.len() - 1).expect("memory ends before four billion keys do")
        };
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.table
            .insert_unique(hash, slot, |slot| hasher.hash_one(key_at(slots, *slot)));
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let Some(slotted) = self.slots[slot as usize].take() else {
            return;
        };
        let hash = self.hasher.hash_one(&slotted.key);
        if let Ok(entry) = self.table.find_entry(hash, |each| *each == slot) {
            entry.remove();
        }
        self.free.push(slot);
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Slotted<K, V>> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Slotted<K, V>> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Iterates over the slots in use.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        self.table.iter().copied()
    }
}

fn key_at<K, V>(slots: &[Option<Slotted<K, V>>], slot: u32) -> &K {
    &slots[slot as usize]
        .as_ref()
        .expect("the table names slots in use")
        .key
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

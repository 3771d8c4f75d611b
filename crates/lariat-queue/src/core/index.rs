//! Maps keys to slots: each key is stored once and identified by its slot number.

use std::hash::{BuildHasher, Hash};
use std::hint;
use std::ops::{Index as Indexing, IndexMut};

use hashbrown::DefaultHashBuilder;

/// A map whose entries keep their slot number until they are removed.
///
/// The hash of a key is stored with its slot and its entry. So growing, shrinking and removing do not read keys, which
/// are elsewhere in memory.
#[derive(Debug)]
pub(super) struct Index<K, V> {
    table: SlotTable,
    hasher: Hasher,
    slots: Slab<Slotted<K, V>>,
}

/// Hashes keys, also outside the lock of the table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hasher(DefaultHashBuilder);

impl Hasher {
    pub(crate) fn hash(&self, key: &impl Hash) -> Hashed {
        let hash = self.0.hash_one(key);
        Hashed((hash ^ (hash >> 32)) as u32)
    }
}

/// Half of a 64-bit hash; 32 bits distinguish enough keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hashed(u32);

#[derive(Debug)]
pub(super) struct Slotted<K, V> {
    pub(super) key: K,
    hash: Hashed,
    pub(super) value: V,
}

impl<K: Eq + Hash, V> Index<K, V> {
    pub(super) fn new() -> Self {
        Self {
            table: SlotTable::default(),
            hasher: Hasher::default(),
            slots: Slab::new(),
        }
    }

    pub(super) fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    fn find_hashed(&self, key: &K, hash: Hashed) -> Option<u32> {
        self.table
            .find(hash, |slot| key_at(&self.slots, slot) == key)
    }

    /// Returns the slot of a key, if it has one.
    pub(super) fn find(&self, key: &K) -> Option<u32> {
        self.find_hashed(key, self.hasher.hash(key))
    }

    /// Returns the slot of a key, after inserting a new value if there is none.
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
        let slot = self.slots.insert(Slotted { key, hash, value });
        self.table.insert(SlotPlace { hash, slot });
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) {
        if let Some(slotted) = self.slots.remove(slot) {
            self.table.remove(SlotPlace {
                hash: slotted.hash,
                slot,
            });
        }
    }

    /// Prefetches the table's place of a slot that is about to be removed.
    pub(super) fn prefetch(&self, slot: u32) {
        if let Some(slotted) = self.get(slot) {
            self.table.prefetch(slotted.hash);
        }
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Slotted<K, V>> {
        self.slots.get(slot)
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Slotted<K, V>> {
        self.slots.get_mut(slot)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len
    }

    /// Iterates over the slots in use, in ascending order.
    ///
    /// The order of the table differs between two runs of a program; this one does not.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        self.slots.numbers()
    }
}

#[cfg(test)]
impl<K, V> Index<K, V> {
    /// Returns how many keys there is room for without growing.
    pub(super) fn room(&self) -> usize {
        self.table.most().max(self.slots.room())
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

/// A hash table of slots, with open addressing and linear probing.
///
/// A place is one word, so a search reads one line of the processor's cache, seldom two.
#[derive(Debug, Default)]
struct SlotTable {
    /// Empty, or a power of two long; at least a quarter is vacant.
    places: Box<[SlotPlace]>,
    len: usize,
}

/// A slot in use, and the hash of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SlotPlace {
    hash: Hashed,
    /// `NO_SLOT` if the place is vacant.
    slot: u32,
}

const NO_SLOT: u32 = u32::MAX;

const VACANT: SlotPlace = SlotPlace {
    hash: Hashed(0),
    slot: NO_SLOT,
};

const SMALLEST: usize = 16;

/// A table smaller than this is not worth shrinking, only to grow again.
const SHRINK_FROM: usize = 16 * 1024;

impl SlotTable {
    /// Returns how many slots fit without growing.
    fn most(&self) -> usize {
        self.places.len() / 4 * 3
    }

    /// Returns where the search for a hash begins.
    fn home(&self, hash: Hashed) -> usize {
        hash.0 as usize & (self.places.len().wrapping_sub(1))
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }

    /// Returns the distance from one place to a later one, around the end of the table.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.places.len() - 1)
    }

    fn find(&self, hash: Hashed, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.home(hash);
        loop {
            let place = self.places.get(at)?;
            if place.slot == NO_SLOT {
                return None;
            }
            if place.hash == hash && is_it(place.slot) {
                return Some(place.slot);
            }
            at = self.after(at);
        }
    }

    /// Adds a slot that the table does not contain.
    fn insert(&mut self, place: SlotPlace) {
        if self.len >= self.most() {
            self.resize((2 * self.places.len()).max(SMALLEST));
        }
        self.len += 1;
        self.put(place);
    }

    fn put(&mut self, place: SlotPlace) {
        let mut at = self.home(place.hash);
        while self.places[at].slot != NO_SLOT {
            at = self.after(at);
        }
        self.places[at] = place;
    }

    /// Removes a slot and closes the gap.
    ///
    /// Each place behind the gap moves up if its search began at the gap or before it; otherwise a search would stop at
    /// the gap and miss it.
    fn remove(&mut self, place: SlotPlace) {
        let mut gap = self.home(place.hash);
        while self.places[gap] != place {
            if self.places[gap].slot == NO_SLOT {
                return;
            }
            gap = self.after(gap);
        }
        let mut at = self.after(gap);
        while self.places[at].slot != NO_SLOT {
            let home = self.home(self.places[at].hash);
            if self.distance(home, at) >= self.distance(gap, at) {
                self.places[gap] = self.places[at];
                gap = at;
            }
            at = self.after(at);
        }
        self.places[gap] = VACANT;
        self.len -= 1;
        // Shrinking to a quarter, at an eighth of the size, keeps the cost per removal constant.
        if self.places.len() > SHRINK_FROM && self.len < self.places.len() / 8 {
            self.resize(self.places.len() / 4);
        }
    }

    fn resize(&mut self, size: usize) {
        let places = vec![VACANT; size].into_boxed_slice();
        let old = std::mem::replace(&mut self.places, places);
        let used = old.iter().filter(|place| place.slot != NO_SLOT);
        used.for_each(|place| self.put(*place));
    }

    /// Reads a place before it is needed. Nothing depends on the result, so the processor does not wait for it.
    fn prefetch(&self, hash: Hashed) {
        let place = self.places.get(self.home(hash));
        hint::black_box(place.map(|place| place.slot));
    }
}

/// The number of places in a chunk.
const CHUNK: usize = 256;

/// Values under numbers that stay the same until the value is removed.
///
/// The numbers of removed values are used again.
#[derive(Debug)]
pub(super) struct Slab<T> {
    /// By chunk number; `None` for a freed chunk.
    chunks: Vec<Option<Chunk<T>>>,
    /// Chunks that may have room, each once; the last one is filled first.
    ///
    /// Freed chunks are among them.
    open: Vec<u32>,
    /// How many empty chunks are kept.
    empty: usize,
}

#[derive(Debug)]
struct Chunk<T> {
    places: Vec<Cell<T>>,
    /// The first vacant place; `END` if there is none.
    vacant: u16,
    used: u16,
    /// Whether the chunk is in `open`.
    is_open: bool,
}

#[derive(Debug)]
enum Cell<T> {
    Used(T),
    /// The next vacant place.
    Vacant(u16),
}

/// How many empty chunks are kept, to save allocations.
const SPARES: usize = 16;

const END: u16 = u16::MAX;

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            open: Vec::new(),
            empty: 0,
        }
    }

    pub(super) fn insert(&mut self, value: T) -> u32 {
        let number = self.chunk_with_room();
        let chunk = self.chunks[number as usize]
            .as_mut()
            .expect("a chunk with room exists");
        self.empty -= usize::from(chunk.used == 0);
        let at = chunk.put(value);
        number * CHUNK as u32 + u32::from(at)
    }

    /// Returns a chunk with room, which is the last of the open ones.
    fn chunk_with_room(&mut self) -> u32 {
        while let Some(&number) = self.open.last() {
            match &mut self.chunks[number as usize] {
                Some(chunk) if chunk.has_room() => return number,
                Some(full) => {
                    full.is_open = false;
                    self.open.pop();
                }
                freed => {
                    *freed = Some(Chunk::new());
                    self.empty += 1;
                    return number;
                }
            }
        }
        let number = u32::try_from(self.chunks.len()).expect("memory ends before the numbers do");
        self.chunks.push(Some(Chunk::new()));
        self.empty += 1;
        self.open.push(number);
        number
    }

    pub(super) fn remove(&mut self, at: u32) -> Option<T> {
        let (number, place) = split(at);
        let chunk = self.chunks.get_mut(number as usize)?.as_mut()?;
        let value = chunk.take(place)?;
        if !chunk.is_open {
            chunk.is_open = true;
            self.open.push(number);
        }
        if chunk.used == 0 {
            self.empty += 1;
        }
        if chunk.used == 0 && self.empty > SPARES {
            // The number stays in `open`, so that the chunk is allocated again when it is needed.
            self.chunks[number as usize] = None;
            self.empty -= 1;
        }
        Some(value)
    }

    /// Returns the numbers of all values, in ascending order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        let chunks = (0..)
            .step_by(CHUNK)
            .zip(&self.chunks)
            .filter_map(|(first, chunk)| Some((first, chunk.as_ref()?)));
        chunks.flat_map(|(first, chunk): (u32, &Chunk<T>)| {
            let places = (first..).zip(&chunk.places);
            let used = places.filter(|(_, place)| matches!(place, Cell::Used(_)));
            used.map(|(number, _)| number)
        })
    }

    pub(super) fn get(&self, at: u32) -> Option<&T> {
        let (number, place) = split(at);
        match self
            .chunks
            .get(number as usize)?
            .as_ref()?
            .places
            .get(place)?
        {
            Cell::Used(value) => Some(value),
            Cell::Vacant(_) => None,
        }
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        let (number, place) = split(at);
        let chunk = self.chunks.get_mut(number as usize)?.as_mut()?;
        match chunk.places.get_mut(place)? {
            Cell::Used(value) => Some(value),
            Cell::Vacant(_) => None,
        }
    }
}

fn split(at: u32) -> (u32, usize) {
    (at / CHUNK as u32, at as usize % CHUNK)
}

impl<T> Chunk<T> {
    /// Creates a chunk that is in `open`.
    fn new() -> Self {
        Self {
            places: Vec::new(),
            vacant: END,
            used: 0,
            is_open: true,
        }
    }

    fn has_room(&self) -> bool {
        usize::from(self.used) < CHUNK
    }

    fn put(&mut self, value: T) -> u16 {
        self.used += 1;
        if self.vacant == END {
            self.places.push(Cell::Used(value));
            return self.places.len() as u16 - 1;
        }
        let at = self.vacant;
        let place = &mut self.places[usize::from(at)];
        if let Cell::Vacant(next) = *place {
            self.vacant = next;
        }
        *place = Cell::Used(value);
        at
    }

    fn take(&mut self, at: usize) -> Option<T> {
        let place = self.places.get_mut(at)?;
        if matches!(place, Cell::Vacant(_)) {
            return None;
        }
        let taken = std::mem::replace(place, Cell::Vacant(self.vacant));
        self.vacant = at as u16;
        self.used -= 1;
        match taken {
            Cell::Used(value) => Some(value),
            Cell::Vacant(_) => None,
        }
    }
}

#[cfg(test)]
impl<T> Slab<T> {
    fn allocated(&self) -> usize {
        self.chunks.iter().flatten().count()
    }

    /// Returns how many places there are, used or not.
    pub(super) fn room(&self) -> usize {
        self.allocated() * CHUNK
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn chunks_without_values_are_freed_but_a_few() {
        let mut slab = Slab::new();
        let places: Vec<u32> = (0..100 * CHUNK).map(|value| slab.insert(value)).collect();
        assert_eq!(slab.allocated(), 100);
        for at in &places[1..] {
            slab.remove(*at);
        }
        assert_eq!(slab.allocated(), 1 + SPARES);
        assert_eq!(slab.get(places[0]), Some(&0));
        for value in 0..50 * CHUNK {
            slab.insert(value);
        }
        assert!(slab.allocated() <= 51 + SPARES, "{}", slab.allocated());
        assert!(slab.chunks.len() <= 100 && slab.open.len() <= 100);
    }

    #[test]
    fn a_table_grows_and_gives_its_memory_back() {
        let mut table = SlotTable::default();
        assert_eq!(table.find(Hashed(7), |_| true), None);
        let place = |slot: u32| SlotPlace {
            hash: Hashed(slot.wrapping_mul(0x9E37_79B9)),
            slot,
        };
        (0..100_000).for_each(|slot| table.insert(place(slot)));
        assert!((100_000..300_000).contains(&table.places.len()));
        (0..100_000).for_each(|slot| table.remove(place(slot)));
        assert!(table.len == 0 && table.places.len() <= SHRINK_FROM);
        assert!(table.places.iter().all(|place| *place == VACANT));
    }

    proptest! {
        /// Hashes are few and near the end, so that clusters are long and go around it.
        #[test]
        fn a_table_finds_what_was_inserted_and_not_removed(
            steps in prop::collection::vec((any::<bool>(), 0_usize..200, any::<u8>()), 0..600),
        ) {
            let (mut table, mut model, mut next) = (SlotTable::default(), Vec::new(), 0);
            for (inserts, which, hash) in steps {
                if inserts || model.is_empty() {
                    let hash = Hashed(u32::from(hash % 4).wrapping_sub(u32::from(hash % 7)));
                    let place = SlotPlace { hash, slot: next };
                    next += 1;
                    table.insert(place);
                    model.push(place);
                } else {
                    let place = model.swap_remove(which % model.len());
                    table.remove(place);
                    prop_assert_eq!(table.find(place.hash, |slot| slot == place.slot), None);
                }
                prop_assert_eq!(table.len, model.len());
                for place in &model {
                    let found = table.find(place.hash, |slot| slot == place.slot);
                    prop_assert_eq!(found, Some(place.slot));
                }
            }
        }

        #[test]
        fn it_is_a_map_from_numbers(steps in prop::collection::vec((any::<bool>(), 0_usize..2000), 0..3000)) {
            let (mut slab, mut model, mut next) = (Slab::new(), BTreeMap::new(), 0);
            for (inserts, which) in steps {
                if inserts || model.is_empty() {
                    next += 1;
                    prop_assert_eq!(model.insert(slab.insert(next), next), None);
                } else {
                    let at = *model.keys().nth(which % model.len()).unwrap();
                    prop_assert_eq!(slab.get(at).copied(), model.get(&at).copied());
                    prop_assert_eq!(slab.remove(at), model.remove(&at));
                    prop_assert_eq!(slab.remove(at), None);
                }
            }
            prop_assert!(slab.numbers().eq(model.keys().copied()));
            for (at, value) in &model {
                prop_assert_eq!(slab.get_mut(*at), Some(&mut value.clone()));
            }
        }
    }
}

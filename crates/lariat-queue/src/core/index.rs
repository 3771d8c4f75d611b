//! Maps keys to slots: each key is stored once and is identified by its slot number.
//!
//! [`Index`] combines a hash table of slot numbers with a slab of entries. The table contains only hashes and slot
//! numbers, eight bytes each, so that a lookup touches one cache line of the table and then the entry.

use std::hash::{BuildHasher, Hash};
use std::hint;
use std::ops::{Index as Indexing, IndexMut};

use hashbrown::DefaultHashBuilder;

/// A map from keys to values with stable slot numbers.
///
/// A value keeps its slot number until it is removed. The hash of each key is stored beside its slot and in its entry,
/// so that growing, shrinking and removing read no keys: keys usually point to memory elsewhere.
#[derive(Debug)]
pub(super) struct Index<K, V> {
    /// Finds the slot of a key by its hash.
    table: SlotTable,
    /// Hashes the keys.
    hasher: Hasher,
    /// The keys and values, by slot number.
    slots: Slab<Slotted<K, V>>,
}

/// Hashes keys; a clone hashes outside the lock of the queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hasher(DefaultHashBuilder);

impl Hasher {
    /// Returns the hash of a key.
    pub(crate) fn hash(&self, key: &impl Hash) -> Hashed {
        let hash = self.0.hash_one(key);
        Hashed((hash ^ (hash >> 32)) as u32)
    }
}

/// A 64-bit hash folded to 32 bits.
///
/// Keys with equal hashes are distinguished by comparison, so 32 bits cost an extra comparison in rare cases, and
/// nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hashed(u32);

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
            table: SlotTable::default(),
            hasher: Hasher::default(),
            slots: Slab::new(),
        }
    }

    /// Returns the hasher of the keys.
    pub(super) fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Returns the slot of a key with this hash, if the map contains it.
    fn find_hashed(&self, key: &K, hash: Hashed) -> Option<u32> {
        self.table
            .find(hash, |slot| key_at(&self.slots, slot) == key)
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
        let slot = self.slots.insert(Slotted { key, hash, value });
        self.table.insert(SlotPlace { hash, slot });
        slot
    }

    /// Removes the key and value of a slot; does nothing if the slot is vacant.
    pub(super) fn remove(&mut self, slot: u32) {
        if let Some(slotted) = self.slots.remove(slot) {
            self.table.remove(SlotPlace {
                hash: slotted.hash,
                slot,
            });
        }
    }

    /// Prefetches the memory of a slot that is about to be processed and removed.
    pub(super) fn prefetch(&self, slot: u32) {
        if let Some(slotted) = self.get(slot) {
            self.table.prefetch(slotted.hash);
        }
    }

    /// Returns the key and value of a slot.
    pub(super) fn get(&self, slot: u32) -> Option<&Slotted<K, V>> {
        self.slots.get(slot)
    }

    /// Returns the key and value of a slot, mutably.
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Slotted<K, V>> {
        self.slots.get_mut(slot)
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.table.len
    }

    /// Iterates over the slots in use, in ascending order.
    ///
    /// This order is reproducible. The order of the table is not: its hasher is seeded at random.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        self.slots.numbers()
    }
}

#[cfg(test)]
impl<K, V> Index<K, V> {
    /// Returns how many keys fit without growing.
    pub(super) fn room(&self) -> usize {
        self.table.most().max(self.slots.room())
    }
}

/// Returns the key of a slot in use.
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
/// A place is one 8-byte word, so most searches read one cache line.
#[derive(Debug, Default)]
struct SlotTable {
    /// Empty, or a power of two long; at least a quarter is vacant.
    places: Box<[SlotPlace]>,
    /// The number of places in use.
    len: usize,
}

/// A slot in use and the hash of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SlotPlace {
    hash: Hashed,
    /// The slot, or `NO_SLOT` if the place is vacant.
    slot: u32,
}

/// The slot number of a vacant place.
const NO_SLOT: u32 = u32::MAX;

/// A vacant place.
const VACANT: SlotPlace = SlotPlace {
    hash: Hashed(0),
    slot: NO_SLOT,
};

/// The size of the smallest table that is not empty.
const SMALLEST: usize = 16;

/// A table up to this size keeps its memory.
const SHRINK_FROM: usize = 16 * 1024;

impl SlotTable {
    /// Returns how many slots fit without growing: three quarters of the places.
    fn most(&self) -> usize {
        self.places.len() / 4 * 3
    }

    /// Returns the place at which the search for a hash begins.
    fn home(&self, hash: Hashed) -> usize {
        // An empty table has no valid place; the mask is then all ones, and `find` gets `None` for any index.
        hash.0 as usize & (self.places.len().wrapping_sub(1))
    }

    /// Returns the next place; after the last comes the first.
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }

    /// Returns the distance from one place to a later one, across the end of the table.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.places.len() - 1)
    }

    /// Returns the slot with this hash that `is_it` accepts.
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

    /// Inserts a slot that the table does not contain.
    fn insert(&mut self, place: SlotPlace) {
        if self.len >= self.most() {
            self.resize((2 * self.places.len()).max(SMALLEST));
        }
        self.len += 1;
        self.put(place);
    }

    /// Writes a slot into the first vacant place from its home on.
    fn put(&mut self, place: SlotPlace) {
        let mut at = self.home(place.hash);
        while self.places[at].slot != NO_SLOT {
            at = self.after(at);
        }
        self.places[at] = place;
    }

    /// Removes a slot and closes the gap it leaves.
    ///
    /// Without tombstones, a search stops at the first vacant place. So each following place moves into the gap if its
    /// own search begins at the gap or before it.
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
            // The element may move to the gap if its home is not between the gap and its place. Distances wrap around
            // the end of the table, so the comparison holds across it.
            let home = self.home(self.places[at].hash);
            if self.distance(home, at) >= self.distance(gap, at) {
                self.places[gap] = self.places[at];
                gap = at;
            }
            at = self.after(at);
        }
        self.places[gap] = VACANT;
        self.len -= 1;
        // Shrinking by four at an eighth leaves the table half full, so growing and shrinking cannot alternate, and the
        // cost per removal stays constant.
        if self.places.len() > SHRINK_FROM && self.len < self.places.len() / 8 {
            self.resize(self.places.len() / 4);
        }
    }

    /// Moves all slots to a table of another size.
    fn resize(&mut self, size: usize) {
        let places = vec![VACANT; size].into_boxed_slice();
        let old = std::mem::replace(&mut self.places, places);
        let used = old.iter().filter(|place| place.slot != NO_SLOT);
        used.for_each(|place| self.put(*place));
    }

    /// Reads a place before it is needed.
    ///
    /// Nothing depends on the result, so the processor does not wait for it.
    fn prefetch(&self, hash: Hashed) {
        let place = self.places.get(self.home(hash));
        hint::black_box(place.map(|place| place.slot));
    }
}

/// The number of places in a chunk.
const CHUNK: usize = 256;

/// Values under numbers that stay the same until the value is removed.
///
/// Values are in chunks of 256 places that never move, so growing copies nothing. Numbers of removed values are used
/// again, and chunks that become empty are freed, except for a few.
#[derive(Debug)]
pub(super) struct Slab<T> {
    /// The chunks by number; `None` for a freed chunk.
    chunks: Vec<Option<Chunk<T>>>,
    /// The chunks that may have room, each once; the last one is filled first.
    ///
    /// Freed chunks are among them.
    open: Vec<u32>,
    /// How many allocated chunks have no value.
    empty: usize,
}

/// A block of places.
#[derive(Debug)]
struct Chunk<T> {
    /// The places that have been used so far.
    places: Vec<Cell<T>>,
    /// The first place of the list of vacant places; `END` if it is empty.
    vacant: u16,
    /// The number of values.
    used: u16,
    /// Whether the chunk's number is in `open`.
    is_open: bool,
}

/// A place of a chunk.
#[derive(Debug)]
enum Cell<T> {
    /// A value.
    Used(T),
    /// Vacant; the number is the next vacant place of the chunk, or `END`.
    Vacant(u16),
}

/// How many empty chunks are kept, to save allocations.
const SPARES: usize = 16;

/// The end of a list of vacant places.
const END: u16 = u16::MAX;

impl<T> Slab<T> {
    /// Creates an empty slab.
    pub(super) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            open: Vec::new(),
            empty: 0,
        }
    }

    /// Stores a value and returns its number.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        let number = self.chunk_with_room();
        let chunk = self.chunks[number as usize]
            .as_mut()
            .expect("a chunk with room exists");
        self.empty -= usize::from(chunk.used == 0);
        let at = chunk.put(value);
        number * CHUNK as u32 + u32::from(at)
    }

    /// Returns the number of a chunk with room, which is the last of `open`.
    fn chunk_with_room(&mut self) -> u32 {
        // A full chunk is removed from `open` only here, when it is found full, so that `insert` does not check after
        // every value.
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

    /// Removes and returns the value of a number.
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

    /// Iterates over the numbers of all values, in ascending order.
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

    /// Returns the value of a number.
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

    /// Returns the value of a number, mutably.
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        let (number, place) = split(at);
        let chunk = self.chunks.get_mut(number as usize)?.as_mut()?;
        match chunk.places.get_mut(place)? {
            Cell::Used(value) => Some(value),
            Cell::Vacant(_) => None,
        }
    }
}

/// Returns the chunk and the place within it of a number.
fn split(at: u32) -> (u32, usize) {
    (at / CHUNK as u32, at as usize % CHUNK)
}

impl<T> Chunk<T> {
    /// Creates an empty chunk; its number must be in `open`.
    fn new() -> Self {
        Self {
            places: Vec::new(),
            vacant: END,
            used: 0,
            is_open: true,
        }
    }

    /// Returns whether a further value fits.
    fn has_room(&self) -> bool {
        usize::from(self.used) < CHUNK
    }

    /// Stores a value and returns its place.
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

    /// Removes and returns the value of a place.
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

    /// Returns the number of places, used or vacant.
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

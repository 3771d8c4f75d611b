//! A fair priority queue: the line of keys that wait for a lane outside the work queue.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use lariat_queue::Priority;

/// How many times in a row other keys may be taken before the oldest.
const OVERTAKEN: u32 = 3;

/// A line with a larger capacity frees its memory when it is empty.
const LARGE: usize = 1024;

/// A fair priority queue of keys.
///
/// The highest priority comes first, and within a priority the oldest key. At least every fourth key is the oldest of
/// all priorities. So a key that joins `n` others is taken after at most `4 × (n + 1)` keys, whatever joins later.
///
/// A key is in line at most once. If it joins again, it keeps its age and gets the higher of both priorities. Joining
/// again costs a hash look-up. Adding or taking a key, or raising its priority, costs the logarithm of the length.
#[derive(Debug)]
pub(super) struct Line<K, T> {
    /// All keys in line.
    places: HashMap<K, InLine<T>>,
    /// The keys of each priority by number; the same keys as in `places`.
    levels: [BTreeMap<u64, K>; Priority::ALL.len()],
    /// The number of the next new key.
    next_number: u64,
    /// How many keys in a row were taken before the oldest.
    overtaken: u32,
}

/// A key in line.
#[derive(Debug)]
struct InLine<T> {
    priority: Priority,
    /// The age: a lower number is older.
    number: u64,
    value: T,
}

impl<K: Eq + Hash + Clone, T> Line<K, T> {
    pub(super) fn new() -> Self {
        Self {
            places: HashMap::new(),
            levels: Default::default(),
            next_number: 0,
            overtaken: 0,
        }
    }

    /// Adds a key. If it is in line already, `merge` combines the two values.
    pub(super) fn join(
        &mut self,
        key: K,
        priority: Priority,
        value: T,
        merge: impl FnOnce(&mut T, T),
    ) {
        let Some(place) = self.places.get_mut(&key) else {
            return self.append(key, priority, value);
        };
        // The key keeps its number, and so its age: a key that changes all the time must not be moved back each time.
        merge(&mut place.value, value);
        if place.priority < priority {
            self.levels[place.priority as usize].remove(&place.number);
            place.priority = priority;
            self.levels[priority as usize].insert(place.number, key);
        }
    }

    fn append(&mut self, key: K, priority: Priority, value: T) {
        let number = self.next_number;
        self.next_number += 1;
        let place = InLine {
            priority,
            number,
            value,
        };
        self.levels[priority as usize].insert(number, key.clone());
        self.places.insert(key, place);
    }

    /// Takes the next key.
    pub(super) fn next(&mut self) -> Option<(K, Priority, T)> {
        let first = |level: &BTreeMap<u64, K>| level.keys().next().copied();
        // The lowest number of a level is its oldest key.
        let heads = self.levels.each_ref().map(first);
        let highest = heads.iter().rposition(Option::is_some)?;
        let oldest = heads.iter().flatten().min().copied();
        // The count starts again with every oldest key, whether its priority or the bound has brought it to the front.
        let number = if heads[highest] == oldest || self.overtaken == OVERTAKEN {
            self.overtaken = 0;
            oldest
        } else {
            self.overtaken += 1;
            heads[highest]
        };
        // Numbers are unique over all levels, so only one level has it.
        let mut levels = self.levels.iter_mut();
        let key = levels.find_map(|level| level.remove(&number?))?;
        let place = self.places.remove(&key)?;
        // After an initial list with thousands of keys in line, the map would keep its capacity.
        if self.places.is_empty() && self.places.capacity() > LARGE {
            self.places = HashMap::new();
        }
        Some((key, place.priority, place.value))
    }

    /// Takes all keys, by priority and then by age.
    pub(super) fn take_all(&mut self) -> Vec<(K, Priority, T)> {
        let mut places = std::mem::take(&mut self.places);
        let levels = std::mem::take(&mut self.levels);
        let keys = levels.into_iter().rev().flat_map(BTreeMap::into_values);
        let taken = keys.filter_map(|key| {
            let place = places.remove(&key)?;
            Some((key, place.priority, place.value))
        });
        taken.collect()
    }

    /// Iterates over the keys in line, by priority and then by age.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, Priority, &T)> {
        let keys = self.levels.iter().rev().flat_map(BTreeMap::values);
        keys.filter_map(|key| {
            let (priority, value) = self.get(key)?;
            Some((key, priority, value))
        })
    }

    /// Returns the priority and the value of a key in line.
    pub(super) fn get(&self, key: &K) -> Option<(Priority, &T)> {
        let place = self.places.get(key)?;
        Some((place.priority, &place.value))
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::HashSet;
    use std::hash::Hasher;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A line that is looked through from the front for everything.
    #[derive(Default)]
    struct Naive {
        /// The oldest first.
        waiting: Vec<(u8, Priority, Vec<u8>)>,
        overtaken: u32,
    }

    impl Naive {
        fn join(&mut self, key: u8, priority: Priority, value: u8) {
            match self.waiting.iter_mut().find(|each| each.0 == key) {
                Some(each) => {
                    each.1 = each.1.max(priority);
                    each.2.push(value);
                }
                None => self.waiting.push((key, priority, vec![value])),
            }
        }

        fn next(&mut self) -> Option<(u8, Priority, Vec<u8>)> {
            let highest = self.waiting.iter().map(|each| each.1).max()?;
            let mut at = self.waiting.iter().position(|each| each.1 == highest)?;
            if at > 0 && self.overtaken == 3 {
                at = 0;
            }
            self.overtaken = if at == 0 { 0 } else { self.overtaken + 1 };
            Some(self.waiting.remove(at))
        }
    }

    #[derive(Debug, Clone)]
    enum ModelStep {
        Join(u8, Priority, u8),
        Next,
        TakeAll,
    }

    fn steps() -> impl Strategy<Value = Vec<ModelStep>> {
        let priority = || prop::sample::select(&Priority::ALL[..]);
        let join = || (0..20_u8, priority(), any::<u8>());
        let join =
            || join().prop_map(|(key, priority, value)| ModelStep::Join(key, priority, value));
        vec(
            prop_oneof![8 => join(), 5 => Just(ModelStep::Next), 1 => Just(ModelStep::TakeAll)],
            1..200,
        )
    }

    fn join<K: Eq + Hash + Clone>(line: &mut Line<K, Vec<u8>>, key: K, priority: Priority) {
        line.join(key, priority, Vec::new(), |mine, theirs| {
            mine.extend(theirs);
        });
    }

    proptest! {
        #[test]
        fn a_line_does_what_one_does_that_is_looked_through(steps in steps()) {
            let (mut line, mut naive) = (Line::new(), Naive::default());
            for step in steps {
                match step {
                    ModelStep::Join(key, priority, value) => {
                        line.join(key, priority, vec![value], |mine, theirs| mine.extend(theirs));
                        naive.join(key, priority, value);
                    }
                    ModelStep::Next => prop_assert_eq!(line.next(), naive.next()),
                    ModelStep::TakeAll => {
                        let taken = line.take_all();
                        naive.waiting.sort_by_key(|each| std::cmp::Reverse(each.1));
                        prop_assert_eq!(taken, std::mem::take(&mut naive.waiting));
                    }
                }
                prop_assert_eq!(line.len(), naive.waiting.len());
                prop_assert_eq!(line.levels.iter().map(BTreeMap::len).sum::<usize>(), line.len());
            }
        }
    }

    #[test]
    fn what_is_urgent_does_not_wait_behind_the_initial_list() {
        let mut line = Line::new();
        for number in 0..1000 {
            join(&mut line, number, Priority::Low);
        }
        join(&mut line, 1000, Priority::Normal);
        // In line since the list, and changed now.
        join(&mut line, 999, Priority::Normal);
        join(&mut line, 1001, Priority::High);
        let keys: Vec<i32> = (0..4).map(|_| line.next().unwrap().0).collect();
        assert_eq!(keys, [1001, 999, 1000, 0]);
    }

    #[test]
    fn the_oldest_key_has_its_turn_within_four_whatever_overtakes() {
        let mut line = Line::new();
        for number in 0..10 {
            join(&mut line, number, Priority::Low);
        }
        let mut low = Vec::new();
        for turn in 0..40 {
            join(&mut line, 100 + turn, Priority::High);
            let (key, ..) = line.next().unwrap();
            low.extend((key < 100).then_some((key, turn)));
        }
        let expected: Vec<(i32, i32)> = (0..10).map(|key| (key, key * 4 + 3)).collect();
        assert_eq!(low, expected);
    }

    thread_local! {
        /// How many keys were compared.
        static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    #[derive(Debug, Clone)]
    struct Counted(u32);

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            COMPARED.set(COMPARED.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted {}

    impl Hash for Counted {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    #[test]
    fn a_long_line_costs_each_key_that_joins_it_the_same() {
        let compared = |keys: u32| {
            COMPARED.set(0);
            let mut line = Line::new();
            // Each joins, joins again and rises, and has its turn.
            (0..keys).for_each(|key| join(&mut line, Counted(key), Priority::Low));
            (0..keys).for_each(|key| join(&mut line, Counted(key), Priority::Normal));
            let turns: HashSet<u32> = std::iter::from_fn(|| line.next())
                .map(|(key, ..)| key.0)
                .collect();
            assert_eq!(turns.len(), keys as usize);
            COMPARED.get()
        };
        for keys in [1_000, 20_000] {
            // One when it joins again, one when it leaves, and a few whose hashes meet.
            let compared = compared(keys);
            assert!(compared < 3 * keys as usize, "{compared} for {keys} keys");
        }
    }
}

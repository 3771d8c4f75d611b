//! Postings: the keys of the objects that have a value.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use lariat_core::ObjectKey;

/// Sets of object keys, by a value that the objects have in common.
#[derive(Debug)]
pub(in crate::store) struct Postings<V> {
    by_value: HashMap<V, Posting>,
    /// The number of keys in all postings.
    keys: usize,
}

/// The keys of the objects with one value, in order.
#[derive(Debug)]
enum Posting {
    /// Most values belong to one object only.
    One(ObjectKey),
    Many(BTreeSet<ObjectKey>),
}

impl<V> Default for Postings<V> {
    fn default() -> Self {
        Self {
            by_value: HashMap::new(),
            keys: 0,
        }
    }
}

impl<V: Eq + Hash> Postings<V> {
    pub(super) fn add<Q>(&mut self, value: &Q, key: &ObjectKey)
    where
        V: Borrow<Q> + for<'a> From<&'a Q>,
        Q: Eq + Hash + ?Sized,
    {
        // By reference first, so that a known value is not copied.
        let Some(posting) = self.by_value.get_mut(value) else {
            self.by_value
                .insert(value.into(), Posting::One(key.clone()));
            self.keys += 1;
            return;
        };
        match posting {
            Posting::One(known) if known == key => return,
            Posting::One(known) => {
                // A set only from the second key on, which most values never get.
                *posting = Posting::Many(BTreeSet::from([known.clone(), key.clone()]));
            }
            Posting::Many(keys) => {
                if !keys.insert(key.clone()) {
                    return;
                }
            }
        }
        self.keys += 1;
    }

    pub(super) fn remove<Q>(&mut self, value: &Q, key: &ObjectKey)
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let empty = match self.by_value.get_mut(value) {
            None => return,
            // The key is not in the posting, so the count must stay.
            Some(Posting::One(known)) if known != key => return,
            Some(Posting::One(_)) => true,
            Some(Posting::Many(keys)) => {
                if !keys.remove(key) {
                    return;
                }
                keys.is_empty()
            }
        };
        self.keys -= 1;
        if empty {
            // Values come and go with their objects, so an empty posting must not stay.
            self.by_value.remove(value);
        }
    }

    /// Returns how many objects have a value.
    pub(super) fn count<Q>(&self, value: &Q) -> usize
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        match self.by_value.get(value) {
            None => 0,
            Some(Posting::One(_)) => 1,
            Some(Posting::Many(keys)) => keys.len(),
        }
    }

    /// Iterates over the objects that have a value, in key order.
    pub(super) fn keys<Q>(&self, value: &Q) -> impl Iterator<Item = &ObjectKey>
    where
        V: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let (one, many) = match self.by_value.get(value) {
            None => (None, None),
            Some(Posting::One(key)) => (Some(key), None),
            Some(Posting::Many(keys)) => (None, Some(keys)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// Returns the number of keys in all postings.
    pub(super) fn len(&self) -> usize {
        self.keys
    }

    /// Estimates the memory use in bytes.
    ///
    /// A node of a set has room for eleven keys and is about two thirds full.
    pub(super) fn bytes(&self) -> usize {
        self.keys * size_of::<ObjectKey>() * 3 / 2
            + self.by_value.capacity() * (size_of::<V>() + size_of::<Posting>() + 1)
    }
}

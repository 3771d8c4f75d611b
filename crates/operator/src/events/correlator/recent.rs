//! A map of bounded size that evicts the least recently used entry.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A map of bounded size, which evicts the least recently used entry.
///
/// Invariant: every key of `values` is in `order` exactly once, under the number that is stored with its value.
#[derive(Debug)]
pub(super) struct Recent<V> {
    capacity: usize,
    values: HashMap<Arc<str>, (u64, V)>,
    order: BTreeMap<u64, Arc<str>>,
    next: u64,
}

impl<V> Recent<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            values: HashMap::new(),
            order: BTreeMap::new(),
            next: 0,
        }
    }

    /// Returns the value of a key, creating it if needed, and marks it as used.
    pub(super) fn entry(&mut self, key: &str, make: impl FnOnce() -> V) -> &mut V {
        let number = self.next;
        self.next += 1;
        let key: Arc<str> = match self.values.get(key) {
            Some((used, _)) => self.order.remove(used),
            None => None,
        }
        .unwrap_or_else(|| key.into());
        // Inserted before the eviction, so that the new key is the youngest and never evicts itself.
        self.order.insert(number, Arc::clone(&key));
        if self.order.len() > self.capacity
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.values.remove(&oldest);
        }
        let entry = self.values.entry(key).or_insert_with(|| (number, make()));
        entry.0 = number;
        &mut entry.1
    }

    /// Returns the value of a key without marking it as used.
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        self.values.get_mut(key).map(|(_, value)| value)
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn remove(&mut self, key: &str) {
        if let Some((used, _)) = self.values.remove(key) {
            self.order.remove(&used);
        }
    }

    /// Returns all keys and values, the least recently used first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &V)> {
        let keys = self.order.values();
        keys.filter_map(|key| Some((key, &self.values.get(key)?.1)))
    }

    /// Returns all values in arbitrary order, faster than [`iter`](Self::iter).
    pub(super) fn unordered(&self) -> impl Iterator<Item = &V> {
        self.values.values().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_is_forgotten() {
        let mut recent = Recent::new(2);
        *recent.entry("a", || 1) += 10;
        recent.entry("b", || 2);
        assert_eq!(*recent.entry("a", || 0), 11);
        recent.entry("c", || 3);
        assert_eq!(recent.get_mut("b"), None);
        assert_eq!(recent.get_mut("a"), Some(&mut 11));
        recent.remove("a");
        recent.entry("d", || 4);
        assert_eq!(recent.get_mut("c"), Some(&mut 3));
        assert_eq!((recent.values.len(), recent.order.len()), (2, 2));
    }
}

//! Indexes of labels, created for the labels that selectors use.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lariat_core::{LabelSelector, ObjectKey};

use super::posting::Postings;
use crate::store::object::CachedObject;

/// How many labels have an index; a new index replaces the least recently used one.
pub(super) const MOST: usize = 8;

/// An index that was not used by this many queries in a row may be replaced.
const IN_USE: u64 = 64;

/// Objects by the values of the labels that selectors use.
#[derive(Debug, Default)]
pub(in crate::store) struct LabelIndexes {
    by_label: HashMap<Arc<str>, LabelIndex>,
    /// Counts uses of indexes; the time of `last_used`.
    clock: AtomicU64,
}

#[derive(Debug)]
pub(in crate::store) struct LabelIndex {
    by_value: Postings<Arc<str>>,
    last_used: AtomicU64,
}

/// The index entries that lead to the objects of a selector.
pub(in crate::store) struct LabelPath<'a> {
    index: &'a LabelIndex,
    values: &'a [String],
    /// How many objects the entries contain.
    pub(in crate::store) count: usize,
}

impl LabelIndexes {
    /// Returns the entries of the index with the fewest objects for a selector.
    pub(in crate::store) fn path<'a>(
        &'a self,
        selector: &'a LabelSelector,
    ) -> Option<LabelPath<'a>> {
        // Only requirements with given values lead to an index; others, such as `!canary`, filter the result.
        let paths = selector.required().filter_map(|(label, values)| {
            let index = self.by_label.get(label)?;
            // Relaxed and under a read lock: an approximate order of uses is enough to choose what is replaced.
            let now = self.clock.fetch_add(1, Ordering::Relaxed);
            index.last_used.store(now, Ordering::Relaxed);
            let count = values
                .iter()
                .map(|value| index.by_value.count(&**value))
                .sum();
            Some(LabelPath {
                index,
                values,
                count,
            })
        });
        paths.min_by_key(|path| path.count)
    }

    /// Returns how many labels have an index, and how many keys all indexes contain.
    pub(super) fn sizes(&self) -> (usize, usize) {
        let indexes = self.by_label.values();
        (
            self.by_label.len(),
            indexes.map(|index| index.by_value.len()).sum(),
        )
    }

    /// Returns whether a label has an index.
    pub(in crate::store) fn has(&self, label: &str) -> bool {
        self.by_label.contains_key(label)
    }

    /// Returns whether another index fits: there are few, or one is out of use.
    pub(in crate::store) fn has_room(&self) -> bool {
        let now = self.clock.load(Ordering::Relaxed);
        let unused = |index: &LabelIndex| {
            now.saturating_sub(index.last_used.load(Ordering::Relaxed)) >= IN_USE
        };
        // An index in use stays: queries for nine labels in turn would otherwise rebuild an index each time.
        self.by_label.len() < MOST || self.by_label.values().any(unused)
    }

    pub(in crate::store) fn add(&mut self, label: &str, index: LabelIndex) {
        if self.by_label.len() >= MOST {
            let used =
                |(_, index): &(&Arc<str>, &LabelIndex)| index.last_used.load(Ordering::Relaxed);
            let oldest = self.by_label.iter().min_by_key(used);
            // The next query for its label creates the index again.
            if let Some(oldest) = oldest.map(|(label, _)| Arc::clone(label)) {
                self.by_label.remove(&oldest);
            }
        }
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        index.last_used.store(now, Ordering::Relaxed);
        self.by_label.insert(label.into(), index);
    }

    /// Updates the indexes after an object was added, changed or removed.
    pub(super) fn update(&mut self, old: Option<&CachedObject>, new: Option<&CachedObject>) {
        for (label, index) in &mut self.by_label {
            let value =
                |object: Option<&CachedObject>| object?.labels().get(label).map(str::to_owned);
            let (before, after) = (value(old), value(new));
            // Most changes leave the labels alone.
            if before == after {
                continue;
            }
            if let (Some(value), Some(old)) = (before, old) {
                index.by_value.remove(&*value, old.key());
            }
            if let (Some(value), Some(new)) = (after, new) {
                index.by_value.add(&*value, new.key());
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.by_label
            .values()
            .map(|index| index.by_value.bytes())
            .sum()
    }
}

impl LabelIndex {
    /// Creates the index of a label from existing objects.
    pub(in crate::store) fn over<'a>(
        label: &str,
        objects: impl Iterator<Item = &'a Arc<CachedObject>>,
    ) -> Self {
        // Objects without the label are left out: a selector with given values never matches them.
        let mut by_value = Postings::default();
        for object in objects {
            if let Some(value) = object.labels().get(label) {
                by_value.add(value, object.key());
            }
        }
        Self {
            by_value,
            last_used: AtomicU64::new(0),
        }
    }
}

impl<'a> LabelPath<'a> {
    /// Returns the keys of the objects, in order.
    pub(in crate::store) fn keys(&self) -> Vec<&'a ObjectKey> {
        let mut keys: Vec<&ObjectKey> = self
            .values
            .iter()
            .flat_map(|value| self.index.by_value.keys(&**value))
            .collect();
        // The keys of one value are in order already.
        if self.values.len() > 1 {
            keys.sort_unstable();
            // `app in (web, web)` is legal.
            keys.dedup();
        }
        keys
    }
}

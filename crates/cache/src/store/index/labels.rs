//! Indexes of labels, created for the labels that selectors use.

use std::collections::HashMap;
use std::sync::Arc;

use lariat_core::{LabelSelector, ObjectKey};

use super::posting::Postings;
use crate::store::object::CachedObject;

/// How many labels have an index: the first ones that selectors need.
pub(super) const MOST: usize = 8;

/// Objects by the values of the labels that selectors use.
#[derive(Debug, Default)]
pub(in crate::store) struct LabelIndexes(HashMap<Arc<str>, LabelIndex>);

/// Objects by the values of a label.
pub(in crate::store) type LabelIndex = Postings<Arc<str>>;

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
            let index = self.0.get(label)?;
            let count = values.iter().map(|value| index.count(&**value)).sum();
            Some(LabelPath {
                index,
                values,
                count,
            })
        });
        paths.min_by_key(|path| path.count)
    }

    /// Returns the numbers of indexes and of keys in them.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.0.len(), self.0.values().map(Postings::len).sum())
    }

    pub(in crate::store) fn has(&self, label: &str) -> bool {
        self.0.contains_key(label)
    }

    pub(in crate::store) fn has_room(&self) -> bool {
        self.0.len() < MOST
    }

    pub(in crate::store) fn add(&mut self, label: &str, index: LabelIndex) {
        self.0.insert(label.into(), index);
    }

    /// Records that an object was put or removed.
    pub(super) fn update(&mut self, old: Option<&CachedObject>, new: Option<&CachedObject>) {
        for (label, index) in &mut self.0 {
            let value =
                |object: Option<&CachedObject>| object?.labels().get(label).map(str::to_owned);
            let (before, after) = (value(old), value(new));
            // Most changes leave the labels alone.
            if before == after {
                continue;
            }
            if let (Some(value), Some(old)) = (before, old) {
                index.remove(&*value, old.key());
            }
            if let (Some(value), Some(new)) = (after, new) {
                index.add(&*value, new.key());
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.values().map(Postings::bytes).sum()
    }
}

impl LabelIndex {
    /// Creates the index of a label over objects.
    pub(in crate::store) fn over<'a>(
        label: &str,
        objects: impl Iterator<Item = &'a Arc<CachedObject>>,
    ) -> Self {
        // Objects without the label are left out: a selector with given values never matches them.
        let mut index = Self::default();
        for object in objects {
            if let Some(value) = object.labels().get(label) {
                index.add(value, object.key());
            }
        }
        index
    }
}

impl<'a> LabelPath<'a> {
    /// Returns the keys in order.
    pub(in crate::store) fn keys(&self) -> Vec<&'a ObjectKey> {
        let values = self.values.iter();
        let keys = values.flat_map(|value| self.index.keys(&**value));
        let mut keys: Vec<&ObjectKey> = keys.collect();
        // The keys of one value are in order already.
        if self.values.len() > 1 {
            keys.sort_unstable();
            // `app in (web, web)` is legal.
            keys.dedup();
        }
        keys
    }
}

//! All indexes of a store.

use lariat_core::{ObjectKey, OwnerRef, TableSize, Uid};

use super::custom::{CustomIndex, Values};
use super::labels;
use super::labels::LabelIndexes;
use super::posting::Postings;
use crate::store::object::CachedObject;

/// All indexes of a kind.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    pub(crate) labels: LabelIndexes,
    /// Created by the first query for an owner.
    owners: Option<Postings<Uid>>,
    pub(crate) custom: Vec<CustomIndex>,
}

impl Indexes {
    /// Updates the indexes after an object was added, changed or removed.
    ///
    /// `values` are the values of the new state in the custom indexes.
    pub(crate) fn update(
        &mut self,
        old: Option<&CachedObject>,
        new: Option<&CachedObject>,
        values: Values,
    ) {
        if !has_same_labels(old, new) {
            self.labels.update(old, new);
        }
        self.update_owners(old, new);
        let Some(key) = new.or(old).map(|object| object.key()) else {
            return;
        };
        // In the order of the functions, which is the order of the indexes.
        let mut values = values.into_iter();
        for index in &mut self.custom {
            // A removed object comes without values, which removes its entries.
            index.put(key, values.next().unwrap_or_default());
        }
    }

    fn update_owners(&mut self, old: Option<&CachedObject>, new: Option<&CachedObject>) {
        let Some(owners) = &mut self.owners else {
            return;
        };
        if let (Some(old), Some(new)) = (old, new)
            && old.owners() == new.owners()
        {
            return;
        }
        // Most updates leave the owners unchanged and have returned by now. Removed before added: an owner that both
        // states have must remain.
        for (object, owner) in old.into_iter().flat_map(with_owners) {
            owners.remove(owner.uid(), object.key());
        }
        for (object, owner) in new.into_iter().flat_map(with_owners) {
            owners.add(owner.uid(), object.key());
        }
    }

    pub(crate) fn has_owners(&self) -> bool {
        self.owners.is_some()
    }

    /// Creates the index of owners from existing objects.
    pub(crate) fn index_owners<'a>(&mut self, objects: impl Iterator<Item = &'a CachedObject>) {
        self.owners = Some(Postings::default());
        for object in objects {
            self.update_owners(None, Some(object));
        }
    }

    /// Takes over the index of owners from another set of indexes.
    pub(crate) fn adopt_owners(&mut self, other: Self) {
        // The others of the fresh set are empty and must not replace those in use.
        self.owners = other.owners;
    }

    /// Iterates over the objects that have an owner, in key order.
    pub(crate) fn owned_by(&self, uid: &Uid) -> impl Iterator<Item = &ObjectKey> {
        self.owners.iter().flat_map(|owners| owners.keys(uid))
    }

    pub(crate) fn owned_count(&self, uid: &Uid) -> usize {
        self.owners.as_ref().map_or(0, |owners| owners.count(uid))
    }

    /// Returns the sizes of the indexes of a store with `objects` objects.
    ///
    /// The index of owners is not included: its bound is the number of owner references, which nothing counts.
    pub(crate) fn table_sizes(&self, objects: usize) -> [TableSize; 2] {
        let (labels, keys) = self.labels.sizes();
        let found: usize = self.custom.iter().map(CustomIndex::len).sum();
        let most = objects * (labels + self.custom.len());
        [
            TableSize::new("label indexes", labels, labels::MOST),
            TableSize::new("indexed objects", keys + found, most),
        ]
    }

    /// Estimates the memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let custom: usize = self.custom.iter().map(CustomIndex::bytes).sum();
        let owners = self.owners.as_ref().map_or(0, Postings::bytes);
        custom + owners + self.labels.bytes()
    }
}

/// Compares by address: most changes leave labels alone, and equal label sets are one allocation.
fn has_same_labels(old: Option<&CachedObject>, new: Option<&CachedObject>) -> bool {
    old.zip(new)
        .is_some_and(|(old, new)| old.labels().is_shared_with(new.labels()))
}

fn with_owners(object: &CachedObject) -> impl Iterator<Item = (&CachedObject, &OwnerRef)> {
    object.owners().iter().map(move |owner| (object, owner))
}

//! An ordered map of a kind's objects, whose snapshots are cheap.

use std::sync::Arc;

use lariat_core::ObjectKey;

use super::object::CachedObject;

/// The maximum number of objects in a leaf.
const LEAF: usize = 128;

/// An ordered map whose clones are snapshots.
///
/// The tree has two levels: leaves of up to 128 objects, and a list of leaves. A clone shares all of it. A change
/// copies the list and the leaf that it changes if a snapshot still uses them, and nothing otherwise.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    leaves: Arc<Vec<Leaf>>,
    len: usize,
}

#[derive(Debug, Clone)]
struct Leaf {
    /// At most the key of the first object; greater than all keys of the previous leaf.
    from: ObjectKey,
    /// In key order; never empty.
    objects: Arc<Vec<Arc<CachedObject>>>,
}

/// A snapshot of a kind's objects; a clone is the same snapshot.
///
/// A snapshot costs nothing until objects change, and then the memory of what has changed since.
///
/// ```
/// use lariat::{Cache, Metadata};
///
/// fn keys(pods: &Cache<Metadata>) -> Vec<String> {
///     let snapshot = pods.snapshot();
///     snapshot.iter().map(|pod| pod.key().to_string()).collect()
/// }
/// # let _ = keys;
/// ```
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(super) tree: Tree,
}

impl Snapshot {
    /// Returns an object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<CachedObject>> {
        self.tree.get(key.as_str())
    }

    /// Iterates over the objects in key order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<CachedObject>> {
        self.tree.iter()
    }

    /// Iterates over the objects of a namespace, in key order.
    ///
    /// ```
    /// use lariat::cache::Snapshot;
    ///
    /// fn keys(pods: &Snapshot) -> Vec<String> {
    ///     pods.in_namespace("shop").map(|pod| pod.key().to_string()).collect()
    /// }
    /// # let _ = keys;
    /// ```
    pub fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Arc<CachedObject>> {
        let prefix = format!("{namespace}/");
        let objects = self.tree.from(&prefix);
        objects.take_while(move |object| object.key().as_str().starts_with(&prefix))
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Returns whether the snapshot is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Tree {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the memory of the order itself, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let slots: usize = self.leaves.iter().map(|leaf| leaf.objects.capacity()).sum();
        slots * size_of::<Arc<CachedObject>>() + self.leaves.capacity() * (size_of::<Leaf>() + 40)
    }

    /// Returns an object.
    pub(super) fn get(&self, key: &str) -> Option<&Arc<CachedObject>> {
        let leaf = self.leaves.get(self.leaf_of(key))?;
        Some(&leaf.objects[leaf.find(key).ok()?])
    }

    /// Iterates in key order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<CachedObject>> {
        self.leaves.iter().flat_map(|leaf| leaf.objects.iter())
    }

    /// Iterates over the objects from a key on, in key order.
    pub(super) fn from(&self, start: &str) -> impl Iterator<Item = &Arc<CachedObject>> + use<'_> {
        let first = self.leaf_of(start);
        let skipped = match self.leaves.get(first) {
            Some(leaf) => leaf.find(start).unwrap_or_else(|place| place),
            None => 0,
        };
        let leaves = self.leaves.get(first..).unwrap_or_default();
        leaves
            .iter()
            .flat_map(|leaf| leaf.objects.iter())
            .skip(skipped)
    }

    /// Inserts an object; returns the one that it replaces.
    pub(super) fn insert(&mut self, object: Arc<CachedObject>) -> Option<Arc<CachedObject>> {
        let at = self.leaf_of(object.key().as_str());
        let leaves = Arc::make_mut(&mut self.leaves);
        let Some(leaf) = leaves.get_mut(at) else {
            let from = object.key().clone();
            leaves.push(Leaf {
                from,
                objects: Arc::new(vec![object]),
            });
            self.len = 1;
            return None;
        };
        let place = leaf.find(object.key().as_str());
        // Keeps `from` at most the first key: in the first leaf, a key may be smaller than all others.
        if place == Err(0) {
            leaf.from = object.key().clone();
        }
        let objects = Arc::make_mut(&mut leaf.objects);
        match place {
            Ok(place) => return Some(std::mem::replace(&mut objects[place], object)),
            Err(place) => objects.insert(place, object),
        }
        self.len += 1;
        if objects.len() > LEAF {
            // Keys that arrive in order, as in a list, leave full leaves behind rather than half-full ones. For keys in
            // any order, a split in the middle leaves room on both sides.
            let half = if place == Err(LEAF) { LEAF } else { LEAF / 2 };
            let right = objects.split_off(half);
            objects.shrink_to_fit();
            let from = right[0].key().clone();
            let objects = Arc::new(right);
            leaves.insert(at + 1, Leaf { from, objects });
        }
        None
    }

    /// Replaces a state of an object, which is found by its address.
    ///
    /// Comparing keys would fetch two lines of memory for each object of the leaf.
    pub(super) fn replace(
        &mut self,
        old: &Arc<CachedObject>,
        new: Arc<CachedObject>,
    ) -> Option<Arc<CachedObject>> {
        let at = self.leaf_of(old.key().as_str());
        let is_old = |each: &Arc<CachedObject>| Arc::ptr_eq(each, old);
        let leaf = self.leaves.get(at);
        let Some(place) = leaf.and_then(|leaf| leaf.objects.iter().position(is_old)) else {
            return self.insert(new);
        };
        let leaves = Arc::make_mut(&mut self.leaves);
        let objects = Arc::make_mut(&mut leaves[at].objects);
        Some(std::mem::replace(&mut objects[place], new))
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, key: &str) -> Option<Arc<CachedObject>> {
        let at = self.leaf_of(key);
        let place = self.leaves.get(at)?.find(key).ok()?;
        let leaves = Arc::make_mut(&mut self.leaves);
        let objects = Arc::make_mut(&mut leaves[at].objects);
        let removed = objects.remove(place);
        self.len -= 1;
        // `from` of the leaf stays: it may be less than its first key.
        if objects.is_empty() {
            leaves.remove(at);
        } else if objects.len() < LEAF / 4 {
            merge_with_next(leaves, at);
        }
        Some(removed)
    }

    /// Returns the index of the leaf to which a key belongs.
    fn leaf_of(&self, key: &str) -> usize {
        let after = self
            .leaves
            .partition_point(|leaf| leaf.from.as_str() <= key);
        after.saturating_sub(1)
    }
}

/// Merges a small leaf with the next one, if both fit in half a leaf.
fn merge_with_next(leaves: &mut Vec<Leaf>, at: usize) {
    let fits = |next: &Leaf| leaves[at].objects.len() + next.objects.len() <= LEAF / 2;
    if leaves.get(at + 1).is_some_and(fits) {
        let next = leaves.remove(at + 1);
        Arc::make_mut(&mut leaves[at].objects).extend(next.objects.iter().cloned());
    }
}

impl Leaf {
    fn find(&self, key: &str) -> Result<usize, usize> {
        self.objects
            .binary_search_by(|object| object.key().as_str().cmp(key))
    }
}

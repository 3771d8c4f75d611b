//! The raw store of one kind: the only place where its objects are kept.

mod change;
mod error;
mod object;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use lariat_core::ObjectKey;
use parking_lot::RwLock;

pub use change::Change;
pub use error::DecodeError;
pub use object::CachedObject;

/// The objects of one kind in key order.
///
/// Readers see each of them as it was at some moment, in the order in which the server changed it.
/// Only the reflector of the kind writes.
#[derive(Debug, Default)]
pub struct Store {
    objects: RwLock<Objects>,
}

#[derive(Debug, Default)]
struct Objects {
    by_key: BTreeMap<ObjectKey, Entry>,
    /// The sum of [`RawObject::bytes`](lariat_core::RawObject::bytes) over all entries.
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    object: Arc<CachedObject>,
    /// The number of the list that mentioned the object last.
    seen_by: u32,
}

/// The number of no list.
const NOT_LISTED: u32 = 0;

/// What the reflector learned about one object from a watch.
#[derive(Debug)]
pub(crate) enum Delta {
    /// The object is there, in this state.
    Present(CachedObject),
    /// The object is gone; this was its last state.
    Gone(CachedObject),
}

/// A list in progress: what it does not mention by its end is gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing {
    number: u32,
    initial: bool,
}

impl Listing {
    /// Begins a list after `earlier` others of the same store, whoever read them.
    pub(crate) fn after(earlier: u32, initial: bool) -> Self {
        // Never `NOT_LISTED`, and never the number of the list before.
        let number = earlier % (u32::MAX - 1) + 1;
        Self { number, initial }
    }
}

impl Store {
    /// Returns an object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<CachedObject>> {
        let objects = self.objects.read();
        objects
            .by_key
            .get(key)
            .map(|entry| Arc::clone(&entry.object))
    }

    /// Returns whether there is an object.
    #[must_use]
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.objects.read().by_key.contains_key(key)
    }

    /// Returns all objects, in key order, as they are at one moment.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Arc<CachedObject>> {
        let objects = self.objects.read();
        objects
            .by_key
            .values()
            .map(|entry| Arc::clone(&entry.object))
            .collect()
    }

    /// Returns the objects of one namespace, in key order, as they are at one moment.
    #[must_use]
    pub fn snapshot_in(&self, namespace: &str) -> Vec<Arc<CachedObject>> {
        // "0" is the character behind "/".
        let (start, end) = (format!("{namespace}/"), format!("{namespace}0"));
        let objects = self.objects.read();
        let bounds = (
            Bound::Included(start.as_str()),
            Bound::Excluded(end.as_str()),
        );
        let range = objects.by_key.range::<str, _>(bounds);
        range.map(|(_, entry)| Arc::clone(&entry.object)).collect()
    }

    /// Returns all keys in order, as they are at one moment.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.objects.read().by_key.keys().cloned().collect()
    }

    /// Returns how many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.read().by_key.len()
    }

    /// Returns whether there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes the objects hold; values decoded by users are theirs and not counted.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.objects.read().bytes
    }

    /// Takes in a page of a list; what has the version that is known already stays as it is.
    pub(crate) fn list_page(&self, listing: Listing, page: Vec<CachedObject>) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut objects = self.objects.write();
        for object in page {
            objects.put_listed(listing, object, &mut changes);
        }
        changes
    }

    /// Notes that a list mentions an object in a state that cannot be read: the last one that could be
    /// stays.
    pub(crate) fn list_unreadable(&self, listing: Listing, key: &ObjectKey) {
        if let Some(known) = self.objects.write().by_key.get_mut(key) {
            known.seen_by = listing.number;
        }
    }

    /// Ends a list: what it did not mention is gone.
    pub(crate) fn end_listing(&self, listing: Listing) -> Vec<Change> {
        let mut objects = self.objects.write();
        let is_gone = |_: &ObjectKey, entry: &mut Entry| entry.seen_by != listing.number;
        let gone: Vec<_> = objects
            .by_key
            .extract_if(.., is_gone)
            .map(|(_, entry)| entry)
            .collect();
        for entry in &gone {
            objects.bytes -= entry.object.bytes();
        }
        drop(objects);
        let deleted = |entry: Entry| Change::Deleted { last: entry.object };
        gone.into_iter().map(deleted).collect()
    }

    /// Takes in what a watch told, in its order.
    pub(crate) fn apply(&self, deltas: Vec<Delta>) -> Vec<Change> {
        let mut changes = Vec::with_capacity(deltas.len());
        // Values that no change holds are dropped behind the lock: freeing takes longer than replacing.
        let mut dropped = Vec::new();
        let mut objects = self.objects.write();
        for delta in deltas {
            match delta {
                Delta::Present(object) => objects.put_watched(object, &mut changes),
                Delta::Gone(last) => dropped.extend(objects.remove(last, &mut changes)),
            }
        }
        drop(objects);
        changes
    }
}

impl Objects {
    fn put_listed(&mut self, listing: Listing, object: CachedObject, changes: &mut Vec<Change>) {
        if let Some(known) = self.by_key.get_mut(object.key())
            && is_same_state(&known.object, &object)
        {
            known.seen_by = listing.number;
            return;
        }
        let entry = Entry {
            object: Arc::new(object),
            seen_by: listing.number,
        };
        self.put(entry, listing.initial, changes);
    }

    fn put_watched(&mut self, object: CachedObject, changes: &mut Vec<Change>) {
        let mut seen_by = NOT_LISTED;
        if let Some(known) = self.by_key.get(object.key()) {
            if is_stale(&known.object, &object) {
                return;
            }
            seen_by = known.seen_by;
        }
        let entry = Entry {
            object: Arc::new(object),
            seen_by,
        };
        self.put(entry, false, changes);
    }

    fn put(&mut self, entry: Entry, initial: bool, changes: &mut Vec<Change>) {
        let new = Arc::clone(&entry.object);
        self.bytes += new.bytes();
        let Some(old) = self.by_key.insert(new.key().clone(), entry) else {
            changes.push(Change::Added {
                object: new,
                initial,
            });
            return;
        };
        let old = old.object;
        self.bytes -= old.bytes();
        if old.uid() == new.uid() {
            changes.push(Change::Updated { old, new });
            return;
        }
        // Another object under the same name: its predecessor's end was not seen.
        changes.push(Change::Deleted { last: old });
        changes.push(Change::Added {
            object: new,
            initial: false,
        });
    }

    /// Removes an object; returns what was known of it, to be dropped.
    fn remove(&mut self, last: CachedObject, changes: &mut Vec<Change>) -> Option<Entry> {
        let known = self.by_key.get(last.key())?;
        // A deletion that is told again must not remove the object's successor.
        if known.object.uid() != last.uid() {
            return None;
        }
        let entry = self.by_key.remove(last.key())?;
        self.bytes -= entry.object.bytes();
        changes.push(Change::Deleted {
            last: Arc::new(last),
        });
        Some(entry)
    }
}

/// Returns whether nothing happened between two states.
fn is_same_state(known: &CachedObject, object: &CachedObject) -> bool {
    known.uid() == object.uid() && known.version() == object.version()
}

/// Returns whether a watch tells something that is known already, as after a reconnection.
fn is_stale(known: &CachedObject, object: &CachedObject) -> bool {
    let order = object.version().compare(known.version());
    known.uid() == object.uid() && matches!(order, Some(Ordering::Less | Ordering::Equal))
}

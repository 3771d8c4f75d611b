//! The version that a store has reached, per collection.

use std::cmp::Ordering;
use std::sync::Arc;

use lariat_core::{ObjectKey, ObjectMetadata, ResourceVersion};

/// The versions of a store's collections: an object that is missing at a version was deleted before.
#[derive(Debug, Default)]
pub(super) struct Reached(Vec<Collection>);

/// A collection that one reflector reads.
#[derive(Debug)]
struct Collection {
    /// The namespace; `None` for all.
    namespace: Option<Arc<str>>,
    /// The version up to which deletions are known; `None` before the first list ends.
    version: Option<ResourceVersion>,
    /// The number of the list in progress, if there is one.
    ///
    /// Deletions that a watch reports meanwhile do not make the store complete.
    listing: Option<u64>,
}

impl Reached {
    /// Records that the list of a number begins, of a namespace or of all.
    pub(super) fn begin(&mut self, begun: u64, namespace: Option<&Arc<str>>) {
        // The selection decides whether namespaces are read one by one or all together; the other form is outdated.
        let is_whole = namespace.is_none();
        self.0.retain(|each| each.namespace.is_none() == is_whole);
        let mut all = self.0.iter_mut();
        let Some(known) = all.find(|each| each.namespace.as_ref() == namespace) else {
            return self.0.push(Collection {
                namespace: namespace.cloned(),
                version: None,
                listing: Some(begun),
            });
        };
        known.listing = Some(begun);
    }

    /// Forgets everything, because the selection has changed.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// Records that the lists in progress are abandoned.
    pub(super) fn abandon(&mut self) {
        self.0.iter_mut().for_each(|each| each.listing = None);
    }

    /// Records that a list has ended at a version, of a namespace or of all.
    pub(super) fn end(&mut self, namespace: Option<&Arc<str>>, version: &ResourceVersion) {
        let mut all = self.0.iter_mut();
        if let Some(known) = all.find(|each| each.namespace.as_ref() == namespace) {
            known.listing = None;
            // Even if the version is smaller than before: the server may have been restored from a backup.
            known.version = Some(version.clone());
        }
    }

    /// Records that a watch reported the deletion of an object.
    ///
    /// Only deletions advance the version: it is used for objects that are not in the store.
    pub(super) fn ended(&mut self, last: &ObjectMetadata) {
        let is_in = |each: &&mut Collection| each.holds(last.key());
        let Some(known) = self.0.iter_mut().find(is_in) else {
            return;
        };
        // During a list the store lacks earlier deletions, so it is not complete up to this one.
        if known.listing.is_none()
            && let Some(version) = &mut known.version
            && last.version().compare(version) == Some(Ordering::Greater)
        {
            *version = last.version().clone();
        }
    }

    /// Returns whether a list in progress may be older than a write of a key.
    ///
    /// The write was answered when `begun` lists had begun.
    pub(super) fn is_listing(&self, key: &ObjectKey, begun: u64) -> bool {
        let mut of_key = self.0.iter().filter(|each| each.holds(key));
        of_key.any(|each| each.listing.is_some_and(|listing| listing <= begun))
    }

    /// Returns the number of collections.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether a state is at or before the version that the store has reached.
    ///
    /// If no object of its key is in the store then, it was deleted.
    pub(super) fn includes(&self, object: &ObjectMetadata) -> bool {
        let known = self.0.iter().find(|each| each.holds(object.key()));
        let version = known.and_then(|known| known.version.as_ref());
        let order = version.and_then(|version| object.version().compare(version));
        matches!(order, Some(Ordering::Less | Ordering::Equal))
    }
}

impl Collection {
    fn holds(&self, key: &ObjectKey) -> bool {
        self.namespace
            .as_deref()
            .is_none_or(|namespace| key.namespace() == Some(namespace))
    }
}

//! Up to which version a store is.

use std::cmp::Ordering;
use std::sync::Arc;

use lariat_core::{ObjectKey, ObjectMetadata, ResourceVersion};

use super::delta::Listing;

/// Up to which version the collections of a store are: what they do not have by then is gone.
#[derive(Debug, Default)]
pub(super) struct Reached(Vec<Collection>);

/// What one reflector reads.
#[derive(Debug)]
struct Collection {
    /// The namespace; none for all.
    namespace: Option<Arc<str>>,
    /// None until a first list has ended.
    version: Option<ResourceVersion>,
    /// Whether a list is in progress. What a watch tells meanwhile is not all that happened.
    is_listing: bool,
}

impl Reached {
    /// Notes that a list begins.
    pub(super) fn begin(&mut self, listing: &Listing) {
        // Namespaces are read one by one or all together, as the selection says.
        let is_whole = listing.namespace.is_none();
        self.0.retain(|each| each.namespace.is_none() == is_whole);
        let mut all = self.0.iter_mut();
        let Some(known) = all.find(|each| each.namespace == listing.namespace) else {
            return self.0.push(Collection {
                namespace: listing.namespace.clone(),
                version: None,
                is_listing: true,
            });
        };
        known.is_listing = true;
    }

    /// Forgets everything: other objects are selected from now on.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// Notes that a list of a version has ended.
    pub(super) fn end(&mut self, listing: &Listing, version: &ResourceVersion) {
        let mut all = self.0.iter_mut();
        if let Some(known) = all.find(|each| each.namespace == listing.namespace) {
            known.is_listing = false;
            // Also if that is less than before: the server may have been restored from a backup.
            known.version = Some(version.clone());
        }
    }

    /// Notes that a watch told the end of an object.
    pub(super) fn ended(&mut self, last: &ObjectMetadata) {
        let is_in = |each: &&mut Collection| each.holds(last.key());
        let Some(known) = self.0.iter_mut().find(is_in) else {
            return;
        };
        if !known.is_listing
            && let Some(version) = &mut known.version
            && last.version().compare(version) == Some(Ordering::Greater)
        {
            *version = last.version().clone();
        }
    }

    /// Returns whether the store was brought up to date with a state, or with a later one.
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

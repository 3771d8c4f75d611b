//! Making objects of bytes.

use lariat_core::{Gvk, Interner, ManagedFields, ObjectKey, RawObject, RawObjectError, Scan};

use super::page::Item;
use crate::store::{Content, Listing, Store};
use crate::transform::Transform;

/// Reads the objects of a kind as its cache wants them.
#[derive(Debug)]
pub(crate) struct Intake {
    gvk: Gvk,
    content: Content,
    managed_fields: ManagedFields,
    /// What is changed of objects with content.
    transform: Option<Transform>,
    interner: Interner,
    /// The key of the object that is looked at, to be used again.
    key: String,
}

/// What the reading of a listed object says.
#[derive(Debug)]
pub(super) enum Listed {
    /// The store has this state already.
    Known,
    News(RawObject),
    Unreadable(Option<ObjectKey>, RawObjectError),
}

impl Intake {
    pub(crate) fn new(
        gvk: Gvk,
        content: Content,
        managed_fields: ManagedFields,
        transform: Option<Transform>,
    ) -> Self {
        Self {
            gvk,
            content,
            managed_fields,
            transform,
            interner: Interner::new(),
            key: String::new(),
        }
    }

    pub(super) fn content(&self) -> Content {
        self.content
    }

    /// Reads an object.
    pub(crate) fn read(&mut self, json: &[u8]) -> Result<RawObject, RawObjectError> {
        let scan = Scan::new(json, &self.gvk)?;
        self.finish(scan)
    }

    /// Reads an item of a list.
    #[cfg(feature = "fuzzing")]
    pub(super) fn read_item(&mut self, item: Item<'_>) -> Result<RawObject, RawObjectError> {
        let scan = item.into_scan(&self.gvk)?;
        self.finish(scan)
    }

    /// Reads an object of a list; one whose state is known costs a look at its metadata.
    pub(super) fn listed(&mut self, item: Item<'_>, store: &Store, listing: &Listing) -> Listed {
        let json = item.json();
        let read = item.into_scan(&self.gvk).and_then(|scan| {
            self.key.clear();
            if !scan.namespace().is_empty() {
                self.key.push_str(scan.namespace());
                self.key.push('/');
            }
            self.key.push_str(scan.name());
            if store.is_listed(listing, &scan, &self.key) {
                return Ok(None);
            }
            self.finish(scan).map(Some)
        });
        match read {
            Ok(None) => Listed::Known,
            Ok(Some(object)) => Listed::News(object),
            Err(error) => Listed::Unreadable(RawObject::key_of(json), error),
        }
    }

    fn finish(&mut self, scan: Scan<'_>) -> Result<RawObject, RawObjectError> {
        // Nothing is there to be cut off.
        let is_partial = scan.is_partial();
        // What is more than metadata is not kept, should the server send it.
        if self.content == Content::MetadataOnly && !is_partial {
            return scan.into_metadata(&self.gvk, &mut self.interner, self.managed_fields);
        }
        let object = scan.into_object(&self.gvk, &mut self.interner, self.managed_fields)?;
        match &self.transform {
            Some(transform) if !is_partial => self.transformed(transform, object),
            _ => Ok(object),
        }
    }

    /// Changes an object; one whose content is no JSON is not taken in, for what is to be left out may be in it.
    fn transformed(
        &self,
        transform: &Transform,
        object: RawObject,
    ) -> Result<RawObject, RawObjectError> {
        match transform.change(object.json()) {
            Some(json) => Ok(object.with_json(json)),
            None => Scan::whole(object.json(), &self.gvk)
                .map(drop)
                .map(|()| object),
        }
    }
}

//! Making objects of bytes.

use lariat_core::{Gvk, Interner, ManagedFields, ObjectKey, RawObject, RawObjectError, Scan};

use crate::store::{Content, Listing, Store};
use crate::transform::Transform;

/// Reads the objects of a kind as its cache wants them.
#[derive(Debug)]
pub(crate) struct Intake {
    gvk: Gvk,
    content: Content,
    managed_fields: ManagedFields,
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
        // What is more than metadata is not kept, should the server send it.
        let transform = match content {
            Content::Whole => transform,
            Content::MetadataOnly => Some(Transform::keep::<&str>([])),
        };
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

    /// Reads an object of a list; one whose state is known costs a look at its metadata.
    pub(super) fn listed(&mut self, json: &[u8], store: &Store, listing: &Listing) -> Listed {
        let read = Scan::new(json, &self.gvk).and_then(|scan| {
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
        // Nothing is there to be cut off, which spares a pass.
        let is_partial = scan.is_partial();
        let object = scan.into_object(&self.gvk, &mut self.interner, self.managed_fields)?;
        Ok(match &self.transform {
            Some(_) if is_partial => object,
            Some(transform) => transform.apply(object),
            None => object,
        })
    }
}

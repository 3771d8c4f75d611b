//! One state of an object as bytes, with the metadata a controller needs beside it.

mod borrowed;
mod cut;
mod head;
mod interner;
mod metadata;
mod scan;
#[cfg(test)]
mod scan_tests;
#[cfg(test)]
mod tests;
mod uid;

use std::fmt;
use std::ops::Deref;

use crate::{Gvk, ObjectKey, StrictObject};
use borrowed::{Name, Named};
use head::Head;

pub use interner::Interner;
pub use metadata::{ObjectMetadata, OwnerRef};
pub use scan::{ManagedFields, Scan};
pub use uid::Uid;

/// One state of one object: compact metadata, and the JSON without `metadata.managedFields`.
///
/// Typed and dynamic values are decoded from the JSON on demand. [`parse`](Self::parse) makes one pass
/// over it and one copy of it; a [`Scan`] makes do with the metadata. It dereferences to its [`ObjectMetadata`].
#[derive(Clone)]
pub struct RawObject {
    metadata: ObjectMetadata,
    json: Box<[u8]>,
}

impl RawObject {
    /// Finds the key of an object whatever else is wrong with it; `None` if that is.
    #[must_use]
    pub fn key_of(json: &[u8]) -> Option<ObjectKey> {
        let StrictObject(named) = serde_json::from_slice::<StrictObject<Named<'_>>>(json).ok()?;
        let StrictObject(Name { namespace, name }) = &named.metadata;
        (!name.is_empty()).then(|| ObjectKey::namespaced(namespace, name))
    }

    /// Reads an object of a kind from its JSON.
    ///
    /// Built-in kinds arrive without `apiVersion` and `kind` inside lists; both are put back, so that
    /// what is stored can be read as any view. Unknown fields and their order are kept.
    ///
    /// All of the text is checked to be JSON; whether content and annotations are of the types that a decoder wants is not.
    /// Caches look at less of what a server sends: see [`Scan::new`].
    ///
    /// # Errors
    ///
    /// The text is not a JSON object, or lacks what every object has: `metadata.name`.
    pub fn parse(json: &[u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        Scan::whole(json, gvk)?.into_object(gvk, &mut Interner::new(), ManagedFields::Cut)
    }

    /// Copies the type and the metadata of an object, without its content.
    ///
    /// `None` if it is not written as API servers do, with type and metadata in front of the content.
    #[must_use]
    pub fn metadata_of(json: &[u8]) -> Option<Box<[u8]>> {
        let parts = Head::read(json.trim_ascii()).ok()?.parts;
        Some(cut::copy_metadata("{", parts, 0..0))
    }

    /// Returns the JSON.
    #[must_use]
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Puts another JSON in the place of the object's.
    #[must_use]
    pub fn with_json(self, json: impl Into<Box<[u8]>>) -> Self {
        Self {
            json: json.into(),
            ..self
        }
    }

    /// Takes the object apart.
    #[must_use]
    pub fn into_parts(self) -> (ObjectMetadata, Box<[u8]>) {
        (self.metadata, self.json)
    }
}

impl Deref for RawObject {
    type Target = ObjectMetadata;

    fn deref(&self) -> &ObjectMetadata {
        &self.metadata
    }
}

impl fmt::Debug for RawObject {
    /// Names the state; the content stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawObject")
            .field("metadata", &self.metadata)
            .field("json_bytes", &self.json.len())
            .finish()
    }
}

/// A JSON text that is not an object of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a {gvk}: {detail}")]
pub struct RawObjectError {
    gvk: Gvk,
    detail: String,
}

//! One state of an object as bytes, with the metadata a controller needs beside it.

mod borrowed;
mod cut;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::without_values;
use crate::{Gvk, Labels, ObjectKey, ResourceVersion};
use borrowed::{Envelope, Named};

/// One state of one object: compact metadata, and the JSON without `metadata.managedFields`.
///
/// This is the only form in which objects are kept; typed and dynamic values are decoded from it on
/// demand. [`parse`](Self::parse) makes one pass over the JSON and one copy of it.
#[derive(Clone)]
pub struct RawObject {
    key: ObjectKey,
    uid: Uid,
    version: ResourceVersion,
    generation: Option<i64>,
    deleting: bool,
    labels: Labels,
    owners: Box<[OwnerRef]>,
    finalizers: Box<[Box<str>]>,
    json: Box<[u8]>,
}

impl RawObject {
    /// Finds the key of an object whatever else is wrong with it; `None` if that is.
    #[must_use]
    pub fn key_of(json: &[u8]) -> Option<ObjectKey> {
        let named: Named<'_> = serde_json::from_slice(json).ok()?;
        let (namespace, name) = (&named.metadata.namespace, &named.metadata.name);
        (!name.is_empty()).then(|| ObjectKey::namespaced(namespace, name))
    }

    /// Reads an object of a kind from its JSON.
    ///
    /// Built-in kinds arrive without `apiVersion` and `kind` inside lists; both are put back, so that
    /// what is stored can be read as any view. Unknown fields and their order are kept.
    ///
    /// # Errors
    ///
    /// The text is not a JSON object, or lacks what every object has: `metadata.name`.
    pub fn parse(json: &[u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        let refuse = |detail: String| RawObjectError {
            gvk: gvk.clone(),
            detail,
        };
        let json = json.trim_ascii();
        // serde would read an array as a struct by position.
        if json.first().is_some_and(|byte| *byte != b'{') {
            return Err(refuse("expected a JSON object".into()));
        }
        let envelope: Envelope<'_> = serde_json::from_slice(json)
            .map_err(|error| refuse(without_values(&error.to_string())))?;
        let metadata = envelope.metadata;
        if metadata.name.is_empty() {
            return Err(refuse("metadata.name is empty".into()));
        }
        let cut = metadata
            .managed_fields
            .and_then(|value| cut::member_range(json, value, "managedFields"))
            .unwrap_or(0..0);
        let typed = envelope.kind.is_some() && envelope.api_version.is_some();
        Ok(Self {
            key: ObjectKey::namespaced(&metadata.namespace, &metadata.name),
            uid: Uid::new(&metadata.uid),
            version: ResourceVersion::new(&metadata.resource_version),
            generation: metadata.generation,
            deleting: metadata.deletion_timestamp.is_some(),
            labels: metadata.labels,
            owners: metadata
                .owner_references
                .into_iter()
                .map(OwnerRef::from)
                .collect(),
            finalizers: metadata
                .finalizers
                .into_iter()
                .map(|name| name.0.into())
                .collect(),
            json: cut::copy_without(json, cut, (!typed).then_some(gvk)),
        })
    }

    /// Returns namespace and name.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Returns the uid: two objects of one key and different uids are different objects.
    #[must_use]
    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// Returns the version of this state.
    #[must_use]
    pub fn version(&self) -> &ResourceVersion {
        &self.version
    }

    /// Returns `metadata.generation`, for kinds that count changes of their spec.
    #[must_use]
    pub fn generation(&self) -> Option<i64> {
        self.generation
    }

    /// Returns whether deletion was asked for and the object waits for finalizers or grace.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// Returns the labels.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Returns the owners.
    #[must_use]
    pub fn owners(&self) -> &[OwnerRef] {
        &self.owners
    }

    /// Returns the finalizers.
    pub fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.finalizers.iter().map(|name| &**name)
    }

    /// Returns the JSON, without `metadata.managedFields`.
    #[must_use]
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Returns the bytes this object holds: itself and everything it owns on the heap.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let owners: usize = self.owners.iter().map(OwnerRef::bytes).sum();
        let finalizers: usize = self.finalizers.iter().map(|name| name.len() + 16).sum();
        size_of::<Self>()
            + self.key.as_str().len()
            + self.labels.heap_bytes()
            + owners
            + finalizers
            + self.json.len()
    }
}

impl fmt::Debug for RawObject {
    /// Names the state; the content stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawObject")
            .field("key", &self.key)
            .field("uid", &self.uid)
            .field("version", &self.version)
            .field("json_bytes", &self.json.len())
            .finish_non_exhaustive()
    }
}

/// The uid of an object: sixteen bytes where it is a UUID, as the API server makes them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Uid(UidRepr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum UidRepr {
    /// A UUID in its canonical lower-case text form.
    Uuid([u8; 16]),
    Text(Box<str>),
}

impl Uid {
    /// Keeps the text of a uid.
    #[must_use]
    pub fn new(text: &str) -> Self {
        match parse_uuid(text) {
            Some(bytes) => Self(UidRepr::Uuid(bytes)),
            None => Self(UidRepr::Text(text.into())),
        }
    }
}

/// Reads `8-4-4-4-12` lower-case hex digits; anything else is not canonical.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let mut digits = text
        .bytes()
        .enumerate()
        .filter_map(|(at, byte)| match (at, byte) {
            (8 | 13 | 18 | 23, b'-') => None,
            (_, b'0'..=b'9') => Some(Some(byte - b'0')),
            (_, b'a'..=b'f') => Some(Some(byte - b'a' + 10)),
            _ => Some(None),
        });
    if text.len() != 36 {
        return None;
    }
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = (digits.next()?? << 4) | digits.next()??;
    }
    digits.next().is_none().then_some(bytes)
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            UidRepr::Text(text) => f.pad(text),
            UidRepr::Uuid(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({self})")
    }
}

/// A reference to an owner of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerRef {
    api_version: Box<str>,
    kind: Box<str>,
    name: Box<str>,
    uid: Uid,
    controller: bool,
}

impl OwnerRef {
    /// Returns the owner's `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Returns the owner's kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the owner's name; its namespace is the object's own, or none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the owner's uid.
    #[must_use]
    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// Returns whether this owner is the managing controller.
    #[must_use]
    pub fn is_controller(&self) -> bool {
        self.controller
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.api_version.len() + self.kind.len() + self.name.len()
    }
}

/// A JSON text that is not an object of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a {gvk}: {detail}")]
pub struct RawObjectError {
    gvk: Gvk,
    detail: String,
}

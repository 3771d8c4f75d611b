//! One state of an object: its JSON and its compact metadata.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::uid::Uid;
use crate::{Gvk, Labels, ObjectKey, ResourceVersion, without_values};

/// One state of an object: compact metadata, and the JSON without `managedFields`.
///
/// Typed and dynamic values are decoded from the JSON on demand. [`parse`](Self::parse) makes one pass over the JSON
/// and one copy of it; a [`Scan`](crate::Scan) reads only the metadata. Dereferences to [`ObjectMetadata`].
///
/// ```
/// use lariat::{Gvk, RawObject};
///
/// let json = br#"{"metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"}}}"#;
/// let pod = RawObject::parse(json, &Gvk::new("", "v1", "Pod"))?;
/// assert_eq!(pod.labels().get("app"), Some("web"));
/// assert!(pod.json().starts_with(br#"{"apiVersion":"v1","kind":"Pod","#));
/// # Ok::<(), lariat::core::RawObjectError>(())
/// ```
#[derive(Clone)]
pub struct RawObject {
    /// The metadata.
    pub(super) metadata: ObjectMetadata,
    /// The JSON, which may lack `managedFields`.
    pub(super) json: Box<[u8]>,
}

impl RawObject {
    /// Returns the JSON.
    #[must_use]
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Replaces the JSON and keeps the metadata.
    #[must_use]
    pub fn with_json(self, json: impl Into<Box<[u8]>>) -> Self {
        Self {
            json: json.into(),
            ..self
        }
    }

    /// Splits the object into metadata and JSON.
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
    /// Prints the metadata; the content stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawObject")
            .field("metadata", &self.metadata)
            .field("json_bytes", &self.json.len())
            .finish()
    }
}

/// The metadata of an object that a controller needs.
///
/// ```
/// use lariat::{Gvk, RawObject};
///
/// let json = br#"{"metadata":{"name":"web-0","uid":"u-1","finalizers":["example.com/data"]}}"#;
/// let pod = RawObject::parse(json, &Gvk::new("", "v1", "Pod"))?;
/// assert_eq!(pod.uid().to_string(), "u-1");
/// assert!(pod.finalizers().any(|name| name == "example.com/data"));
/// assert!(!pod.is_deleting());
/// # Ok::<(), lariat::core::RawObjectError>(())
/// ```
#[derive(Clone)]
pub struct ObjectMetadata {
    pub(super) key: ObjectKey,
    pub(super) uid: Uid,
    pub(super) version: ResourceVersion,
    pub(super) generation: Option<i64>,
    pub(super) deleting: bool,
    pub(super) labels: Labels,
    pub(super) owners: Arc<[OwnerRef]>,
    pub(super) finalizers: Arc<[Arc<str>]>,
}

impl ObjectMetadata {
    /// Returns the object key: namespace and name.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Returns the uid, which tells an object from a later one with the same key.
    #[must_use]
    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// Returns the resource version of this state.
    #[must_use]
    pub fn version(&self) -> &ResourceVersion {
        &self.version
    }

    /// Returns `metadata.generation`; `None` for kinds without it.
    #[must_use]
    pub fn generation(&self) -> Option<i64> {
        self.generation
    }

    /// Returns whether the object has a deletion timestamp.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// Returns the labels.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Returns the owner references.
    ///
    /// ```
    /// use lariat::{Gvk, RawObject};
    ///
    /// let json = br#"{"metadata":{"name":"web-0","ownerReferences":[
    ///     {"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"u-1","controller":true}]}}"#;
    /// let pod = RawObject::parse(json, &Gvk::new("", "v1", "Pod"))?;
    /// let controller = pod.owners().iter().find(|owner| owner.is_controller());
    /// assert_eq!(controller.map(|owner| owner.name()), Some("web"));
    /// # Ok::<(), lariat::core::RawObjectError>(())
    /// ```
    #[must_use]
    pub fn owners(&self) -> &[OwnerRef] {
        &self.owners
    }

    /// Iterates over the finalizers.
    pub fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.finalizers.iter().map(|name| &**name)
    }

    /// Returns the size on the heap, in bytes.
    ///
    /// Parts that are shared with other objects, such as labels, count for each of them.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let owners: usize = self.owners.iter().map(OwnerRef::bytes).sum();
        // 16 bytes are the pointer and the length of each `Arc` in the list.
        let finalizers: usize = self.finalizers.iter().map(|name| name.len() + 16).sum();
        self.key.as_str().len() + self.labels.heap_bytes() + owners + finalizers
    }
}

impl fmt::Debug for ObjectMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectMetadata")
            .field("key", &self.key)
            .field("uid", &self.uid)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// An owner reference of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerRef {
    pub(super) api_version: Arc<str>,
    pub(super) kind: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) uid: Uid,
    pub(super) controller: bool,
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

    /// Returns the owner's name.
    ///
    /// The owner is in the namespace of the object, or is cluster-scoped.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the owner's uid.
    #[must_use]
    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// Returns whether the owner is the managing controller.
    #[must_use]
    pub fn is_controller(&self) -> bool {
        self.controller
    }

    /// Returns the size on the heap, in bytes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.api_version.len() + self.kind.len() + self.name.len()
    }
}

/// A JSON text that is not an object of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a {gvk}: {detail}")]
pub struct RawObjectError {
    /// The expected kind.
    gvk: Gvk,
    /// The reason, without values of the text.
    detail: String,
}

impl RawObjectError {
    /// Creates the error of a kind.
    pub(super) fn new(gvk: &Gvk, detail: &str) -> Self {
        Self {
            gvk: gvk.clone(),
            detail: detail.to_owned(),
        }
    }

    /// Creates the error from a parser's, without the values in its message.
    pub(super) fn json(gvk: &Gvk, error: &serde_json::Error) -> Self {
        Self::new(gvk, &without_values(&error.to_string()))
    }
}

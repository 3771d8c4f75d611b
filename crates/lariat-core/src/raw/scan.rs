//! The first look at an object: which state of which object is it?

use std::ops::Range;

use super::borrowed::{Envelope, Metadata, Partial};
use super::cut::{self, MissingType};
use super::head::{Head, Parts};
use super::interner::Interner;
use super::metadata::ObjectMetadata;
use super::{RawObject, RawObjectError, Uid};
use crate::{Gvk, JsonCursor, ObjectKey, ResourceVersion, StrictObject, Unclear, without_values};

/// What one borrowed pass over an object's metadata has found, before anything is copied.
///
/// Most objects of a list are known already; those cost this pass and nothing else. It ends with the metadata where they
/// are in front of the content, as API servers write them: see [`new`](Self::new).
pub struct Scan<'a> {
    pub(super) json: &'a [u8],
    pub(super) metadata: Metadata<'a>,
    /// The members of the type that the object does not have.
    pub(super) missing: MissingType,
    /// Whether it is a `PartialObjectMetadata`.
    pub(super) partial: bool,
    /// Where the metadata are, if the quick look has found them.
    pub(super) parts: Option<Parts<'a>>,
    /// The key, if somebody has it already.
    pub(super) key: Option<ObjectKey>,
}

/// What is kept of an object beside its content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManagedFields {
    /// `metadata.managedFields` is cut out: it is large, and few look at it.
    #[default]
    Cut,
    /// `metadata.managedFields` stays.
    Keep,
}

impl<'a> Scan<'a> {
    /// Looks at an object.
    ///
    /// Of a text that is JSON it finds what a parser finds that reads all of it, wherever `metadata`, `kind` and
    /// `apiVersion` are, and it refuses one with two `metadata`. What it does not look at is checked by whoever decodes it:
    /// that what follows the metadata is JSON, which has to end with a brace; whether a type in front of the metadata
    /// follows once more; and whether strings that are passed are UTF-8. An object whose content is damaged has its key
    /// and its metadata, and does not decode.
    ///
    /// # Errors
    ///
    /// The text is not a JSON object, or lacks what every object has: `metadata.name`.
    pub fn new(json: &'a [u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        let json = json.trim_ascii();
        let scan = match Head::read(json) {
            Ok(head) => Self::of_head(json, head),
            Err(Unclear) => Self::parse(json, gvk)?,
        };
        scan.named(gvk)
    }

    /// Looks at an object inside of a text, such as an item of a list, and moves behind it.
    ///
    /// It finds what [`new`](Self::new) finds, and that the content has the syntax of JSON as far as a cursor checks it.
    ///
    /// # Errors
    ///
    /// No object is here, or it is of a form of which only [`new`](Self::new) can tell what is in it or what is wrong with
    /// it.
    pub fn next(cursor: &mut JsonCursor<'a>) -> Result<Self, Unclear> {
        let (head, json) = Head::read_within(cursor)?;
        let scan = Self::of_head(json, head);
        if scan.metadata.name.is_empty() {
            return Err(Unclear);
        }
        Ok(scan)
    }

    fn of_head(json: &'a [u8], head: Head<'a>) -> Self {
        let Parts {
            api_version, kind, ..
        } = head.parts;
        Self {
            json,
            missing: MissingType {
                api_version: api_version.is_none(),
                kind: kind.is_none(),
            },
            partial: kind == Some(br#""PartialObjectMetadata""#),
            metadata: head.metadata,
            parts: Some(head.parts),
            key: None,
        }
    }

    /// Looks at all of an object with a parser, which notices damage of the content too.
    ///
    /// # Errors
    ///
    /// The text is not a JSON object, or lacks what every object has: `metadata.name`.
    pub fn whole(json: &'a [u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        let scan = Self::parse(json.trim_ascii(), gvk)?;
        scan.named(gvk)
    }

    fn named(self, gvk: &Gvk) -> Result<Self, RawObjectError> {
        if self.metadata.name.is_empty() {
            return Err(RawObjectError::new(gvk, "metadata.name is empty"));
        }
        Ok(self)
    }

    fn parse(json: &'a [u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        // serde would read an array as a struct by position.
        if json.first().is_some_and(|byte| *byte != b'{') {
            return Err(RawObjectError::new(gvk, "expected a JSON object"));
        }
        let envelope: Envelope<'_> =
            serde_json::from_slice(json).map_err(|error| RawObjectError::json(gvk, &error))?;
        let StrictObject(metadata) = envelope.metadata;
        let kind = envelope.kind.as_ref();
        Ok(Self {
            json,
            missing: MissingType {
                api_version: envelope.api_version.is_none(),
                kind: kind.is_none(),
            },
            partial: kind
                .and_then(Option::as_ref)
                .is_some_and(|kind| kind.0 == "PartialObjectMetadata"),
            metadata,
            parts: None,
            key: None,
        })
    }

    /// Returns the text of the object.
    #[must_use]
    pub fn json(&self) -> &'a [u8] {
        self.json
    }

    /// Returns the namespace, empty for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Gives the object a key that somebody has already, so that it shares the text. The key of another object is not
    /// used.
    #[must_use]
    pub fn with_key(self, key: Option<ObjectKey>) -> Self {
        let key = key.filter(|key| {
            let namespace = key.namespace().unwrap_or_default();
            (namespace, key.name()) == (self.namespace(), self.name())
        });
        Self { key, ..self }
    }

    /// Returns whether this is the metadata of an object rather than the object.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// Returns whether this is the state somebody knows. States without a version are never known.
    #[must_use]
    pub fn is_state(&self, uid: &Uid, version: &ResourceVersion) -> bool {
        !version.is_empty()
            && *uid == Uid::new(&self.metadata.uid)
            && *version == ResourceVersion::new(&self.metadata.resource_version)
    }

    /// Makes the object, with one copy of its JSON.
    ///
    /// # Errors
    ///
    /// Labels, owners or finalizers are not what they should be.
    pub fn into_object(
        self,
        gvk: &Gvk,
        interner: &mut Interner,
        managed_fields: ManagedFields,
    ) -> Result<RawObject, RawObjectError> {
        let metadata = self.compact(gvk, interner)?;
        let cut = self.cut_of(self.json, managed_fields);
        let json = cut::copy_without(self.json, cut, (self.missing, gvk));
        Ok(RawObject { metadata, json })
    }

    /// Makes an object of the metadata alone: `apiVersion`, `kind` and `metadata`, copied as they are.
    ///
    /// # Errors
    ///
    /// Labels, owners or finalizers are not what they should be.
    pub fn into_metadata(
        self,
        gvk: &Gvk,
        interner: &mut Interner,
        managed_fields: ManagedFields,
    ) -> Result<RawObject, RawObjectError> {
        let metadata = self.compact(gvk, interner)?;
        let parts = match self.parts {
            Some(parts) => parts,
            None => read_parts(self.json).map_err(|error| RawObjectError::json(gvk, &error))?,
        };
        let cut = self.cut_of(parts.metadata, managed_fields);
        let json = cut::copy_metadata(&self.missing.head(gvk), parts, cut);
        Ok(RawObject { metadata, json })
    }

    /// Finds the managed fields in a part of the object, if they are to be left out.
    fn cut_of(&self, part: &[u8], managed_fields: ManagedFields) -> Range<usize> {
        match (managed_fields, self.metadata.managed_fields) {
            (ManagedFields::Cut, Some(value)) => {
                cut::member_range(part, value, "managedFields").unwrap_or(0..0)
            }
            _ => 0..0,
        }
    }

    fn compact(
        &self,
        gvk: &Gvk,
        interner: &mut Interner,
    ) -> Result<ObjectMetadata, RawObjectError> {
        let fails = |error: serde_json::Error| RawObjectError::json(gvk, &error);
        let (metadata, key) = (&self.metadata, self.key.clone());
        Ok(ObjectMetadata {
            key: key.unwrap_or_else(|| ObjectKey::namespaced(&metadata.namespace, &metadata.name)),
            uid: Uid::new(&metadata.uid),
            version: ResourceVersion::new(&metadata.resource_version),
            generation: metadata.generation,
            deleting: metadata.is_deleting,
            labels: interner.labels(metadata.labels).map_err(fails)?,
            owners: interner.owners(metadata.owner_references).map_err(fails)?,
            finalizers: interner.finalizers(metadata.finalizers).map_err(fails)?,
        })
    }
}

fn read_parts(json: &[u8]) -> Result<Parts<'_>, serde_json::Error> {
    let StrictObject(parts) = serde_json::from_slice::<StrictObject<Partial<'_>>>(json)?;
    Ok(Parts {
        api_version: parts.api_version.map(|value| value.get().as_bytes()),
        kind: parts.kind.map(|value| value.get().as_bytes()),
        metadata: parts.metadata.get().as_bytes(),
    })
}

impl std::fmt::Debug for Scan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan")
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl RawObjectError {
    fn new(gvk: &Gvk, detail: &str) -> Self {
        Self {
            gvk: gvk.clone(),
            detail: detail.to_owned(),
        }
    }

    fn json(gvk: &Gvk, error: &serde_json::Error) -> Self {
        Self::new(gvk, &without_values(&error.to_string()))
    }
}

//! The first look at an object: which state of which object is it?

use super::borrowed::{self, Envelope, Metadata, PackedLabels, Text};
use super::cut::{self, MissingType};
use super::metadata::ObjectMetadata;
use super::{RawObject, RawObjectError, Uid};
use crate::{Gvk, Interner, Labels, ObjectKey, ResourceVersion, StrictObject, without_values};

/// What one borrowed pass over an object's JSON has found, before anything is copied.
///
/// Most objects of a list are known already; those cost this pass and nothing else.
pub struct Scan<'a> {
    json: &'a [u8],
    metadata: Metadata<'a>,
    /// The members of the type that the object does not have.
    missing: MissingType,
    /// Whether it is a `PartialObjectMetadata`.
    partial: bool,
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
    /// # Errors
    ///
    /// The text is not a JSON object, or lacks what every object has: `metadata.name`.
    pub fn new(json: &'a [u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        let json = json.trim_ascii();
        // serde would read an array as a struct by position.
        if json.first().is_some_and(|byte| *byte != b'{') {
            return Err(RawObjectError::new(gvk, "expected a JSON object"));
        }
        let envelope: Envelope<'_> =
            serde_json::from_slice(json).map_err(|error| RawObjectError::json(gvk, &error))?;
        let StrictObject(metadata) = envelope.metadata;
        if metadata.name.is_empty() {
            return Err(RawObjectError::new(gvk, "metadata.name is empty"));
        }
        Ok(Self {
            json,
            missing: MissingType {
                api_version: envelope.api_version.is_none(),
                kind: envelope.kind.is_none(),
            },
            partial: envelope
                .kind
                .flatten()
                .is_some_and(|kind| kind.0 == "PartialObjectMetadata"),
            metadata,
        })
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
        let cut = match (managed_fields, self.metadata.managed_fields) {
            (ManagedFields::Cut, Some(value)) => {
                cut::member_range(self.json, value, "managedFields").unwrap_or(0..0)
            }
            _ => 0..0,
        };
        let json = cut::copy_without(self.json, cut, (self.missing, gvk));
        let metadata =
            compact(&self.metadata, interner).map_err(|error| RawObjectError::json(gvk, &error))?;
        Ok(RawObject { metadata, json })
    }
}

fn compact(
    metadata: &Metadata<'_>,
    interner: &mut Interner,
) -> Result<ObjectMetadata, serde_json::Error> {
    let labels = match metadata.labels {
        Some(json) => serde_json::from_str::<PackedLabels>(json.get())?.0,
        None => Labels::default(),
    };
    let owners: Vec<StrictObject<borrowed::Owner<'_>>> = borrowed::list(metadata.owner_references)?;
    let finalizers: Vec<Text<'_>> = borrowed::list(metadata.finalizers)?;
    Ok(ObjectMetadata {
        key: ObjectKey::namespaced(&metadata.namespace, &metadata.name),
        uid: Uid::new(&metadata.uid),
        version: ResourceVersion::new(&metadata.resource_version),
        generation: metadata.generation,
        deleting: metadata.deletion_timestamp.is_some(),
        labels: labels.intern(interner),
        owners: owners
            .iter()
            .map(|owner| owner.0.intern(interner))
            .collect(),
        finalizers: finalizers
            .iter()
            .map(|name| interner.intern(&name.0))
            .collect(),
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

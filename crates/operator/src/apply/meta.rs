//! The metadata of answers of the API server, read without the rest of the object.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::Preconditions;
use lariat_cache::CachedObject;
use lariat_core::{OwnerRef, ResourceVersion, Uid};
use serde::Deserialize;

use super::marks::{Found, RecordedOwner};

/// The metadata of an object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) namespace: Option<String>,
    #[serde(default)]
    pub(super) uid: String,
    #[serde(default)]
    pub(super) resource_version: String,
    /// The creation time, in whole seconds as all times here.
    #[serde(default)]
    creation_timestamp: Option<String>,
    #[serde(default)]
    pub(super) deletion_timestamp: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "or_default")]
    annotations: Annotations,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) owner_references: Vec<Reference>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) managed_fields: Vec<Manager>,
}

/// The annotations that matter here.
#[derive(Debug, Clone, Default, Deserialize)]
struct Annotations {
    #[serde(default, rename = "lariat.dev/owner")]
    owner: Option<String>,
}

/// An entry of `metadata.ownerReferences`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reference {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    pub(super) uid: String,
    #[serde(default)]
    controller: Option<bool>,
}

/// An entry of `metadata.managedFields`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Manager {
    #[serde(default)]
    manager: String,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    subresource: String,
    /// The time of its last write, in whole seconds.
    #[serde(default)]
    time: Option<String>,
}

impl Manager {
    fn is_apply_of(&self, name: &str) -> bool {
        // An update by the same manager is an entry of its own.
        self.manager == name && self.operation == "Apply"
    }
}

/// An object of which only the metadata is read.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Partial {
    #[serde(default)]
    pub(super) metadata: Meta,
}

/// One page of a list.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Page {
    #[serde(default)]
    pub(super) metadata: PageMeta,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) items: Vec<Partial>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct PageMeta {
    #[serde(default, rename = "continue")]
    pub(super) next: Option<String>,
}

/// Deserializes `null` as the default.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    // Go writes a list or map that is nil as `null`.
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Meta {
    /// Returns the precondition of a write that applies to this state only.
    pub(super) fn state(self) -> Preconditions {
        Preconditions {
            uid: Some(self.uid),
            resource_version: Some(self.resource_version),
        }
    }

    /// Returns whether one of the field managers has applied the object.
    pub(super) fn is_applied_by_any(&self, names: &[Arc<str>]) -> bool {
        let mut managers = self.managed_fields.iter();
        managers.any(|each| names.iter().any(|name| each.is_apply_of(name)))
    }

    /// Returns whether a manager has written the object when it was created.
    ///
    /// Writers of subresources do not count. Times have whole seconds, so an entry with the time of the creation is
    /// taken to be the creator's.
    pub(super) fn is_managed_since_creation(&self) -> bool {
        let created = self.creation_timestamp.as_deref();
        let mut entries = self.managed_fields.iter();
        created.is_some()
            && entries.any(|each| {
                // Texts in UTC with whole seconds compare like the times.
                let time = each.time.as_deref();
                each.subresource.is_empty() && time.is_some() && time <= created
            })
    }
}

impl From<&Meta> for Found {
    fn from(meta: &Meta) -> Self {
        Self::new(|name| meta.labels.get(name).map(|value| &**value))
    }
}

/// The object that exists under the name of a wanted one.
#[derive(Debug)]
pub(super) struct Existing {
    pub(super) uid: Uid,
    pub(super) version: ResourceVersion,
    pub(super) is_deleting: bool,
    /// Kind and name of its controller, and the controller's uid.
    pub(super) controller: Option<(String, Uid)>,
    pub(super) marks: Found,
    /// The uids of its owners, and whether each is its controller.
    pub(super) owners: Vec<(Uid, bool)>,
    /// Its owner, as recorded in its annotation; `None` if it was read from a cache, which may lack annotations.
    pub(super) recorded: Option<RecordedOwner>,
}

impl From<&CachedObject> for Existing {
    fn from(object: &CachedObject) -> Self {
        let controller = object.owners().iter().find(|owner| owner.is_controller());
        let named = |owner: &OwnerRef| {
            let name = format!("{} {}", owner.kind(), owner.name());
            (name, owner.uid().clone())
        };
        Self {
            uid: object.uid().clone(),
            version: object.version().clone(),
            is_deleting: object.is_deleting(),
            controller: controller.map(named),
            marks: Found::from(object),
            owners: object
                .owners()
                .iter()
                .map(|owner| (owner.uid().clone(), owner.is_controller()))
                .collect(),
            recorded: None,
        }
    }
}

impl From<&Meta> for Existing {
    fn from(meta: &Meta) -> Self {
        let mut owners = meta.owner_references.iter();
        let controller = owners.find(|owner| owner.controller == Some(true));
        let named = |owner: &Reference| {
            let name = format!("{} {}", owner.kind, owner.name);
            (name, Uid::new(&owner.uid))
        };
        Self {
            uid: Uid::new(&meta.uid),
            version: ResourceVersion::new(&meta.resource_version),
            is_deleting: meta.deletion_timestamp.is_some(),
            controller: controller.map(named),
            marks: Found::from(meta),
            owners: meta
                .owner_references
                .iter()
                .map(|owner| (Uid::new(&owner.uid), owner.controller == Some(true)))
                .collect(),
            recorded: meta
                .annotations
                .owner
                .as_deref()
                .and_then(RecordedOwner::read),
        }
    }
}

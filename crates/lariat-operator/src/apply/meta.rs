//! What is read of the objects the API server answers with.

use std::collections::BTreeMap;

use kube::api::Preconditions;
use lariat_core::{OwnerRef, ResourceVersion, Uid};
use serde::Deserialize;

use super::marks::Found;
use lariat_cache::CachedObject;

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
    /// To the second, as all times.
    #[serde(default)]
    creation_timestamp: Option<String>,
    #[serde(default)]
    pub(super) deletion_timestamp: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) owner_references: Vec<Reference>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) managed_fields: Vec<Manager>,
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
    /// When it changed last, to the second.
    #[serde(default)]
    time: Option<String>,
}

impl Manager {
    fn is_apply_of(&self, name: &str) -> bool {
        self.manager == name && self.operation == "Apply"
    }
}

/// An object of which only the metadata matters.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Partial {
    #[serde(default)]
    pub(super) metadata: Meta,
}

/// A page of a list.
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

fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Meta {
    /// Returns the precondition of a write that is meant for this very state.
    pub(super) fn state(self) -> Preconditions {
        Preconditions {
            uid: Some(self.uid),
            resource_version: Some(self.resource_version),
        }
    }

    /// Returns whether a manager has applied the object.
    pub(super) fn is_applied_by(&self, name: &str) -> bool {
        let mut managers = self.managed_fields.iter();
        managers.any(|each| each.is_apply_of(name))
    }

    /// Returns whether something manages the object since it was created; who only writes a subresource does not count.
    pub(super) fn is_managed_since_creation(&self) -> bool {
        let created = self.creation_timestamp.as_deref();
        let mut entries = self.managed_fields.iter();
        created.is_some()
            && entries.any(|each| {
                let time = each.time.as_deref();
                each.subresource.is_empty() && time.is_some() && time <= created
            })
    }

    /// Returns whether an object that a manager meant to create, and that existed when it was applied, was made by
    /// others for certain: one of them manages it since it was created, and the manager only since later. Who writes a
    /// subresource does not count.
    ///
    /// Whoever creates an object manages it from the second of its creation, or from the one before. An entry of the
    /// manager that is as old says that another process of this operator may have created it, or a request whose answer
    /// was lost, and that somebody else writes to it too. Then it counts as the manager's: to take fields off would
    /// empty it, while to keep them leaves everybody theirs.
    pub(super) fn was_made_by_others(&self, name: &str) -> bool {
        let created = self.creation_timestamp.as_deref();
        let entries = self.managed_fields.iter();
        let (ours, others): (Vec<_>, Vec<_>) = entries
            .filter(|each| each.subresource.is_empty())
            .partition(|each| each.is_apply_of(name));
        let oldest =
            |entries: &[&Manager]| entries.iter().filter_map(|each| each.time.clone()).min();
        let (ours, others) = (oldest(&ours), oldest(&others));
        let is_later = ours.is_some() && created.is_some() && ours.as_deref() > created;
        is_later && others.is_some() && others.as_deref() <= created
    }
}

/// What is there under the name of an object that is wanted.
#[derive(Debug)]
pub(super) struct Existing {
    pub(super) uid: Uid,
    pub(super) version: ResourceVersion,
    pub(super) is_deleting: bool,
    /// The owner that says it is the controller, and its uid.
    pub(super) controller: Option<(String, Uid)>,
    pub(super) marks: Found,
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(entries: &[(&str, &str, &str, u8)], expected: bool) {
        let entry = |(manager, operation, subresource, second): &(&str, &str, &str, u8)| {
            json!({"manager": manager, "operation": operation, "subresource": subresource,
                "time": format!("2026-01-01T00:00:{second:02}Z")})
        };
        let entries: Vec<_> = entries.iter().map(entry).collect();
        let created = "2026-01-01T00:00:03Z";
        let meta = json!({"creationTimestamp": created, "managedFields": entries});
        let meta: Meta = serde_json::from_value(meta).unwrap();
        assert_eq!(meta.was_made_by_others("op"), expected, "{entries:?}");
    }

    #[test]
    fn what_others_made_for_certain_is_told_from_what_we_may_have_made() {
        let later = ("op", "Apply", "", 5);
        check(&[later], false);
        check(&[later, ("kubectl", "Update", "", 3)], true);
        check(&[later, ("kubectl", "Apply", "", 2)], true);
        check(&[later, ("op", "Update", "", 3)], true);
        let annotator = |second| ("annotator", "Update", "", second);
        check(&[later, ("kubectl", "Update", "", 3), annotator(6)], true);
        check(&[later, ("kubelet", "Update", "status", 3)], false);
        // Ours from before, changed by this process.
        check(&[later, annotator(4)], false);
        check(&[later, annotator(5)], false);
        // In the second of the creation it could have been either.
        for second in [2, 3] {
            let ours = ("op", "Apply", "", second);
            check(&[ours, annotator(3)], false);
            check(&[ours, annotator(4)], false);
        }
    }

    #[test]
    fn nothing_is_certain_without_times() {
        let entries = json!([{"manager": "op", "operation": "Apply"}, {"manager": "kubectl", "operation": "Update"}]);
        let meta = json!({"managedFields": entries});
        let meta: Meta = serde_json::from_value(meta).unwrap();
        assert!(!meta.was_made_by_others("op"));
    }
}

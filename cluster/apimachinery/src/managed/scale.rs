//! Owners of the replicas that are written through the scale subresource.
//!
//! Source: `ScaleHandler` in `k8s.io/apimachinery/pkg/util/managedfields`.

use std::sync::LazyLock;

use super::entries::{Managed, Owned};
use super::path::PathElement;
use super::set::Set;
use crate::object::{Object, metadata_mut};

/// The version in which a scale is written.
const SCALE: &str = "autoscaling/v1";

/// The replicas of a scale.
static IN_SCALE: LazyLock<Set> = LazyLock::new(|| Set::of(&["spec.replicas"]));

/// Converts owners between an object and its scale.
///
/// In `managedFields` of the scale, its writer has an entry under `autoscaling/v1`. In the object, the writer has an
/// entry for the replicas alone, under the version of the object and without a time.
///
/// ```
/// use lariat_apimachinery::managed::ScaleHandler;
/// use lariat_apimachinery::object::Object;
/// use serde_json::json;
///
/// let entry = |version: &str, time: Option<&str>| json!({
///     "manager": "kubectl", "operation": "Update", "apiVersion": version, "time": time,
///     "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
/// });
/// let owners = json!({"managedFields": [entry("apps/v1", Some("2026-01-01T00:00:00Z"))]});
/// let deployment = Object::from_iter([("metadata".to_owned(), owners)]);
/// let mut scale = Object::new();
/// let handler = ScaleHandler { path: &["spec", "replicas"], api_version: "apps/v1" };
/// handler.to_scale(&deployment, &mut scale);
/// assert_eq!(scale["metadata"]["managedFields"][0]["apiVersion"], "autoscaling/v1");
/// ```
#[derive(Debug)]
pub struct ScaleHandler<'a> {
    /// The path of the replicas in the object, such as `["spec", "replicas"]`.
    pub path: &'a [&'a str],
    /// The version in which the object is written.
    pub api_version: &'a str,
}

impl ScaleHandler<'_> {
    /// Gives a scale the owners that the replicas of its object have.
    pub fn to_scale(&self, object: &Object, scale: &mut Object) {
        let mut managed = Managed::of(object).unwrap_or_default();
        let replicas = self.replicas();
        managed.owners.retain(|_, owned| {
            self.is_version(&owned.api_version) && !owned.set.intersection(&replicas).is_empty()
        });
        for owned in managed.owners.values_mut() {
            owned.set = IN_SCALE.clone();
            SCALE.clone_into(&mut owned.api_version);
        }
        managed.write(metadata_mut(scale));
    }

    /// Gives the replicas of an object the owners that they have in its scale.
    pub fn to_object(&self, scale: &Object, object: &mut Object) {
        let mut of_scale = Managed::of(scale).unwrap_or_default();
        let mut managed = Managed::of(object).unwrap_or_default();
        let replicas = self.replicas();
        managed.owners.retain(|manager, owned| {
            if !self.is_version(&owned.api_version) {
                return false;
            }
            let is_owner = !owned.set.intersection(&replicas).is_empty();
            if is_owner && of_scale.owners.remove(manager).is_none() {
                owned.set = std::mem::take(&mut owned.set).difference(&replicas);
            }
            !is_owner || !owned.set.is_empty()
        });
        for (manager, owned) in of_scale.owners {
            if owned.set.intersection(&IN_SCALE).is_empty() {
                continue;
            }
            let owned = Owned {
                set: replicas.clone(),
                api_version: self.api_version.to_owned(),
                time: None,
            };
            managed.owners.insert(manager, owned);
        }
        managed.write(metadata_mut(object));
    }

    fn replicas(&self) -> Set {
        let path = self.path.iter().map(|name| PathElement::member(name));
        let mut replicas = Set::default();
        replicas.insert_path(&path.collect::<Vec<_>>());
        replicas
    }

    /// Returns whether a version is one of the object's kind.
    fn is_version(&self, api_version: &str) -> bool {
        fn group(api_version: &str) -> &str {
            api_version.rsplit_once('/').map_or("", |(group, _)| group)
        }
        group(api_version) == group(self.api_version)
    }
}

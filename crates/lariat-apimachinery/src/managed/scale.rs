//! Owners of the replicas that are written through the scale subresource.
//!
//! Source: `ScaleHandler` in `k8s.io/apimachinery/pkg/util/managedfields`.

use serde_json::{Value, json};

use super::entries::Managed;
use super::path::Step;
use super::set::Set;
use super::write::Write;
use crate::object::{Object, metadata_mut};

/// A write of replicas through the scale subresource.
#[derive(Debug)]
pub struct Scaled<'a> {
    /// Where the replicas are in the object, such as `["spec", "replicas"]`.
    pub path: &'a [&'a str],
}

impl Scaled<'_> {
    fn steps(&self) -> Vec<Step> {
        self.path.iter().map(|name| Step::member(name)).collect()
    }

    /// Returns whether somebody owns the replicas; otherwise nobody comes to own them by a scale.
    fn is_owned(&self, live: &Object) -> bool {
        let mut replicas = Set::default();
        replicas.insert_path(&self.steps());
        let managed = Managed::of(live).unwrap_or_default();
        let owns = |set: &Set| !set.intersection(&replicas).is_empty();
        managed.owners.values().any(|owned| owns(&owned.set))
    }

    /// Accounts for an update through the scale in the new object.
    pub fn update(&self, write: &Write<'_>, live: &Object, new: &mut Object) {
        if self.is_owned(live) {
            write.update(Some(live), new);
        }
    }

    /// Returns the applied object that a scale stands for.
    #[must_use]
    pub fn applied(&self, replicas: &Value, like: &Object) -> Object {
        let mut inner = replicas.clone();
        for name in self.path.iter().rev() {
            inner = json!({ *name: inner });
        }
        let mut applied = match inner {
            Value::Object(object) => object,
            _ => Object::new(),
        };
        for member in ["apiVersion", "kind"] {
            if let Some(value) = like.get(member) {
                applied.insert(member.into(), value.clone());
            }
        }
        metadata_mut(&mut applied);
        applied
    }
}

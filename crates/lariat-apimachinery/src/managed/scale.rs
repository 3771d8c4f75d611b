//! Owners of the replicas that are written through the scale subresource.
//!
//! Source: `ScaleHandler` in `k8s.io/apimachinery/pkg/util/managedfields`.

use serde_json::{Value, json};

use super::entries::Managed;
use super::path::PathElement;
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
    fn elements(&self) -> Vec<PathElement> {
        self.path
            .iter()
            .map(|name| PathElement::member(name))
            .collect()
    }

    /// Returns whether a manager owns the replicas.
    ///
    /// Replicas without an owner do not get one by a scale.
    fn is_owned(&self, live: &Object) -> bool {
        let mut replicas = Set::default();
        replicas.insert_path(&self.elements());
        let managed = Managed::of(live).unwrap_or_default();
        let owns = |set: &Set| !set.intersection(&replicas).is_empty();
        managed.owners.values().any(|owned| owns(&owned.set))
    }

    /// Records an update through the scale subresource in the new object.
    pub fn update(&self, write: &Write<'_>, live: &Object, new: &mut Object) {
        if self.is_owned(live) {
            write.update(Some(live), new);
            self.forget_times(new);
        }
    }

    /// Removes the times of entries of the scale subresource, as kube-apiserver does.
    pub fn forget_times(&self, new: &mut Object) {
        let Some(mut managed) = Managed::of(new) else {
            return;
        };
        for (manager, owned) in &mut managed.owners {
            if manager.subresource == "scale" {
                owned.time = None;
            }
        }
        managed.write(metadata_mut(new));
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

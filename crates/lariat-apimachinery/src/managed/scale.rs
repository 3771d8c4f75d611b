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

    fn set(&self) -> Set {
        let mut replicas = Set::default();
        replicas.insert_path(&self.elements());
        replicas
    }

    /// Returns whether a manager owns the replicas.
    ///
    /// Replicas without an owner do not get one by a scale.
    fn is_owned(&self, live: &Object) -> bool {
        let (replicas, managed) = (self.set(), Managed::of(live).unwrap_or_default());
        // The set has one path, so any overlap is that path.
        let owns = |set: &Set| !set.intersection(&replicas).is_empty();
        managed.owners.values().any(|owned| owns(&owned.set))
    }

    /// Records an update through the scale subresource in the new object.
    ///
    /// Zero replicas have no owner, since `replicas` of a Scale is omitted if zero. If the number stays the same, its owner
    /// gets a separate entry for it, without a time.
    pub fn update(&self, write: &Write<'_>, live: &Object, new: &mut Object) {
        if !self.is_owned(live) {
            // Entries of one owner that were written apart are merged when they are read.
            if let Some(managed) = Managed::of(new) {
                managed.write(metadata_mut(new));
            }
            return;
        }
        // A genuine server tracks the Scale as an object of its own and carries its entries over by
        // `ScaleHandler.ToParent`. The three cases below are what comes out of that.
        let replicas = self.replicas(new);
        if replicas == self.replicas(live) {
            self.split(new);
        } else if replicas == Some(0) {
            self.disown(new);
        } else {
            write.update(Some(live), new);
            self.forget_times(new);
        }
    }

    fn replicas(&self, object: &Object) -> Option<i64> {
        let (first, rest) = self.path.split_first()?;
        let at = rest
            .iter()
            .try_fold(object.get(*first)?, |at, name| at.get(name));
        at?.as_i64()
    }

    /// Removes the replicas from the fields of every owner.
    fn disown(&self, new: &mut Object) {
        let Some(mut managed) = Managed::of(new) else {
            return;
        };
        let replicas = self.set();
        for owned in managed.owners.values_mut() {
            owned.set = owned.set.difference(&replicas);
        }
        managed.retain();
        managed.write(metadata_mut(new));
    }

    /// Moves the replicas of an owner into an entry of their own.
    fn split(&self, new: &mut Object) {
        let replicas = self.set();
        let entries = metadata_mut(new).get_mut("managedFields");
        let Some(Value::Array(entries)) = entries else {
            return;
        };
        let mut apart = Vec::new();
        for entry in entries.iter_mut() {
            let Ok(set) = Set::from_json(&entry["fieldsV1"]) else {
                continue;
            };
            let rest = set.difference(&replicas);
            let is_owner = !set.intersection(&replicas).is_empty();
            // An applier's entry is never split, since its set decides what its next apply removes. One with nothing
            // else stays whole.
            if !is_owner || rest.is_empty() || entry["operation"] != "Update" {
                continue;
            }
            let mut own = entry.clone();
            own["fieldsV1"] = replicas.to_json();
            if let Value::Object(own) = &mut own {
                // `ToParent` looks the time up in the parent's entries, under the identity of the Scale's entry. Its
                // version is `autoscaling/v1`, so nothing is found.
                own.remove("time");
            }
            entry["fieldsV1"] = rest.to_json();
            apart.push(own);
        }
        // Without a time they sort to the front.
        entries.splice(0..0, apart);
    }

    /// Removes the times of entries of the scale subresource, as kube-apiserver does.
    pub fn forget_times(&self, new: &mut Object) {
        let Some(mut managed) = Managed::of(new) else {
            return;
        };
        for (manager, owned) in &mut managed.owners {
            // As in `split`: the identity of the Scale's entry is unknown to the parent.
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
        // An apply needs metadata, even if empty.
        metadata_mut(&mut applied);
        applied
    }
}

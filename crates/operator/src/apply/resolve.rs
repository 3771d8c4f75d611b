//! Resolves the wanted objects to targets: resource, key, labels, owner reference and hash.

use std::collections::BTreeMap;

use lariat_core::{Gvk, ObjectKey, ResourceKind, Scope};
use serde_json::{Map, Value, json};

use super::dependent::ObjectOptions;
use super::desired::{Desired, Wanted};
use super::drift;
use super::error::{ObjectError, ObjectFailure};
use super::marks::OWNER;
use super::memory::ObjectId;
use super::order::rank;
use super::run::Run;
use super::set::Apply;
use super::step::Stages;
use crate::names::{APPLIED, LEASE};
use crate::owner::Owner;

/// An object to apply, with everything that is sent.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) resource: ResourceKind,
    pub(super) key: ObjectKey,
    pub(super) object: Value,
    /// A hash of the object without the annotation that contains the hash.
    pub(super) hash: u64,
    pub(super) rank: usize,
    pub(super) options: ObjectOptions,
    /// The number of its step; `None` if it is outside of steps.
    pub(super) step: Option<usize>,
    /// The number of steps before its own.
    pub(super) order: usize,
    /// The reference to the owner, if it gets one.
    pub(super) owner_reference: Option<Value>,
}

impl Target {
    pub(super) fn gvk(&self) -> &Gvk {
        self.resource.gvk()
    }

    pub(super) fn id(&self) -> ObjectId {
        ObjectId {
            gvk: self.gvk().clone(),
            key: self.key.clone(),
        }
    }

    /// Returns what identifies the object in all versions of its kind.
    pub(super) fn identity(&self) -> (&str, &str, &str) {
        identity(self.gvk(), &self.key)
    }

    pub(super) fn failed(&self, error: ObjectError) -> ObjectFailure {
        ObjectFailure::new(self.gvk(), &self.key, error)
    }
}

pub(super) fn identity<'a>(gvk: &'a Gvk, key: &'a ObjectKey) -> (&'a str, &'a str, &'a str) {
    (gvk.group(), gvk.kind(), key.as_str())
}

impl Run<'_> {
    /// Resolves all objects; those that cannot be resolved are returned as failures.
    pub(super) async fn resolve(
        &self,
        desired: Desired,
    ) -> (Stages, Vec<Target>, Vec<ObjectFailure>) {
        let (mut targets, mut failures) = (Vec::new(), Vec::new());
        let mut stages = desired.stages().unwrap_or_else(|reason| {
            failures.push(self.of_owner(ObjectError::Steps { reason }));
            Stages::default()
        });
        for (step, wanted) in desired.into_wanted() {
            match wanted {
                Ok(wanted) => match self.target(wanted, step, &stages).await {
                    Ok(target) => targets.push(target),
                    // The step cannot be completed without this object, so later steps must not begin.
                    Err(failure) => {
                        stages.give_up(step);
                        failures.push(failure);
                    }
                },
                Err(misfit) => {
                    stages.give_up(step);
                    let key = key_of(misfit.namespace.as_deref(), &misfit.name);
                    let error = malformed(&misfit.reason);
                    failures.push(ObjectFailure::new(&misfit.gvk, &key, error));
                }
            }
        }
        let targets = without_duplicates(targets, &mut stages, &mut failures);
        (stages, targets, failures)
    }

    async fn target(
        &self,
        wanted: Wanted,
        step: Option<usize>,
        stages: &Stages,
    ) -> Result<Target, ObjectFailure> {
        let Wanted {
            gvk,
            namespace,
            name,
            object,
            options,
        } = wanted;
        let as_written = key_of(namespace.as_deref(), &name);
        let failed = |error| ObjectFailure::new(&gvk, &as_written, error);
        let client = self.set.operator.caches.clients().for_kind(&gvk);
        let resource = client
            .resource()
            .await
            .map_err(|error| failed(error.into()))?;
        let owner_namespace = self.set.owner.key().namespace();
        let key = match (resource.scope(), namespace.as_deref().or(owner_namespace)) {
            (Scope::Cluster, _) => ObjectKey::cluster(&name),
            (Scope::Namespaced, Some(namespace)) => ObjectKey::namespaced(namespace, &name),
            (Scope::Namespaced, None) => return Err(failed(ObjectError::NoNamespace)),
        };
        let stage = step.and_then(|step| stages.all().get(step));
        let order = stage.map_or(0, |stage| stage.depth);
        let mut object = self
            .set
            .signed(object, &key, order, options.kept)
            .map_err(|error| ObjectFailure::new(&gvk, &key, error))?;
        let owner_reference = self.set.reference_of(&object);
        // After the labels and the reference were added: a change of these must change the hash too.
        let hash = drift::hash(&object);
        let mark = drift::mark(&gvk, &object, hash);
        set_annotation(&mut object, APPLIED, &mark)
            .map_err(|error| ObjectFailure::new(&gvk, &key, error))?;
        Ok(Target {
            hash,
            rank: rank(&gvk),
            resource,
            key,
            object,
            options,
            step,
            order,
            owner_reference,
        })
    }
}

impl Apply {
    /// Adds the labels and the owner reference that make an object a member of the set.
    fn signed(
        &self,
        mut object: Map<String, Value>,
        key: &ObjectKey,
        order: usize,
        is_kept: bool,
    ) -> Result<Value, ObjectError> {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return Err(malformed("`metadata` is not an object"));
        };
        // The API server compares the namespace in the body with that of the path, and would refuse a difference.
        match key.namespace() {
            Some(namespace) => metadata.insert("namespace".to_owned(), json!(namespace)),
            None => metadata.remove("namespace"),
        };
        // Typed objects serialize missing maps as absent, hand-written JSON may have null. Both mean an empty map.
        let labels = metadata.entry("labels").or_insert(Value::Null);
        if labels.is_null() {
            *labels = json!({});
        }
        let Some(labels) = labels.as_object_mut() else {
            return Err(malformed("`metadata.labels` is not an object"));
        };
        for (name, value) in self.marks.labels(order, is_kept) {
            match value {
                Some(value) => labels.insert(name.to_owned(), json!(value)),
                // The labels were copied from an applied object.
                None => labels.remove(name),
            };
        }
        // The annotations were copied too. In the hash the one with the hash would change the hash, and so the object,
        // in each call.
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(APPLIED);
            annotations.remove(LEASE);
        }
        // The garbage collector deletes objects with a reference to a deleted owner, and so would it a kept object.
        if is_kept {
            self.remove_reference(metadata);
        } else {
            self.add_reference(metadata, key)?;
        }
        let mut object = Value::Object(object);
        set_annotation(&mut object, OWNER, &self.marks.owner.to_string())?;
        Ok(object)
    }

    /// Returns the reference to the owner that an object has.
    fn reference_of(&self, object: &Value) -> Option<Value> {
        if !self.options.owned {
            return None;
        }
        let own = self.owner.uid().to_string();
        let references = object.pointer("/metadata/ownerReferences")?.as_array()?;
        references.iter().find(|each| each["uid"] == *own).cloned()
    }

    /// Removes references to the owner, which the object may have been given by hand.
    fn remove_reference(&self, metadata: &mut Map<String, Value>) {
        let own = self.owner.uid().to_string();
        if let Some(Value::Array(references)) = metadata.get_mut("ownerReferences") {
            references.retain(|each| each["uid"] != *own);
        }
    }

    /// Adds the owner reference, if the set has owner references.
    fn add_reference(
        &self,
        metadata: &mut Map<String, Value>,
        key: &ObjectKey,
    ) -> Result<(), ObjectError> {
        if !self.options.owned {
            return Ok(());
        }
        if let Some(namespace) = self.owner.key().namespace()
            && key.namespace() != Some(namespace)
        {
            let namespace = namespace.to_owned();
            return Err(ObjectError::CannotOwn { namespace });
        }
        let references = metadata.entry("ownerReferences").or_insert(Value::Null);
        if references.is_null() {
            *references = json!([]);
        }
        let Some(references) = references.as_array_mut() else {
            return Err(malformed("`metadata.ownerReferences` is not a list"));
        };
        // An explicit reference to the owner is replaced. One to another controller contradicts the set, and is an
        // error.
        let own = Owner::cached(&self.owner_gvk, &self.owner).controller_reference();
        // An old reference to this owner may name another version of its kind, or not be the controller's.
        references.retain(|each| each["uid"] != own.uid);
        if references.iter().any(|each| each["controller"] == true) {
            return Err(malformed(
                "it names another controller in its `metadata.ownerReferences`",
            ));
        }
        references.push(json!(own));
        Ok(())
    }
}

pub(super) fn set_annotation(
    object: &mut Value,
    name: &str,
    value: &str,
) -> Result<(), ObjectError> {
    let annotations = &mut object["metadata"]["annotations"];
    if annotations.is_null() {
        *annotations = json!({});
    }
    let Some(annotations) = annotations.as_object_mut() else {
        return Err(malformed("`metadata.annotations` is not an object"));
    };
    annotations.insert(name.to_owned(), json!(value));
    Ok(())
}

fn malformed(reason: &str) -> ObjectError {
    let reason = reason.to_owned();
    ObjectError::Malformed { reason }
}

fn key_of(namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey::namespaced(namespace.unwrap_or_default(), name)
}

/// Removes objects that are wanted more than once, and sorts the others by rank.
///
/// Each duplicate is a failure, because nothing says which of the copies is meant. Objects of one rank keep their
/// order.
fn without_duplicates(
    targets: Vec<Target>,
    stages: &mut Stages,
    failures: &mut Vec<ObjectFailure>,
) -> Vec<Target> {
    let mut counts: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for target in &targets {
        *counts.entry(target.identity()).or_default() += 1;
    }
    let twice: Vec<bool> = targets
        .iter()
        .map(|target| counts[&target.identity()] > 1)
        .collect();
    let mut once = Vec::with_capacity(targets.len());
    let mut reported: Vec<ObjectId> = Vec::new();
    for (target, twice) in targets.into_iter().zip(twice) {
        if !twice {
            once.push(target);
            continue;
        }
        stages.give_up(target.step);
        if !reported.contains(&target.id()) {
            reported.push(target.id());
            failures.push(target.failed(ObjectError::Duplicate));
        }
    }
    // A stable sort, so that objects of one rank keep the order in which they were given.
    once.sort_by_key(|target| target.rank);
    once
}

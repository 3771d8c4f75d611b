//! Where single built-in kinds have rules of their own.

use serde_json::{Value, json};

use super::admit::{Part, finalizers, metadata_mut, metadata_text};
use super::definition;
use crate::api::status::{ApiError, Cause};
use crate::kinds::Resource;
use crate::store::Object;

/// The built-in kinds with rules of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    Namespace,
    Definition,
    Pod,
}

fn special(resource: &Resource) -> Option<Special> {
    match (&*resource.group, &*resource.plural) {
        ("", "namespaces") => Some(Special::Namespace),
        ("", "pods") => Some(Special::Pod),
        ("apiextensions.k8s.io", "customresourcedefinitions") => Some(Special::Definition),
        _ => None,
    }
}

/// Fills in what the server sets on a new object of the kind.
pub(super) fn prepare_create(resource: &Resource, object: &mut Object) {
    match special(resource) {
        Some(Special::Namespace) => {
            label_namespace(object);
            object.insert("spec".into(), json!({"finalizers": ["kubernetes"]}));
            object.insert("status".into(), json!({"phase": "Active"}));
        }
        Some(Special::Definition) => definition::prepare_create(object),
        Some(Special::Pod) => {
            object.insert("status".into(), json!({"phase": "Pending"}));
        }
        None => {}
    }
}

/// Fills in what the server sets on a changed object of the kind.
pub(super) fn prepare_update(resource: &Resource, part: Part, old: &Object, new: &mut Object) {
    match special(resource) {
        Some(Special::Namespace) => {
            label_namespace(new);
            if part != Part::Finalize {
                let spec = old.get("spec").cloned().unwrap_or_else(|| json!({}));
                new.insert("spec".into(), spec);
            }
        }
        Some(Special::Definition) => definition::prepare_update(new),
        Some(Special::Pod) | None => {}
    }
}

/// Finds what is wrong with an object by the rules of its kind.
pub(super) fn validate(resource: &Resource, object: &Object) -> Vec<Cause> {
    match special(resource) {
        Some(Special::Definition) => definition::validate(object),
        _ => Vec::new(),
    }
}

/// Refuses changes the kind does not allow.
pub(super) fn check_update(
    resource: &Resource,
    old: &Object,
    new: &Object,
) -> Result<(), ApiError> {
    let causes = match special(resource) {
        Some(Special::Definition) => definition::validate_update(old, new),
        _ => Vec::new(),
    };
    if causes.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(
        resource,
        metadata_text(new, "name"),
        &causes,
    ))
}

/// Refuses to delete what the cluster cannot do without.
pub(super) fn check_delete(resource: &Resource, name: &str) -> Result<(), ApiError> {
    let protected = matches!(name, "default" | "kube-system" | "kube-public");
    if special(resource) == Some(Special::Namespace) && protected {
        let why = "this namespace may not be deleted";
        return Err(ApiError::forbidden(resource, name, why));
    }
    Ok(())
}

/// Returns whether objects of a kind can have time between the request to delete them and their end.
pub(super) fn has_grace_period(resource: &Resource) -> bool {
    special(resource) == Some(Special::Pod)
}

/// Returns the seconds an object has between the request to delete it and its end.
pub(super) fn grace_period(resource: &Resource, object: &Object, asked: Option<u64>) -> u64 {
    let at = |path: &str| Value::Object(object.clone()).pointer(path).cloned();
    let text = |path: &str| at(path).and_then(|value| value.as_str().map(str::to_owned));
    if special(resource) != Some(Special::Pod) || text("/spec/nodeName").is_none() {
        return 0;
    }
    if matches!(
        text("/status/phase").as_deref(),
        Some("Succeeded" | "Failed")
    ) {
        return 0;
    }
    let own = at("/spec/terminationGracePeriodSeconds").and_then(|value| value.as_u64());
    asked.or(own).unwrap_or(30)
}

/// Marks an object as being deleted, as its kind does beyond the timestamp.
pub(super) fn mark_deleting(resource: &Resource, object: &mut Object) {
    match special(resource) {
        Some(Special::Namespace) => {
            object.insert("status".into(), json!({"phase": "Terminating"}));
        }
        Some(Special::Definition) => {
            let mut finalizers: Vec<String> =
                finalizers(object).into_iter().map(str::to_owned).collect();
            if !finalizers.iter().any(|each| each == definition::CLEANUP) {
                finalizers.push(definition::CLEANUP.to_owned());
            }
            metadata_mut(object).insert("finalizers".into(), finalizers.into());
        }
        Some(Special::Pod) | None => {}
    }
}

/// Returns whether an object that is being deleted has nothing left to wait for.
pub(super) fn may_go(resource: &Resource, object: &Object) -> bool {
    let metadata = object.get("metadata").and_then(Value::as_object);
    let grace = metadata.and_then(|metadata| metadata.get("deletionGracePeriodSeconds"));
    let in_spec = object
        .get("spec")
        .filter(|_| special(resource) == Some(Special::Namespace))
        .and_then(|spec| spec.get("finalizers")?.as_array());
    metadata.is_some_and(|metadata| metadata.contains_key("deletionTimestamp"))
        && finalizers(object).is_empty()
        && grace.and_then(Value::as_u64).unwrap_or(0) == 0
        && in_spec.is_none_or(Vec::is_empty)
}

fn label_namespace(object: &mut Object) {
    let name = metadata_text(object, "name").to_owned();
    let labels = metadata_mut(object)
        .entry("labels")
        .or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert("kubernetes.io/metadata.name".into(), name.into());
    }
}

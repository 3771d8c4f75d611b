//! Built-in kinds with rules of their own.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::crd;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, finalizers, metadata_mut, metadata_text};
use serde_json::{Value, json};

use super::autoscalers;
use super::builtin::{certificates, claims, devices, pods, workloads};
use super::finalizers::finalizers_in_spec;
use super::part::Part;
use crate::status::ApiError;

/// The built-in kinds with rules of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    Namespace,
    Definition,
    Pod,
    DaemonSet,
    Deployment,
    Autoscaler,
    Claim,
    DeviceClaim,
    SigningRequest,
    Account,
    Service,
}

fn special(resource: &Resource) -> Option<Special> {
    match (&*resource.group, &*resource.plural) {
        ("", "namespaces") => Some(Special::Namespace),
        ("", "pods") => Some(Special::Pod),
        ("", "serviceaccounts") => Some(Special::Account),
        ("", "services") => Some(Special::Service),
        ("", "persistentvolumeclaims") => Some(Special::Claim),
        ("resource.k8s.io", "resourceclaims") => Some(Special::DeviceClaim),
        ("certificates.k8s.io", "certificatesigningrequests") => Some(Special::SigningRequest),
        ("apps", "daemonsets") => Some(Special::DaemonSet),
        ("apps", "deployments") => Some(Special::Deployment),
        ("autoscaling", "horizontalpodautoscalers") => Some(Special::Autoscaler),
        ("apiextensions.k8s.io", "customresourcedefinitions") => Some(Special::Definition),
        _ => None,
    }
}

/// Prepares a new object of the kind.
pub(crate) fn prepare_create(resource: &Resource, object: &mut Object) {
    match special(resource) {
        Some(Special::Namespace) => {
            label_namespace(object);
            finalize_namespace(object);
            object.insert("status".into(), json!({"phase": "Active"}));
        }
        Some(Special::Definition) => crd::prepare_create(object),
        Some(Special::DaemonSet) => workloads::count_templates(None, object),
        Some(Special::Claim) => claims::prepare(object, None),
        Some(Special::Account) => name_secrets(object),
        Some(Special::Service) => drop_internal_policy(object),
        Some(Special::Autoscaler) => autoscalers::keep(Part::Main, None, object),
        Some(
            Special::Pod | Special::SigningRequest | Special::DeviceClaim | Special::Deployment,
        )
        | None => {}
    }
}

/// Prepares a changed object of the kind.
pub(crate) fn prepare_update(resource: &Resource, part: Part, old: &Object, new: &mut Object) {
    match special(resource) {
        Some(Special::Namespace) => {
            label_namespace(new);
            // The spec has nothing but the finalizers, which only `finalize` may change.
            if part != Part::Finalize {
                let spec = old.get("spec").cloned().unwrap_or_else(|| json!({}));
                new.insert("spec".into(), spec);
            }
        }
        Some(Special::Definition) if part == Part::Status => crd::prepare_status(new),
        Some(Special::Definition) => crd::prepare_update(new),
        Some(Special::DaemonSet) => workloads::count_templates(Some(old), new),
        Some(Special::Deployment) if part == Part::Status => workloads::keep_rollback(old, new),
        Some(Special::Autoscaler) => autoscalers::keep(part, Some(old), new),
        Some(Special::Claim) => claims::prepare(new, Some(old)),
        Some(Special::Account) => name_secrets(new),
        Some(Special::DeviceClaim) => devices::drop_deallocated(part, old, new),
        Some(Special::SigningRequest) => certificates::keep(part, old, new),
        Some(Special::Pod) if part == Part::Status => pods::keep_status(old, new),
        Some(Special::Service) => {
            drop_internal_policy(new);
            if part == Part::Main {
                drop_balancer(new);
            }
        }
        Some(Special::Pod | Special::Deployment) | None => {}
    }
}

/// Drops `internalTrafficPolicy`, which a Service of type ExternalName does not have.
fn drop_internal_policy(service: &mut Object) {
    let Some(Value::Object(spec)) = service.get_mut("spec") else {
        return;
    };
    let policy = spec.get("internalTrafficPolicy").and_then(Value::as_str);
    // Validation refuses any other value.
    let is_valid = matches!(policy, Some("Cluster" | "Local"));
    if is_valid && spec.get("type").is_some_and(|kind| kind == "ExternalName") {
        spec.remove("internalTrafficPolicy");
    }
}

/// Forgets the balancer of a Service that is of another type now.
fn drop_balancer(service: &mut Object) {
    let kind = service.get("spec").and_then(|spec| spec["type"].as_str());
    if kind == Some("LoadBalancer") {
        return;
    }
    let status = service.get_mut("status").and_then(Value::as_object_mut);
    if let Some(status) = status {
        status.insert("loadBalancer".into(), json!({}));
    }
}

/// Validates an object by the rules of its kind.
///
/// It may replace an old one, of which `part` is written.
pub(crate) fn validate(
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
    part: Part,
) -> Vec<StatusCause> {
    match special(resource) {
        Some(Special::Definition) if part == Part::Status => crd::validate_status(object),
        Some(Special::Definition) => crd::validate(object, old),
        _ => Vec::new(),
    }
}

/// Refuses the deletion of an object that the cluster needs.
pub(crate) fn check_delete(resource: &Resource, name: &str) -> Result<(), ApiError> {
    // As immortalNamespaces of the plugin NamespaceLifecycle.
    let protected = matches!(name, "default" | "kube-system" | "kube-public");
    if special(resource) == Some(Special::Namespace) && protected {
        let reason = "this namespace may not be deleted";
        return Err(ApiError::forbidden(resource, name, reason));
    }
    Ok(())
}

/// Refuses the deletion by name of an object that the cluster needs.
pub(crate) fn check_delete_of(resource: &Resource, name: &str) -> Result<(), ApiError> {
    // `REST.Delete` of PriorityClasses; a deletion of many goes by it.
    let is_class =
        (&*resource.group, &*resource.plural) == ("scheduling.k8s.io", "priorityclasses");
    if is_class && matches!(name, "system-node-critical" | "system-cluster-critical") {
        let reason = "this is a system priority class and cannot be deleted";
        return Err(ApiError::forbidden(resource, name, reason));
    }
    check_delete(resource, name)
}

/// Returns whether an object that is being deleted has nothing left to wait for.
pub(crate) fn may_go(resource: &Resource, object: &Object) -> bool {
    // As ShouldDeleteDuringUpdate of the generic registry, and its twin for namespaces.
    let metadata = object.get("metadata").and_then(Value::as_object);
    let grace = metadata.and_then(|metadata| metadata.get("deletionGracePeriodSeconds"));
    metadata.is_some_and(|metadata| metadata.contains_key("deletionTimestamp"))
        && finalizers(object).is_empty()
        && grace.and_then(Value::as_u64).unwrap_or(0) == 0
        && finalizers_in_spec(resource, object).is_empty()
}

/// Drops all but the names of the secrets that a ServiceAccount refers to.
fn name_secrets(account: &mut Object) {
    // As cleanSecretReferences.
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten() {
        if let Some(secret) = secret.as_object_mut() {
            secret.retain(|member, _| member == "name");
        }
    }
}

/// Adds the finalizer of the server itself.
fn finalize_namespace(object: &mut Object) {
    const OWN: &str = "kubernetes";
    let spec = object.entry("spec").or_insert_with(|| json!({}));
    match spec.get_mut("finalizers") {
        Some(Value::Array(finalizers)) if finalizers.iter().any(|each| each == OWN) => {}
        Some(Value::Array(finalizers)) => finalizers.push(OWN.into()),
        _ => *spec = json!({"finalizers": [OWN]}),
    }
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

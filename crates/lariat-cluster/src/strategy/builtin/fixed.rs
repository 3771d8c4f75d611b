//! What cannot be changed once it is there.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use serde_json::Value;

use super::parts::{at, is_void};

/// Finds changes that the kind does not allow.
pub(super) fn validate(resource: &Resource, old: &Object, new: &Object) -> Vec<StatusCause> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod(old, new),
        ("", "services") => service(old, new),
        ("", "persistentvolumeclaims") => claim(old, new),
        ("apps", "deployments" | "replicasets" | "daemonsets") => {
            same(old, new, &["spec", "selector"]).into_iter().collect()
        }
        ("apps", "statefulsets") => stateful_set(old, new),
        ("batch", "jobs") => {
            let mut causes: Vec<StatusCause> =
                same(old, new, &["spec", "selector"]).into_iter().collect();
            let suspended = at(old, &["spec", "suspend"]) == Some(&Value::Bool(true));
            if !suspended {
                causes.extend(same(old, new, &["spec", "template"]));
            }
            causes.extend(same(old, new, &["spec", "completionMode"]));
            causes
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            let changed = old.get("roleRef") != new.get("roleRef");
            let value = new.get("roleRef").unwrap_or(&Value::Null);
            let message = "cannot change roleRef";
            changed
                .then(|| StatusCause::invalid("roleRef", value, message))
                .into_iter()
                .collect()
        }
        ("storage.k8s.io", "storageclasses") => [
            "provisioner",
            "parameters",
            "reclaimPolicy",
            "volumeBindingMode",
        ]
        .iter()
        .filter_map(|member| same(old, new, &[member]))
        .collect(),
        _ => Vec::new(),
    }
}

/// Refuses a change of one field.
fn same(old: &Object, new: &Object, path: &[&str]) -> Option<StatusCause> {
    let (was, is) = (at(old, path), at(new, path));
    let value = is.unwrap_or(&Value::Null);
    (was != is).then(|| StatusCause::invalid(&path.join("."), value, "field is immutable"))
}

/// Of a Pod only images, the deadline, tolerations and gates may change.
fn pod(old: &Object, new: &Object) -> Vec<StatusCause> {
    // While a gated Pod is not scheduled, its selection of nodes may be narrowed.
    let gated = !is_void(at(old, &["spec", "schedulingGates"]));
    let free = [
        "activeDeadlineSeconds",
        "tolerations",
        "schedulingGates",
        "terminationGracePeriodSeconds",
    ];
    let fixed = |object: &Object| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|member, _| !free.contains(&member.as_str()));
            if gated {
                spec.remove("nodeSelector");
            }
        }
        for list in ["containers", "initContainers"] {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                container
                    .as_object_mut()
                    .map(|container| container.remove("image"));
            }
        }
        spec
    };
    let message = "pod updates may not change fields other than \
        `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
        `spec.tolerations` (only additions to existing tolerations),\
        `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    if fixed(old) == fixed(new) {
        Vec::new()
    } else {
        vec![StatusCause::forbidden("spec", message)]
    }
}

fn service(old: &Object, new: &Object) -> Vec<StatusCause> {
    let was = at(old, &["spec", "clusterIP"])
        .and_then(Value::as_str)
        .unwrap_or_default();
    let becomes_external = at(new, &["spec", "type"]) == Some(&Value::from("ExternalName"));
    if was.is_empty() || becomes_external {
        return Vec::new();
    }
    same(old, new, &["spec", "clusterIP"]).into_iter().collect()
}

/// Of a claim only the requested size and the class of attributes may change.
fn claim(old: &Object, new: &Object) -> Vec<StatusCause> {
    let fixed = |object: &Object| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("resources");
            spec.remove("volumeAttributesClassName");
            // A controller binds it.
            spec.remove("volumeName");
        }
        spec
    };
    let message = "spec is immutable after creation except resources.requests and \
        volumeAttributesClassName for bound claims";
    if fixed(old) == fixed(new) {
        Vec::new()
    } else {
        vec![StatusCause::forbidden("spec", message)]
    }
}

fn stateful_set(old: &Object, new: &Object) -> Vec<StatusCause> {
    let free = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let fixed = |object: &Object| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|member, _| !free.contains(&member.as_str()));
        }
        spec
    };
    let message = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
        'template', 'updateStrategy', 'revisionHistoryLimit', \
        'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    if fixed(old) == fixed(new) {
        Vec::new()
    } else {
        vec![StatusCause::forbidden("spec", message)]
    }
}

//! What cannot be changed once it is there.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use serde_json::Value;

use super::parts::at;

/// Finds changes that the kind does not allow.
pub(super) fn validate(resource: &Resource, old: &Object, new: &Object) -> Vec<StatusCause> {
    match (resource.group.as_str(), resource.plural.as_str()) {
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

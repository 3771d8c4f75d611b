//! Secrets, volumes, roles and classes.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::{Value, json};

use super::amounts;
use super::members::{each, inner, made, set, set_number, set_text, text};
use super::pod;
use crate::object::{Object, metadata_mut, metadata_text};

/// Texts become data, which is all that is kept of them.
pub(super) fn secret(object: &mut Object) {
    if let Some(Value::Object(texts)) = object.remove("stringData")
        && let Some(data) = made(object, "data")
    {
        for (name, text) in texts {
            let encoded = BASE64.encode(text.as_str().unwrap_or_default());
            // `stringData` is write-only and wins over `data` of the same name.
            data.insert(name, encoded.into());
        }
    }
    set(object, "type", "Opaque");
}

/// A node gives Pods all it has.
pub(super) fn node(object: &mut Object) {
    let Some(status) = inner(object, "status") else {
        return;
    };
    if let Some(capacity) = status.get("capacity").cloned() {
        set(status, "allocatable", capacity);
    }
    amounts::round(status, &["capacity", "allocatable"]);
}

pub(super) fn quota(object: &mut Object) {
    for part in ["spec", "status"] {
        if let Some(part) = inner(object, part) {
            amounts::round(part, &["hard", "used"]);
        }
    }
}

pub(super) fn volume(object: &mut Object) {
    if let Some(spec) = made(object, "spec") {
        // A volume that was created by hand is kept; those of a StorageClass are deleted by default.
        set(spec, "persistentVolumeReclaimPolicy", "Retain");
        set(spec, "volumeMode", "Filesystem");
        pod::source(spec);
        amounts::round(spec, &["capacity"]);
    }
    pending(object);
}

/// Sets the phase of a volume or a claim that has none to `Pending`.
pub(super) fn pending(object: &mut Object) {
    if let Some(status) = made(object, "status") {
        set(status, "phase", "Pending");
    }
}

pub(super) fn claim(object: &mut Object) {
    if let Some(spec) = made(object, "spec") {
        set(spec, "volumeMode", "Filesystem");
        amounts::round_resources(spec);
    }
    pending(object);
    if let Some(status) = inner(object, "status") {
        amounts::round(status, &["capacity", "allocatedResources"]);
    }
}

/// A namespace is active, and labelled with its name as soon as it has one.
pub(super) fn namespace(object: &mut Object) {
    if let Some(status) = made(object, "status") {
        set(status, "phase", "Active");
    }
    let name = metadata_text(object, "name").to_owned();
    if !name.is_empty()
        && let Some(labels) = made(metadata_mut(object), "labels")
    {
        // `SetDefaults_Namespace` sets it on every write, so a client cannot change it. With `generateName` there is
        // no name yet, and the label comes with it.
        labels.insert("kubernetes.io/metadata.name".into(), name.into());
    }
}

/// Limits of containers follow from each other.
pub(super) fn limit_range(object: &mut Object) {
    let Some(spec) = made(object, "spec") else {
        return;
    };
    each(spec, "limits", |limit| {
        let lists = [
            "max",
            "min",
            "default",
            "defaultRequest",
            "maxLimitRequestRatio",
        ];
        amounts::round(limit, &lists);
        if text(limit, "type") != "Container" {
            return;
        }
        // `SetDefaults_LimitRangeItem`, in this order: a default from a maximum becomes a default request in turn.
        for (to, from) in [
            ("default", "max"),
            ("defaultRequest", "default"),
            ("defaultRequest", "min"),
        ] {
            let known = inner(limit, from)
                .map(|known| known.clone())
                .unwrap_or_default();
            if known.is_empty() {
                continue;
            }
            if let Some(amounts) = made(limit, to) {
                known
                    .into_iter()
                    .for_each(|(name, amount)| set(amounts, &name, amount));
            }
        }
    });
}

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn role_binding(object: &mut Object) {
    if let Some(role) = made(object, "roleRef") {
        // `SetDefaults_RoleBinding`, and the same for a ClusterRoleBinding.
        set_text(role, "apiGroup", RBAC);
    }
    each(object, "subjects", |subject| {
        // `SetDefaults_Subject`; a ServiceAccount is in the core group, whose name is empty.
        if matches!(text(subject, "kind"), "User" | "Group") {
            set(subject, "apiGroup", RBAC);
        }
    });
}

pub(super) fn storage_class(object: &mut Object) {
    set(object, "reclaimPolicy", "Delete");
    set(object, "volumeBindingMode", "Immediate");
}

pub(super) fn priority_class(object: &mut Object) {
    set(object, "preemptionPolicy", "PreemptLowerPriority");
}

pub(super) fn driver(object: &mut Object) {
    let Some(spec) = made(object, "spec") else {
        return;
    };
    // `SetDefaults_CSIDriver`.
    set(spec, "attachRequired", true);
    set(spec, "podInfoOnMount", false);
    set(spec, "storageCapacity", false);
    set(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    set(spec, "volumeLifecycleModes", vec!["Persistent"]);
    set(spec, "requiresRepublish", false);
    set(spec, "seLinuxMount", false);
}

pub(super) fn api_service(object: &mut Object) {
    let service = inner(object, "spec").and_then(|spec| inner(spec, "service"));
    if let Some(service) = service {
        set(service, "port", 443);
    }
}

pub(super) fn flow_schema(object: &mut Object) {
    if let Some(spec) = made(object, "spec") {
        set_number(spec, "matchingPrecedence", 1000);
    }
}

pub(super) fn priority_level(object: &mut Object) {
    let Some(spec) = inner(object, "spec") else {
        return;
    };
    // `SetDefaults_ExemptPriorityLevelConfiguration` and `SetDefaults_LimitedPriorityLevelConfiguration`.
    for (kind, shares) in [("exempt", 0), ("limited", 30)] {
        if let Some(level) = inner(spec, kind) {
            set(level, "nominalConcurrencyShares", shares);
            set(level, "lendablePercent", 0);
        }
    }
    let response = inner(spec, "limited").and_then(|level| inner(level, "limitResponse"));
    if let Some(queuing) = response.and_then(|response| inner(response, "queuing")) {
        // `SetDefaults_QueuingConfiguration`, where zero means not set.
        set_number(queuing, "handSize", 8);
        set_number(queuing, "queues", 64);
        set_number(queuing, "queueLengthLimit", 50);
    }
}

/// One device is requested unless more are; `path` leads to the spec of the claim.
pub(super) fn resource_claim(object: &mut Object, path: &[&str]) {
    let spec = path
        .iter()
        .try_fold(object, |object, member| inner(object, member));
    let Some(devices) = spec.and_then(|spec| inner(spec, "devices")) else {
        return;
    };
    each(devices, "requests", |request| {
        if let Some(exactly) = inner(request, "exactly") {
            device_count(exactly);
        }
        each(request, "firstAvailable", device_count);
    });
}

fn device_count(request: &mut Object) {
    set_text(request, "allocationMode", "ExactCount");
    // With `All`, a count would contradict the mode.
    if text(request, "allocationMode") == "ExactCount" {
        set_number(request, "count", 1);
    }
    tolerations(request);
}

/// Sets the defaults of the allocation of a claim.
pub(super) fn allocation(claim: &mut Object) {
    let path = ["status", "allocation", "devices"];
    let devices = path
        .iter()
        .try_fold(claim, |object, member| inner(object, member));
    if let Some(devices) = devices {
        each(devices, "results", tolerations);
    }
}

fn tolerations(object: &mut Object) {
    each(object, "tolerations", |toleration| {
        set_text(toleration, "operator", "Equal");
    });
}

/// Removes a reserved expression from the selector of a PodDisruptionBudget.
pub(super) fn disruption_budget(object: &mut Object) {
    const RESERVED: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";
    let selector = inner(object, "spec").and_then(|spec| inner(spec, "selector"));
    let Some(selector) = selector else {
        return;
    };
    // `Convert_v1_PodDisruptionBudget_To_policy_PodDisruptionBudget` lets the selector pass that matches nothing.
    let nothing = json!({"matchExpressions": [{"key": RESERVED, "operator": "Exists"}]});
    if nothing.as_object() == Some(&*selector) {
        return;
    }
    let Some(Value::Array(expressions)) = selector.get_mut("matchExpressions") else {
        return;
    };
    expressions.retain(|each| each["key"] != RESERVED);
    if expressions.is_empty() {
        selector.remove("matchExpressions");
    }
}

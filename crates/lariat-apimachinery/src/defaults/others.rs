//! Secrets, volumes, roles and classes.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::Value;

use super::members::{each, inner, made, set, text};
use crate::object::Object;

/// Texts become data, which is all that is kept of them.
pub(super) fn secret(object: &mut Object) {
    if let Some(Value::Object(texts)) = object.remove("stringData")
        && let Some(data) = made(object, "data")
    {
        for (name, text) in texts {
            let encoded = BASE64.encode(text.as_str().unwrap_or_default());
            data.insert(name, encoded.into());
        }
    }
    set(object, "type", "Opaque");
}

pub(super) fn volume(object: &mut Object) {
    if let Some(spec) = inner(object, "spec") {
        set(spec, "persistentVolumeReclaimPolicy", "Retain");
        set(spec, "volumeMode", "Filesystem");
    }
}

pub(super) fn claim(object: &mut Object) {
    if let Some(spec) = inner(object, "spec") {
        set(spec, "volumeMode", "Filesystem");
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn role_binding(object: &mut Object) {
    if let Some(role) = inner(object, "roleRef") {
        set(role, "apiGroup", RBAC);
    }
    each(object, "subjects", |subject| {
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
    set(spec, "attachRequired", true);
    set(spec, "podInfoOnMount", false);
    set(spec, "storageCapacity", false);
    set(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    set(spec, "volumeLifecycleModes", vec!["Persistent"]);
    set(spec, "requiresRepublish", false);
    set(spec, "seLinuxMount", false);
}

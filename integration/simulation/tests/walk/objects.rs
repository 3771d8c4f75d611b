//! The objects of a walk.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lariat_core::{Gvk, ObjectKey};

/// The namespaces of the objects.
pub(crate) const NAMESPACES: [&str; 3] = ["default", "other", "third"];

/// The kind that the program handles.
pub(crate) fn config_maps() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

/// The kind whose content a relation reads.
pub(crate) fn secrets() -> Gvk {
    Gvk::new("", "v1", "Secret")
}

/// Returns whether an object is one of the walk; others, such as a root certificate, are left alone.
pub(crate) fn is_of_walk(key: &ObjectKey) -> bool {
    key.name().starts_with("n-")
}

pub(crate) fn key_of(meta: &ObjectMeta) -> ObjectKey {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    ObjectKey::namespaced(&text(&meta.namespace), &text(&meta.name))
}

pub(crate) fn version_of(meta: &ObjectMeta) -> u64 {
    let version = meta.resource_version.as_deref();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

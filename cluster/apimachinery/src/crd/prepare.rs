//! What the server itself sets on CRDs.

use serde_json::{Value, json};

use super::parts::{array, flag};
use crate::object::Object;

/// The finalizer of a CRD that keeps it until its custom resources are deleted.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Fills in what the server sets on a new CRD.
pub fn prepare_create(object: &mut Object) {
    set_defaults(object);
    let status = json!({
        // As Go writes an empty status: a nil list of conditions, and the two names without `omitempty`.
        "conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": [],
    });
    object.insert("status".into(), status);
    remember_stored(object);
}

/// Fills in what the server sets on a changed CRD.
pub fn prepare_update(object: &mut Object) {
    set_defaults(object);
    remember_stored(object);
}

/// Fills in what the server sets on a CRD of which only the status was written.
// `SetDefaults_CustomResourceDefinition`.
pub fn prepare_status(object: &mut Object) {
    let stored = object.get("status").map(|status| &status["storedVersions"]);
    if stored.is_some_and(|stored| stored.as_array().is_none_or(Vec::is_empty)) {
        object["status"]["storedVersions"] = json!([]);
        remember_stored(object);
    }
}

/// Adds the storage version to the stored versions of the status.
///
/// Older versions stay until a client removes them.
fn remember_stored(object: &mut Object) {
    let versions = object
        .get("spec")
        .map_or(&[][..], |spec| array(spec, "versions"));
    // `PrepareForCreate` and `PrepareForUpdate` of the CRD strategy. A wrong number of storage versions is refused
    // later, by validation.
    let storage = versions.iter().find(|version| flag(version, "storage"));
    let name = storage.map(|version| version["name"].clone());
    let stored = object
        .get_mut("status")
        .and_then(|status| status.get_mut("storedVersions"));
    if let (Some(Value::Array(stored)), Some(name)) = (stored, name)
        && !stored.contains(&name)
    {
        stored.push(name);
    }
}

/// Sets the default names of a CRD and its default conversion strategy.
pub fn set_defaults(object: &mut Object) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    // `SetDefaults_CustomResourceDefinitionSpec`.
    set_default(spec, "conversion", || json!({"strategy": "None"}));
    let service = ["conversion", "webhook", "clientConfig", "service"];
    let service = service.iter().try_fold(&mut *spec, |object, member| {
        object.get_mut(*member)?.as_object_mut()
    });
    if let Some(service) = service {
        set_default(service, "port", || 443.into());
    }
    if let Some(Value::Object(names)) = spec.get_mut("names") {
        let kind = names
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if !kind.is_empty() {
            set_default(names, "singular", || kind.to_lowercase().into());
            set_default(names, "listKind", || format!("{kind}List").into());
        }
    }
    let versions = spec.get_mut("versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Value::Object(version) = version {
            set_default(version, "served", || false.into());
            set_default(version, "storage", || false.into());
        }
    }
}

fn set_default(object: &mut Object, member: &str, default: impl FnOnce() -> Value) {
    let present = object.get(member);
    // Go has empty texts for these, not pointers.
    if present.is_none_or(|value| value.is_null() || value == "") {
        object.insert(member.to_owned(), default());
    }
}

//! The rules of CustomResourceDefinitions.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation`.

mod conversion;
mod lists;
mod names;
mod rules;
mod schema;
mod spec;
mod structure;
mod version;

use serde_json::{Value, json};

use crate::store::Object;

pub(super) use spec::{validate, validate_update};

/// The finalizer under which the instances of a kind are removed before its definition.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Fills in what the server sets on a new definition.
pub(super) fn prepare_create(object: &mut Object) {
    set_defaults(object);
    let status = json!({
        "conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": [],
    });
    object.insert("status".into(), status);
    remember_stored(object);
}

/// Fills in what the server sets on a changed definition.
pub(super) fn prepare_update(object: &mut Object) {
    set_defaults(object);
    remember_stored(object);
}

/// Notes the version objects are stored in from now on; older ones stay until somebody removes them.
fn remember_stored(object: &mut Object) {
    let versions = object
        .get("spec")
        .map_or(&[][..], |spec| array(spec, "versions"));
    let storage = versions.iter().filter(|version| flag(version, "storage"));
    let names: Vec<Value> = storage.map(|version| version["name"].clone()).collect();
    let stored = object
        .get_mut("status")
        .and_then(|status| status.get_mut("storedVersions"));
    if let Some(Value::Array(stored)) = stored {
        for name in names {
            if !stored.contains(&name) {
                stored.push(name);
            }
        }
    }
}

/// Derives the names that were left out, and the conversion.
fn set_defaults(object: &mut Object) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    set_default(spec, "conversion", || json!({"strategy": "None"}));
    if let Some(Value::Object(names)) = spec.get_mut("names") {
        let kind = names.get("kind").and_then(Value::as_str);
        let kind = kind.unwrap_or_default().to_owned();
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
    if present.is_none_or(|value| value.is_null() || value == "") {
        object.insert(member.to_owned(), default());
    }
}

/// Returns a text in a part of a definition, empty if there is none.
fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value
        .get(member)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn flag(value: &Value, member: &str) -> bool {
    value.get(member) == Some(&Value::Bool(true))
}

fn array<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    let array = value.get(member).and_then(Value::as_array);
    array.map_or(&[], Vec::as_slice)
}

/// Returns whether Go would keep a value, which it does not for those that are nothing.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) | Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(_) => true,
    }
}

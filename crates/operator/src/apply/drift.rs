//! Decides whether an object is as wanted, from the object alone.
//!
//! A process that has just started remembers nothing of earlier applies. Each applied object has an annotation with a
//! hash of what was applied. If the hash is that of the wanted object, nothing else was applied for this set since. The
//! object is then as wanted in either of two cases:
//!
//! - Every wanted field has its value. This can be false for an object without drift: the API server writes some
//!   values in another form (`0.1` as `100m`), and other managers add to lists.
//! - The field manager still owns every wanted field. A manager that changes a scalar takes its ownership over, so
//!   a scalar that is still owned has the applied value, in whatever form. This does not hold for maps and lists
//!   that are owned as a whole: an entry stays with its manager even if another one changes everything in it. For
//!   these the values are compared.

use lariat_core::Gvk;
use serde_json::{Map, Value, json};

use crate::names::{APPLIED, Fnv};
use crate::wire::is_secret;

/// The members that every object has; they are not compared.
const OF_ALL: [&str; 2] = ["apiVersion", "kind"];
const METADATA_OF_ALL: [&str; 2] = ["name", "namespace"];

/// Returns a hash of a value.
///
/// The hash is the same in every process and version, and does not depend on the order of members: it is stored in the
/// cluster.
pub(super) fn hash(object: &Value) -> u64 {
    let mut hash = Fnv::default();
    write(&mut hash, object);
    hash.finish()
}

/// Returns the value of the annotation.
///
/// The hash does not cover the values of a Secret. Annotations are shown where secret values are not, and a short value
/// can be guessed from its hash.
pub(super) fn mark(gvk: &Gvk, object: &Value, hash_of_all: u64) -> String {
    if !is_secret(gvk) {
        return format!("{hash_of_all:016x}");
    }
    let mut object = object.clone();
    for field in ["data", "stringData"] {
        if let Some(Value::Object(values)) = object.get_mut(field) {
            values.values_mut().for_each(|value| *value = Value::Null);
        }
    }
    format!("{:016x}", hash(&object))
}

/// Returns the annotation of an object, if it has one.
pub(super) fn mark_of(object: &Value) -> Option<&str> {
    object
        .pointer("/metadata/annotations")?
        .get(APPLIED)?
        .as_str()
}

/// Returns whether an object is known to be as wanted.
pub(super) fn is_as_wanted(gvk: &Gvk, wanted: &Value, object: &Value, manager: &str) -> bool {
    if mark_of(object) != mark_of(wanted) {
        return false;
    }
    if is_secret(gvk) {
        // The annotation does not cover the values of a Secret, and ownership does not show which value was applied.
        return shows(object, &with_data(wanted.clone()));
    }
    shows(object, wanted) || is_owned(object, wanted, manager)
}

/// Returns whether an object has all wanted members with their values.
fn shows(object: &Value, wanted: &Value) -> bool {
    let mut members = wanted.as_object().into_iter().flatten();
    members.all(|(name, value)| OF_ALL.contains(&&**name) || has(object.get(name), value))
}

/// Returns whether a value is at least what is wanted: other members of maps are ignored.
///
/// A wanted `null` is a missing member, as in server-side apply.
fn has(there: Option<&Value>, wanted: &Value) -> bool {
    match (there, wanted) {
        (there, Value::Null) => there.is_none_or(Value::is_null),
        (Some(Value::Object(there)), Value::Object(wanted)) => {
            let mut members = wanted.iter();
            members.all(|(name, value)| has(there.get(name), value))
        }
        (Some(Value::Array(there)), Value::Array(wanted)) => {
            let mut pairs = there.iter().zip(wanted);
            there.len() == wanted.len() && pairs.all(|(there, wanted)| has(Some(there), wanted))
        }
        (there, wanted) => there == Some(wanted),
    }
}

/// Converts `stringData` of a Secret to `data`, as the API server does.
fn with_data(mut secret: Value) -> Value {
    let texts = secret
        .as_object_mut()
        .and_then(|secret| secret.remove("stringData"));
    let Some(Value::Object(texts)) = texts else {
        return secret;
    };
    if !secret["data"].is_object() {
        secret["data"] = json!({});
    }
    for (name, text) in texts {
        let bytes = text.as_str().unwrap_or_default().as_bytes().to_vec();
        secret["data"][name] = json!(k8s_openapi::ByteString(bytes));
    }
    secret
}

/// Returns whether a field manager owns all wanted members of an object.
fn is_owned(object: &Value, wanted: &Value, manager: &str) -> bool {
    let managed = object.pointer("/metadata/managedFields");
    let mut entries = managed.and_then(Value::as_array).into_iter().flatten();
    let is_ours = |entry: &&Value| {
        entry["manager"] == manager
            && entry["operation"] == "Apply"
            // An entry for another version of the kind may use other field names.
            && entry["apiVersion"] == wanted["apiVersion"]
            && entry["subresource"].as_str().is_none_or(str::is_empty)
    };
    // Without an entry the object was never applied in this version, or its managed fields were removed.
    let Some(fields) = entries.find(is_ours).map(|entry| &entry["fieldsV1"]) else {
        return false;
    };
    let mut members = wanted.as_object().into_iter().flatten();
    members.all(|(name, value)| match (&**name, value) {
        (name, _) if OF_ALL.contains(&name) => true,
        ("metadata", Value::Object(metadata)) => {
            let fields = fields.get("f:metadata").unwrap_or(&Value::Null);
            let mut members = metadata.iter();
            members.all(|(name, value)| {
                METADATA_OF_ALL.contains(&&**name)
                    || owns_member(fields, object.get("metadata"), name, value)
            })
        }
        (name, value) => owns_member(fields, Some(object), name, value),
    })
}

/// Returns whether a field set has a member and owns everything wanted in it.
///
/// `there` is the existing object, or the part of it that the field set describes.
fn owns_member(fields: &Value, there: Option<&Value>, name: &str, wanted: &Value) -> bool {
    // Field sets name a member `f:NAME`. A wanted null is no field, so no manager can own it.
    match fields.get(format!("f:{name}")) {
        Some(below) => owns(below, there.and_then(|there| there.get(name)), wanted),
        None => wanted.is_null(),
    }
}

/// Returns whether a field set owns everything wanted in a value.
fn owns(fields: &Value, there: Option<&Value>, wanted: &Value) -> bool {
    let below = fields.as_object();
    // A leaf of the field set: `{}`, or only `.`, which stands for the field itself.
    let is_leaf = below.is_none_or(|below| below.keys().all(|key| key == "."));
    if is_leaf {
        return is_whole(there, wanted);
    }
    match wanted {
        Value::Object(wanted) => {
            let mut members = wanted.iter();
            members.all(|(name, value)| owns_member(fields, there, name, value))
        }
        Value::Array(wanted) => below.is_some_and(|below| owns_elements(below, there, wanted)),
        _ => false,
    }
}

/// Returns whether a field that is owned as a whole has the wanted value.
///
/// A scalar has. So has an empty map or list, which has no content that another manager could have changed. For others
/// the values are compared: an atomic map or list, and an entry of which others have changed all members. Such an entry
/// stays owned although its members do not.
fn is_whole(there: Option<&Value>, wanted: &Value) -> bool {
    let is_empty = match wanted {
        Value::Object(members) => members.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        _ => true,
    };
    is_empty || has(there, wanted)
}

/// Returns whether a field set owns the elements of a list one by one.
///
/// Elements are matched to path elements in two passes: first those that match exactly, then those that lack keys.
/// Without the first pass, an element without a `protocol` could take the path element of another one.
fn owns_elements(below: &Map<String, Value>, there: Option<&Value>, wanted: &[Value]) -> bool {
    // Each path element stands for one element of the list, so a match takes it out.
    let mut free: Vec<(&str, &Value)> = below.iter().map(|(step, set)| (&**step, set)).collect();
    let mut take = |at: usize, element: &Value, is_exact: bool| {
        let found = free
            .iter()
            .position(|(step, _)| is_at(step, at, element, is_exact));
        found.map(|found| free.swap_remove(found))
    };
    let owns =
        |(step, set): (&str, &Value), element: &Value| owns(set, element_at(step, there), element);
    let mut unnamed = Vec::new();
    for (at, element) in wanted.iter().enumerate() {
        match take(at, element, true) {
            Some(found) if owns(found, element) => {}
            Some(_) => return false,
            None => unnamed.push((at, element)),
        }
    }
    // These elements lack keys that the API server has filled in by defaults, such as the protocol of a port.
    let mut unnamed = unnamed.into_iter();
    unnamed.all(|(at, element)| take(at, element, false).is_some_and(|found| owns(found, element)))
}

/// Returns the element of the existing list that a path element refers to.
fn element_at<'a>(step: &str, there: Option<&'a Value>) -> Option<&'a Value> {
    let mut elements = there?.as_array()?.iter().enumerate();
    elements
        .find(|(at, element)| is_at(step, *at, element, true))
        .map(|(_, element)| element)
}

/// Returns whether a path element refers to a list element.
///
/// Path elements are `v:` with a value, `i:` with an index and `k:` with keys. Unless `is_exact`, keys may be missing
/// in the element.
fn is_at(step: &str, at: usize, element: &Value, is_exact: bool) -> bool {
    let Some((kind, text)) = step.split_once(':') else {
        return false;
    };
    let read = || serde_json::from_str::<Value>(text).ok();
    match kind {
        "v" => read().is_some_and(|value| value == *element),
        "i" => text.parse() == Ok(at),
        "k" => match read() {
            Some(Value::Object(keys)) => keys.iter().all(|(name, key)| match element.get(name) {
                Some(value) => value == key,
                None => !is_exact,
            }),
            _ => false,
        },
        _ => false,
    }
}

/// Hashes a value.
///
/// Each value is preceded by its type and length, so that `["ab"]` and `["a", "b"]` differ.
fn write(hash: &mut Fnv, value: &Value) {
    match value {
        Value::Null => hash.write(b"n"),
        Value::Bool(value) => hash.write(if *value { b"t" } else { b"f" }),
        Value::Number(number) => text(hash, b"0", &number.to_string()),
        Value::String(value) => text(hash, b"\"", value),
        Value::Array(elements) => {
            hash.write(b"[");
            // Lists keep their order: it has a meaning, unlike that of members.
            hash.write(&(elements.len() as u64).to_le_bytes());
            elements.iter().for_each(|element| write(hash, element));
        }
        Value::Object(members) => {
            hash.write(b"{");
            hash.write(&(members.len() as u64).to_le_bytes());
            // serde_json keeps the order of insertion if any crate of the program enables a feature of it.
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in members {
                text(hash, b"\"", name);
                write(hash, value);
            }
        }
    }
}

fn text(hash: &mut Fnv, kind: &[u8], text: &str) {
    hash.write(kind);
    hash.write(&(text.len() as u64).to_le_bytes());
    hash.write(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(spec: &Value, fields: &Value) -> Value {
        json!({"apiVersion": "demo.dev/v1", "kind": "Widget", "spec": spec, "metadata": {"name": "a", "managedFields": [
            {"manager": "us", "operation": "Apply", "apiVersion": "demo.dev/v1", "fieldsV1": {"f:spec": fields}}]}})
    }

    /// Returns whether a Widget with a spec of which we own fields is as another spec wants it.
    fn is_owned(spec: &Value, fields: &Value, wanted: &Value) -> bool {
        let wanted = json!({"apiVersion": "demo.dev/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": wanted});
        super::is_owned(&object(spec, fields), &wanted, "us")
    }

    #[test]
    fn an_entry_that_is_owned_says_nothing_of_members_that_others_changed() {
        let wanted = json!({"pools": {"x": {"size": 1}}});
        let theirs = json!({"pools": {"x": {"size": 2}}});
        let whole = json!({"f:pools": {"f:x": {".": {}, "f:size": {}}}});
        assert!(is_owned(&wanted, &whole, &wanted));
        for left in [json!({}), json!({".": {}})] {
            let fields = json!({"f:pools": {"f:x": left}});
            assert!(!is_owned(&theirs, &fields, &wanted), "{fields}");
            assert!(is_owned(&wanted, &fields, &wanted), "{fields}");
        }
        let fields = json!({"f:pools": {}});
        assert!(!is_owned(&theirs, &fields, &wanted));
    }

    #[test]
    fn an_atomic_list_in_an_element_is_compared_with_that_of_the_element() {
        let port = |name: &str, list: Value| json!({"name": name, "list": list});
        let wanted = json!({"cpu": "0.1", "ports": [port("a", json!([1])), port("b", json!([2]))]});
        let fields = json!({"f:cpu": {}, "f:ports": {
            "k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:list": {}},
            "k:{\"name\":\"b\"}": {".": {}, "f:name": {}, "f:list": {}}}});
        // In another order, and with a value in another form.
        let there = |last: i64| {
            let ports = [
                port("b", json!([last])),
                port("more", json!([7])),
                port("a", json!([1])),
            ];
            json!({"cpu": "100m", "ports": ports})
        };
        assert!(is_owned(&there(2), &fields, &wanted));
        assert!(!is_owned(&there(3), &fields, &wanted));
    }
}

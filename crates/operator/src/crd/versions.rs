//! Merges the versions of a CRD: ours, and those of other programs.

use kube::core::Version;
use serde_json::Value;

use super::json::{is_true, text};
use super::report::CrdMismatch;

/// The versions that a CRD should have.
pub(super) struct Versions {
    pub(super) merged: Vec<Value>,
    pub(super) mismatches: Vec<CrdMismatch>,
}

pub(super) fn name(version: &Value) -> &str {
    text(version, "/name")
}

pub(super) fn named<'a>(versions: &'a [Value], wanted: &str) -> Option<&'a Value> {
    versions.iter().find(|version| name(version) == wanted)
}

/// Merges the lists of versions.
///
/// Our versions replace installed ones of the same name, and the others are kept, because their clients and stored
/// objects need them. Unless `removes_fields` is set, fields that only the installed schema of a version has are kept
/// too: the API server would prune them from the objects of a newer program. Exactly one version is the storage version: ours, unless objects are stored in a newer version
/// that we do not know.
pub(super) fn merge(ours: &[Value], theirs: &[Value], removes_fields: bool) -> Versions {
    let unknown: Vec<&Value> = theirs
        .iter()
        .filter(|version| named(ours, name(version)).is_none())
        .collect();
    let mut mismatches: Vec<CrdMismatch> = unknown
        .iter()
        .map(|version| CrdMismatch::UnknownVersion {
            version: name(version).to_owned(),
            served: is_true(version, "/served"),
        })
        .collect();
    let our_storage = storage(ours);
    // During a rolling update an older program may start after a newer one. It must not set the storage version back.
    let newer = storage(theirs).filter(|storage| {
        let is_unknown = unknown.iter().any(|version| name(version) == *storage);
        is_unknown && is_newer(storage, our_storage.unwrap_or_default())
    });
    if let Some(version) = newer.map(str::to_owned) {
        mismatches.push(CrdMismatch::StoredAsNewer { version });
    }
    let storage = newer.or(our_storage);
    let replaced = theirs
        .iter()
        .map(|version| named(ours, name(version)).unwrap_or(version));
    let added = ours
        .iter()
        .filter(|version| named(theirs, name(version)).is_none());
    let mut merged: Vec<Value> = replaced.chain(added).cloned().collect();
    for version in &mut merged {
        if !removes_fields && keep_installed_fields(version, theirs) {
            let version = name(version).to_owned();
            mismatches.push(CrdMismatch::UnknownFields { version });
        }
        let is_storage = Some(name(version)) == storage;
        if let Some(members) = version.as_object_mut() {
            // The API server refuses a CRD with none or more than one storage version.
            members.insert("storage".into(), is_storage.into());
        }
    }
    Versions { merged, mismatches }
}

/// Adds the fields to a version that only the installed one has; returns whether there are any.
fn keep_installed_fields(version: &mut Value, theirs: &[Value]) -> bool {
    const SCHEMA: &str = "/schema/openAPIV3Schema";
    let installed = named(theirs, name(version)).and_then(|theirs| theirs.pointer(SCHEMA));
    let ours = version.pointer_mut(SCHEMA);
    ours.zip(installed)
        .is_some_and(|(ours, installed)| keep_fields(ours, installed))
}

/// Adds the fields to a schema that only another one has; returns whether there are any.
fn keep_fields(ours: &mut Value, theirs: &Value) -> bool {
    // With another type, or with unknown fields preserved, the schema says nothing about these fields.
    if ours["type"] != theirs["type"] || is_true(ours, "/x-kubernetes-preserve-unknown-fields") {
        return false;
    }
    let mut is_changed = false;
    for part in ["items", "additionalProperties"] {
        if let (Some(our), Some(their)) = (ours.get_mut(part), theirs.get(part))
            && our.is_object()
        {
            is_changed |= keep_fields(our, their);
        }
    }
    // A schema without fields of its own, such as that of a map, gets none.
    let Some(fields) = ours.get_mut("properties").and_then(Value::as_object_mut) else {
        return is_changed;
    };
    for (name, their) in theirs["properties"].as_object().into_iter().flatten() {
        match fields.get_mut(name) {
            Some(our) => is_changed |= keep_fields(our, their),
            None => {
                fields.insert(name.clone(), their.clone());
                is_changed = true;
            }
        }
    }
    is_changed
}

/// Returns the name of the storage version.
pub(super) fn storage(versions: &[Value]) -> Option<&str> {
    let storage = versions.iter().find(|version| is_true(version, "/storage"));
    storage.map(name)
}

/// Returns whether a version is newer than another, in Kubernetes' order.
///
/// The order is v2, v1, v1beta1, v1alpha1.
pub(super) fn is_newer(version: &str, than: &str) -> bool {
    Version::parse(version).priority() > Version::parse(than).priority()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version(name: &str, storage: bool, by: &str) -> Value {
        json!({"name": name, "served": true, "storage": storage, "by": by})
    }

    fn check(ours: &[Value], theirs: &[Value], merged: &[Value], mismatches: &[&str]) {
        let found = merge(ours, theirs, false);
        assert_eq!(found.merged, merged);
        let found: Vec<String> = found.mismatches.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), mismatches.len(), "{found:?}");
        for (found, mismatch) in found.iter().zip(mismatches) {
            assert!(found.contains(mismatch), "{found:?}");
        }
    }

    #[test]
    fn what_a_newer_program_stores_stays_so() {
        check(
            &[version("v1", true, "us")],
            &[version("v1", false, "them"), version("v2", true, "them")],
            &[version("v1", false, "us"), version("v2", true, "them")],
            &["version v2 is installed and served", "stored as v2"],
        );
    }

    #[test]
    fn what_an_older_program_stores_is_taken_over() {
        check(
            &[version("v1", true, "us")],
            &[version("v1beta1", true, "them")],
            &[version("v1beta1", false, "them"), version("v1", true, "us")],
            &["version v1beta1 is installed"],
        );
    }

    #[test]
    fn known_versions_are_ours() {
        check(
            &[version("v1", true, "us"), version("v1beta1", false, "us")],
            &[version("v1beta1", true, "them")],
            &[version("v1beta1", false, "us"), version("v1", true, "us")],
            &[],
        );
    }

    #[test]
    fn fields_of_installed_version_stay_unless_removal_is_asked_for() {
        let with = |schema: Value| json!({"name": "v1", "storage": true, "schema": {"openAPIV3Schema": schema}});
        let object = |fields: Value| json!({"type": "object", "properties": fields});
        let text = json!({"type": "string"});
        let items = |fields: Value| json!({"type": "array", "items": object(fields)});
        let theirs = object(json!({
            "tls": text, "ports": items(json!({"port": text, "name": text})),
            "map": object(json!({"x": text})), "size": object(json!({"x": text})), "any": object(json!({"x": text})),
        }));
        let map = json!({"type": "object", "additionalProperties": text});
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"y": text}});
        let ours = object(json!({
            "image": text, "ports": items(json!({"port": text})), "map": map, "size": text, "any": any,
        }));
        let both = object(json!({
            "image": text, "ports": items(json!({"port": text, "name": text})), "map": map, "size": text, "any": any,
            "tls": text,
        }));
        let (ours, theirs) = ([with(ours)], [with(theirs)]);
        check(&ours, &theirs, &[with(both)], &["version v1 has fields"]);
        assert_eq!(merge(&ours, &theirs, true).merged, ours);
    }

    #[test]
    fn versions_are_ordered_as_kubernetes_does() {
        let ordered = ["v2", "v1", "v1beta2", "v1beta1", "v1alpha1"];
        for pair in ordered.windows(2) {
            assert!(
                is_newer(pair[0], pair[1]) && !is_newer(pair[1], pair[0]),
                "{pair:?}"
            );
        }
    }
}

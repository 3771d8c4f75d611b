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
/// objects need them. Exactly one version is the storage version: ours, unless objects are stored in a newer version
/// that we do not know.
pub(super) fn merge(ours: &[Value], theirs: &[Value]) -> Versions {
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
        let is_storage = Some(name(version)) == storage;
        if let Some(members) = version.as_object_mut() {
            // The API server refuses a CRD with none or more than one storage version.
            members.insert("storage".into(), is_storage.into());
        }
    }
    Versions { merged, mismatches }
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
        let found = merge(ours, theirs);
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

//! Owners that are deleted, and what becomes of their dependents.

use serde_json::json;

use super::script::Script;
use crate::step::{Body, Cleanup, How};

const CONFIGMAPS: &str = "/api/v1/namespaces/${ns}/configmaps";

/// An owner with two dependents, deleted in one of the ways there are.
pub(super) fn owners(script: &mut Script<'_>) {
    script
        .cleanup
        .push(Cleanup::Collection(CONFIGMAPS.to_owned()));
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"run": "${id}"}}});
    let owner = script.step("create", "POST", CONFIGMAPS, Body::Json(map("owner")));
    let blocks = script.random.bool();
    for name in ["one", "two"] {
        let mut dependent = map(name);
        dependent["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": format!("${{uid:{owner}}}"),
            "blockOwnerDeletion": blocks, "controller": name == "one",
        }]);
        if name == "one" && script.chance(30) {
            dependent["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        script.step("create", "POST", CONFIGMAPS, Body::Json(dependent));
    }
    let policy = script.pick(&["Background", "Foreground", "Orphan"]);
    let path = format!("{CONFIGMAPS}/owner");
    script.step(&format!("delete {policy}"), "DELETE", &path, Body::None);
    script.query("propagationPolicy", policy);
    let until = if policy == "Orphan" {
        &path[..]
    } else {
        CONFIGMAPS
    };
    script.step("wait", "GET", until, Body::None);
    script.how(How::UntilGone);
    // What the policy has made of the dependents.
    script.step("list", "GET", CONFIGMAPS, Body::None);
    // The sequence was begun for another kind, by which its differences would be named.
    for step in &mut script.steps {
        "ConfigMap".clone_into(&mut step.kind);
    }
}

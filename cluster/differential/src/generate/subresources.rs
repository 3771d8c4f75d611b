//! Requests to what is below an object.

use serde_json::{Value, json};

use super::script::Script;
use super::{mutate, patches};
use crate::edit::Edit;
use crate::step::Body;

/// Makes a request to one of the subresources, or another patch if there are none.
pub(super) fn any(script: &mut Script<'_>, which: usize) {
    let streams = ["log", "exec", "attach", "portforward", "proxy"];
    let known = script.kind.subresources.iter();
    let known: Vec<String> = known
        .filter(|name| !streams.contains(&name.as_str()))
        .cloned()
        .collect();
    if known.is_empty() {
        patches::patch(script, which);
        return;
    }
    let subresource = script.pick(&known);
    let path = format!("{}/{subresource}", script.path(which));
    match subresource.as_str() {
        "status" => status(script, which, &path),
        "scale" => scale(script, which, &path),
        "eviction" => eviction(script, which, &path),
        "binding" => binding(script, which, &path),
        "token" => token(script, &path),
        "finalize" | "approval" => finalize(script, which, &path, &subresource),
        _ => patches::patch_at(script, which, &path, &format!(" {subresource}")),
    }
}

fn status(script: &mut Script<'_>, which: usize, path: &str) {
    if script.kind.statuses.is_empty() || script.chance(50) {
        patches::patch_at(script, which, path, " status");
        return;
    }
    if script.chance(10) {
        script.step("get status", "GET", path, Body::None);
        return;
    }
    let mut status = script.pick(&script.kind.statuses.clone());
    if script.chance(50) {
        let inner = json!({"status": status});
        let edit = mutate::content(script.random, &inner);
        let mut changed = inner;
        edit.apply(&mut changed);
        status = changed["status"].take();
    }
    let last = script.last[which].filter(|_| script.random.u32(..100) < 85);
    let body = match last {
        Some(of) => Body::Edited {
            of,
            edits: vec![Edit::set(&["status"], status)],
        },
        None => {
            let mut manifest = script.manifest(which);
            manifest["status"] = status;
            Body::Json(manifest)
        }
    };
    script.step("update status", "PUT", path, body);
    script.write_options();
}

fn scale(script: &mut Script<'_>, which: usize, path: &str) {
    let replicas = script.pick(&[
        json!(0),
        json!(1),
        json!(5),
        json!(-1),
        json!("x"),
        Value::Null,
    ]);
    match script.random.u32(..6) {
        0 => drop(script.step("get scale", "GET", path, Body::None)),
        1 => {
            let name = script.name(which);
            let body = json!({
                "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": {"replicas": replicas},
            });
            script.step("update scale", "PUT", path, Body::Json(body));
            script.write_options();
        }
        2 => {
            let body = json!([{"op": "replace", "path": "/spec/replicas", "value": replicas}]);
            script.step("json patch scale", "PATCH", path, Body::Json(body));
            script.header("content-type", "application/json-patch+json");
            script.write_options();
        }
        3 => {
            let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas}});
            script.step("apply scale", "PATCH", path, Body::Json(body));
            script.header("content-type", "application/apply-patch+yaml");
            script.query("fieldManager", "m1");
            script.query("force", "true");
        }
        _ => {
            let body = json!({"spec": {"replicas": replicas}});
            script.step("merge patch scale", "PATCH", path, Body::Json(body));
            script.header("content-type", "application/merge-patch+json");
            script.write_options();
        }
    }
}

fn eviction(script: &mut Script<'_>, which: usize, path: &str) {
    let name = script.name(which);
    let mut body =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    match script.random.u32(..6) {
        0 => body["metadata"]["name"] = "other".into(),
        1 => body["deleteOptions"] = json!({"preconditions": {"uid": "x"}}),
        2 => body["deleteOptions"] = json!({"dryRun": ["All"]}),
        3 => body["apiVersion"] = "policy/v1beta1".into(),
        _ => {}
    }
    script.step("evict", "POST", path, Body::Json(body));
}

fn binding(script: &mut Script<'_>, which: usize, path: &str) {
    let name = script.name(which);
    let mut body = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
    });
    match script.random.u32(..6) {
        0 => body["target"]["kind"] = "Pod".into(),
        1 => body["target"]["name"] = "".into(),
        2 => body["metadata"]["annotations"] = json!({"bound": "yes"}),
        3 => body["metadata"]["labels"] = json!({"bound": "yes"}),
        _ => {}
    }
    script.step("bind", "POST", path, Body::Json(body));
}

fn token(script: &mut Script<'_>, path: &str) {
    let spec = script.pick(&[
        json!({}),
        json!({"audiences": ["a"], "expirationSeconds": 3600}),
        json!({"expirationSeconds": 10}),
        json!({"expirationSeconds": 1_000_000_000_000_u64}),
        json!({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "missing"}}),
        json!({"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "a"}}),
    ]);
    let body =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    script.step("request token", "POST", path, Body::Json(body));
}

/// Writes a subresource that takes the whole object.
fn finalize(script: &mut Script<'_>, which: usize, path: &str, subresource: &str) {
    let condition =
        |name: &str| json!([{"type": name, "status": "True", "reason": "R", "message": "m"}]);
    let edit = script.pick(&[
        Edit::set(&["status", "conditions"], condition("Approved")),
        Edit::set(&["status", "conditions"], condition("Denied")),
        Edit::set(&["status", "conditions"], condition("Other")),
        Edit::set(
            &["spec", "finalizers"],
            json!(["kubernetes", "example.com/x"]),
        ),
        Edit::set(&["spec", "finalizers"], json!(["bad name"])),
        Edit::set(&["metadata", "labels", "x"], json!("y")),
    ]);
    let body = match script.last[which] {
        Some(of) => Body::Edited {
            of,
            edits: vec![edit],
        },
        None => {
            let mut manifest = script.manifest(which);
            edit.apply(&mut manifest);
            Body::Json(manifest)
        }
    };
    script.step(&format!("update {subresource}"), "PUT", path, body);
}

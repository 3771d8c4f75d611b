//! Patches of every type, by two managers.

use serde_json::{Value, json};

use super::mutate;
use super::script::Script;
use crate::edit::{Edit, paths};
use crate::step::Body;

/// Patches an object.
pub(super) fn patch(script: &mut Script<'_>, which: usize) {
    let path = script.path(which);
    patch_at(script, which, &path, "");
}

/// Patches an object at the path of a subresource.
pub(super) fn patch_at(script: &mut Script<'_>, which: usize, path: &str, suffix: &str) {
    match script.random.u32(..100) {
        0..25 => merge(script, which, path, suffix),
        25..45 => strategic(script, which, path, suffix),
        45..62 => operations(script, which, path, suffix),
        _ => apply(script, which, path, suffix),
    }
    script.leaves(which);
    let id = script.steps.last().map(|step| step.id);
    if suffix.is_empty() && script.chance(50) {
        script.last[which] = id;
    }
}

fn document(script: &mut Script<'_>, which: usize, suffix: &str) -> Value {
    let mut manifest = script.manifest(which);
    if suffix == " status" && !script.kind.statuses.is_empty() {
        let status = script.pick(&script.kind.statuses.clone());
        let manifest = manifest.as_object_mut().expect("a manifest is an object");
        manifest.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
        manifest.insert("status".to_owned(), status);
    }
    manifest
}

fn merge(script: &mut Script<'_>, which: usize, path: &str, suffix: &str) {
    let document = document(script, which, suffix);
    let edit = mutate::edit(script.random, &document, std::slice::from_ref(&document));
    let mut body = edit.as_merge(&document);
    if script.chance(10) {
        let last = script.last[which].unwrap_or(999);
        Edit::set(
            &["metadata", "resourceVersion"],
            format!("${{rv:{last}}}").into(),
        )
        .apply(&mut body);
    }
    script.step(
        &format!("merge patch{suffix}"),
        "PATCH",
        path,
        Body::Json(body),
    );
    script.header("content-type", "application/merge-patch+json");
    script.write_options();
}

fn strategic(script: &mut Script<'_>, which: usize, path: &str, suffix: &str) {
    let document = document(script, which, suffix);
    let edit = mutate::edit(script.random, &document, &script.kind.manifests);
    let mut body = edit.as_merge(&document);
    if script.chance(40) {
        direct(script, &mut body);
    }
    script.step(
        &format!("strategic patch{suffix}"),
        "PATCH",
        path,
        Body::Json(body),
    );
    script.header("content-type", "application/strategic-merge-patch+json");
    script.write_options();
}

/// Adds a directive somewhere in a strategic merge patch.
fn direct(script: &mut Script<'_>, body: &mut Value) {
    let mut places = paths(body);
    places.retain(|path| crate::edit::at(body, path).is_some_and(Value::is_object));
    let mut place = if places.is_empty() {
        Vec::new()
    } else {
        script.pick(&places)
    };
    let (name, value) = script.pick(&[
        ("$patch", json!("delete")),
        ("$patch", json!("replace")),
        ("$patch", json!("merge")),
        ("$patch", json!("nonsense")),
        ("$retainKeys", json!(["name", "type"])),
        (
            "$setElementOrder/containers",
            json!([{"name": "second"}, {"name": "main"}]),
        ),
        ("$setElementOrder/ports", json!([{"port": 80}])),
        (
            "$deleteFromPrimitiveList/finalizers",
            json!(["example.com/hold"]),
        ),
    ]);
    place.push(name.to_owned());
    Edit {
        path: place,
        value: Some(value),
    }
    .apply(body);
}

fn operations(script: &mut Script<'_>, which: usize, path: &str, suffix: &str) {
    let document = document(script, which, suffix);
    let count = script.random.usize(1..4);
    let operations: Vec<Value> = (0..count)
        .map(|_| {
            let edit = mutate::edit(script.random, &document, &script.kind.manifests);
            let operation = edit.as_operation(script.random.bool());
            odd_operation(script, operation)
        })
        .collect();
    script.step(
        &format!("json patch{suffix}"),
        "PATCH",
        path,
        Body::Json(operations.into()),
    );
    script.header("content-type", "application/json-patch+json");
    script.write_options();
}

/// Replaces an operation, sometimes, by one of another kind.
fn odd_operation(script: &mut Script<'_>, operation: Value) -> Value {
    let path = operation["path"].clone();
    match script.random.u32(..16) {
        0 => json!({"op": "test", "path": path, "value": "x"}),
        1 => json!({"op": "copy", "from": path, "path": "/metadata/annotations"}),
        2 => {
            json!({"op": "move", "from": "/metadata/labels/app", "path": "/metadata/labels/moved"})
        }
        3 => json!({"op": "test", "path": "/metadata/labels/app", "value": "a"}),
        4 => json!({"op": "nonsense", "path": path}),
        5 => json!({"op": "add", "path": "/metadata/labels/new", "value": "x"}),
        6 => json!({"op": "replace", "path": "/spec/replicas", "value": 4}),
        _ => operation,
    }
}

/// Applies a part of a manifest.
fn apply(script: &mut Script<'_>, which: usize, path: &str, suffix: &str) {
    let mut body = document(script, which, suffix);
    thin(script, &mut body);
    if script.chance(45) {
        mutate::content(script.random, &body).apply(&mut body);
    }
    if script.chance(5) {
        let edit = mutate::edit(script.random, &body, &script.kind.manifests);
        edit.apply(&mut body);
    }
    script.step(&format!("apply{suffix}"), "PATCH", path, Body::Json(body));
    script.header("content-type", "application/apply-patch+yaml");
    let manager = script.pick(&["m1", "m1", "m2", "m2", ""]);
    if !manager.is_empty() || script.chance(10) {
        script.query("fieldManager", manager);
    } else {
        script.query("fieldManager", "m3");
    }
    match script.random.u32(..10) {
        0..4 => script.query("force", "true"),
        4 => script.query("force", "false"),
        5 => script.query("fieldValidation", "Strict"),
        _ => {}
    }
}

/// Removes some optional members, so that managers own different parts.
fn thin(script: &mut Script<'_>, body: &mut Value) {
    for _ in 0..script.random.usize(0..4) {
        let mut places = mutate::content_paths(body);
        places.retain(|path| {
            let name = path.last().map_or("", String::as_str);
            path.len() > 1
                && !matches!(
                    name,
                    "name" | "port" | "containerPort" | "protocol" | "type"
                )
        });
        if places.is_empty() {
            return;
        }
        let path = script.pick(&places);
        Edit { path, value: None }.apply(body);
    }
}

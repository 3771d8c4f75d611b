//! Lives of objects, and objects that are only tried.

use serde_json::{Value, json};

use super::script::Script;
use super::{mutate, patches, reads, subresources};
use crate::edit::Edit;
use crate::step::Body;

/// One to two objects, and what is done with them.
pub(super) fn live(script: &mut Script<'_>) {
    let objects = if script.chance(30) { 2 } else { 1 };
    let has_watch = script.chance(25);
    if has_watch {
        reads::live_watch(script);
    }
    for which in 0..objects {
        create(script, which);
    }
    for _ in 0..script.random.usize(2..10) {
        let which = script.random.usize(..objects);
        act(script, which);
    }
    for which in 0..objects {
        get(script, which);
    }
    if script.chance(30) {
        reads::list(script);
    }
    if !has_watch && script.chance(20) {
        reads::watch(script);
    }
}

/// Many creations of which nothing is stored.
pub(super) fn dry(script: &mut Script<'_>) {
    for _ in 0..script.random.usize(6..14) {
        let mut manifest = script.manifest(0);
        let edits = script.random.usize(1..3);
        for _ in 0..edits {
            let variants = &script.kind.manifests;
            mutate::edit(script.random, &manifest, variants).apply(&mut manifest);
        }
        let collection = script.kind.collection();
        script.step("create", "POST", &collection, Body::Json(manifest));
        script.query("dryRun", "All");
        match script.random.u32(..8) {
            0 => script.query("fieldValidation", "Strict"),
            1 => script.query("fieldValidation", "Ignore"),
            _ => {}
        }
    }
}

/// Creates an object; if it is made invalid, a valid one is created next.
pub(super) fn create(script: &mut Script<'_>, which: usize) {
    let is_delicate = script.kind.is_delicate();
    if !is_delicate && script.chance(40) {
        let mut manifest = script.manifest(which);
        let variants = &script.kind.manifests;
        mutate::edit(script.random, &manifest, variants).apply(&mut manifest);
        post(script, which, manifest);
        script.write_options();
    }
    let mut manifest = script.manifest(which);
    if script.kind.namespaced && script.chance(4) {
        Edit::remove(&["metadata", "name"]).apply(&mut manifest);
        Edit::set(&["metadata", "generateName"], json!("gen-")).apply(&mut manifest);
    }
    post(script, which, manifest);
    if !is_delicate && script.chance(20) {
        script.query("fieldManager", "m1");
    }
    script.last[which] = script.steps.last().map(|step| step.id);
}

fn post(script: &mut Script<'_>, which: usize, manifest: Value) {
    let collection = script.kind.collection();
    script.leaves(which);
    script.step("create", "POST", &collection, Body::Json(manifest));
}

fn get(script: &mut Script<'_>, which: usize) {
    let path = script.path(which);
    let id = script.step("get", "GET", &path, Body::None);
    if script.chance(10) {
        reads::shape(script);
        return;
    }
    script.last[which] = Some(id);
}

/// Does one random thing with an object.
fn act(script: &mut Script<'_>, which: usize) {
    match script.random.u32(..100) {
        0..22 => update(script, which),
        22..62 => patches::patch(script, which),
        62..78 => subresources::any(script, which),
        78..84 => get(script, which),
        84..88 => reads::list(script),
        88..90 => reads::watch(script),
        90..98 => delete(script, which),
        _ => create(script, which),
    }
    if script.kind.is_delicate() {
        keep_dry(script);
    }
}

/// Makes a dry run of the last step, if it is a write other than a deletion.
fn keep_dry(script: &mut Script<'_>) {
    let step = script.steps.last().expect("there is one");
    let has = step.query.iter().any(|(name, _)| name == "dryRun");
    if matches!(step.method.as_str(), "POST" | "PUT" | "PATCH") && !has {
        script.query("dryRun", "All");
    }
}

/// Replaces an object by what was read of it, changed.
fn update(script: &mut Script<'_>, which: usize) {
    let path = script.path(which);
    let manifest = script.manifest(which);
    let variants = &script.kind.manifests;
    let mut edits = vec![mutate::edit(script.random, &manifest, variants)];
    if script.chance(15) {
        edits.push(mutate::edit(script.random, &manifest, variants));
    }
    let last = script.last[which].filter(|_| script.random.u32(..100) < 80);
    let body = match last {
        Some(of) => {
            edits.extend(version_edit(script));
            Body::Edited { of, edits }
        }
        None => {
            let mut changed = manifest;
            edits[0].apply(&mut changed);
            Body::Json(changed)
        }
    };
    let id = script.step("update", "PUT", &path, body);
    script.write_options();
    script.leaves(which);
    if script.chance(50) {
        script.last[which] = Some(id);
    }
}

/// Sometimes changes the replaced version, or another part of the identity.
fn version_edit(script: &mut Script<'_>) -> Option<Edit> {
    match script.random.u32(..14) {
        0 => Some(Edit::remove(&["metadata", "resourceVersion"])),
        1 => Some(Edit::set(&["metadata", "resourceVersion"], json!("1"))),
        2 => Some(Edit::set(&["metadata", "managedFields"], json!([]))),
        3 => Some(Edit::set(&["metadata", "managedFields"], json!([{}]))),
        4 => Some(Edit::remove(&["metadata", "uid"])),
        5 => Some(Edit::remove(&["metadata", "creationTimestamp"])),
        _ => None,
    }
}

/// Deletes an object, with options.
fn delete(script: &mut Script<'_>, which: usize) {
    if script.chance(8) {
        delete_collection(script);
        return;
    }
    let path = script.path(which);
    // No step has this id, so that the placeholder gets its default.
    let last = script.last[which].unwrap_or(999);
    let options = match script.random.u32(..12) {
        0 => json!({"preconditions": {"uid": format!("${{uid:{last}}}")}}),
        1 => json!({"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}),
        2 => json!({"preconditions": {"resourceVersion": format!("${{rv:{last}}}")}}),
        3 => json!({"propagationPolicy": "Nonsense"}),
        4 => json!({"gracePeriodSeconds": 0}),
        5 => json!({"gracePeriodSeconds": -1}),
        6 => json!({"dryRun": ["All"]}),
        7 => json!({"propagationPolicy": "Background", "orphanDependents": true}),
        _ => Value::Null,
    };
    let body = if options.is_null() {
        Body::None
    } else {
        // Servers take options without a kind too.
        let mut options = options;
        if script.chance(50) {
            options["kind"] = "DeleteOptions".into();
            options["apiVersion"] = "v1".into();
        }
        Body::Json(options)
    };
    script.step("delete", "DELETE", &path, body);
    if script.kind.kind == "Namespace" {
        // What becomes of it is up to a controller, which takes its time.
        script.query("dryRun", "All");
        return;
    }
    match script.random.u32(..12) {
        0 => script.query("gracePeriodSeconds", "5"),
        1 => script.query("propagationPolicy", "Background"),
        2 => script.query("dryRun", "All"),
        3 => script.query("propagationPolicy", "Nonsense"),
        _ => {}
    }
    if script.chance(30) {
        get(script, which);
    }
}

fn delete_collection(script: &mut Script<'_>) {
    if script.kind.kind == "Namespace" || script.kind.is_delicate() {
        return;
    }
    let path = script.kind.collection();
    script.step("deletecollection", "DELETE", &path, Body::None);
    script.query("labelSelector", "run=${id}");
    match script.random.u32(..5) {
        0 => script.query("dryRun", "All"),
        1 => script.query("fieldSelector", "metadata.name=a"),
        2 => script.query("limit", "1"),
        _ => {}
    }
}

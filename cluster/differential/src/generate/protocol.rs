//! Requests that are odd as such, whatever the kind.

use serde_json::{Value, json};

use super::script::Script;
use crate::step::Body;

/// Some odd requests.
pub(super) fn requests(script: &mut Script<'_>) {
    for _ in 0..script.random.usize(4..9) {
        match script.random.u32(..10) {
            0..3 => odd_path(script),
            3..7 => odd_body(script),
            7 => review(script),
            8 => discovery(script),
            _ => odd_method(script),
        }
    }
}

fn odd_path(script: &mut Script<'_>) {
    let (collection, one) = (script.kind.collection(), script.path(0));
    let api = format!("/apis/{}", script.kind.api_version);
    let path = script.pick(&[
        format!("{one}/nonsense"),
        format!("{one}/status"),
        format!("{one}/scale"),
        format!("{collection}/"),
        format!("{one}/"),
        format!("{collection}/Bad_${{id}}"),
        format!("{collection}/%20"),
        format!("{api}/nonsenses"),
        format!("{api}/namespaces/${{ns}}/nonsenses/a"),
        "/apis/nonsense.example.com/v1".to_owned(),
        "/apis/nonsense.example.com/v1/things".to_owned(),
        "/apis/apps/v7/deployments".to_owned(),
        "/api/v2/pods".to_owned(),
        "/nonsense".to_owned(),
        "/api/v1/namespaces/missing/configmaps/x".to_owned(),
        script.kind.everywhere() + "/a",
    ]);
    let method = script.pick(&["GET", "GET", "DELETE", "PUT", "POST"]);
    // Other sequences have their objects in a collection.
    let is_collection = path.strip_suffix('/') == Some(&*collection);
    let method = if method == "DELETE" && is_collection {
        "GET"
    } else {
        method
    };
    let body = if matches!(method, "PUT" | "POST") {
        Body::Json(script.manifest(0))
    } else {
        Body::None
    };
    script.step("odd path", method, &path, body);
    if method == "DELETE" || method == "POST" || method == "PUT" {
        script.query("dryRun", "All");
    } else if is_collection {
        script.query("labelSelector", "run=${id}");
    }
}

fn odd_body(script: &mut Script<'_>) {
    let manifest = script.manifest(0).to_string();
    let doubled = manifest.replacen('{', "{\"metadata\":{},", 1);
    let text = script.pick(&[
        String::new(),
        "{".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "\"text\"".to_owned(),
        "{}".to_owned(),
        "a: b: c".to_owned(),
        format!("{manifest}x"),
        doubled,
        manifest.replacen("\"kind\":\"", "\"kind\":\"Not", 1),
        manifest.replacen("\"apiVersion\":\"", "\"apiVersion\":\"not/", 1),
        manifest.replacen("\"metadata\":{", "\"metadata\":[", 1),
        manifest.replacen(
            "\"metadata\":{",
            "\"metadata\":{\"Labels\":{\"a\":\"b\"},",
            1,
        ),
        manifest.replacen("\"metadata\":{", "\"metadata\":{\"labels\":7,", 1),
        manifest.clone(),
    ]);
    let (collection, one) = (script.kind.collection(), script.path(0));
    let (method, path) = script.pick(&[
        ("POST", collection),
        ("PUT", one.clone()),
        ("PATCH", one.clone()),
        ("DELETE", one),
    ]);
    script.step("odd body", method, &path, Body::Text(text));
    let content_type = script.pick(&[
        "application/json",
        "application/json; charset=utf-8",
        "application/yaml",
        "text/plain",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/json-patch+json",
        "application/apply-patch+yaml",
        "nonsense",
    ]);
    script.header("content-type", content_type);
    script.query("dryRun", "All");
    match script.random.u32(..6) {
        0 => script.query("fieldValidation", "Strict"),
        1 => script.query("fieldManager", "m1"),
        2 => script.query("fieldManager", "bad\u{7}manager"),
        3 => script.query("force", "true"),
        _ => {}
    }
}

fn odd_method(script: &mut Script<'_>) {
    let (collection, one) = (script.kind.collection(), script.path(0));
    let (method, path) = script.pick(&[
        ("PUT", collection.clone()),
        ("PATCH", collection.clone()),
        ("POST", one),
        ("OPTIONS", collection.clone()),
        ("DELETE", script.kind.everywhere()),
        ("NONSENSE", collection),
    ]);
    let body = if method == "DELETE" {
        Body::None
    } else {
        Body::Json(json!({}))
    };
    script.step("odd method", method, &path, body);
    script.query("dryRun", "All");
    script.query("labelSelector", "run=${id}");
}

fn review(script: &mut Script<'_>) {
    let access =
        json!({"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "x"}});
    let reviews: [(&str, &str, Value); 8] = [
        (
            "authorization.k8s.io/v1",
            "SelfSubjectAccessReview",
            access.clone(),
        ),
        (
            "authorization.k8s.io/v1",
            "SelfSubjectAccessReview",
            json!({"nonResourceAttributes": {"verb": "get", "path": "/x"}}),
        ),
        (
            "authorization.k8s.io/v1",
            "SelfSubjectAccessReview",
            json!({}),
        ),
        ("authorization.k8s.io/v1", "SubjectAccessReview", access),
        (
            "authorization.k8s.io/v1",
            "SubjectAccessReview",
            json!({"user": "zoe", "resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {}}),
        ),
        (
            "authorization.k8s.io/v1",
            "SelfSubjectRulesReview",
            json!({}),
        ),
        (
            "authentication.k8s.io/v1",
            "TokenReview",
            json!({"token": "nonsense"}),
        ),
        ("authentication.k8s.io/v1", "TokenReview", json!({})),
    ];
    let (api_version, kind, spec) = script.pick(&reviews);
    let path = format!("/apis/{api_version}/{}s", kind.to_lowercase());
    let body = json!({"apiVersion": api_version, "kind": kind, "spec": spec});
    script.step("review", "POST", &path, Body::Json(body));
}

fn discovery(script: &mut Script<'_>) {
    let root = if script.kind.api_version.contains('/') {
        "/apis"
    } else {
        "/api"
    };
    let path = script.pick(&[
        format!("{root}/{}", script.kind.api_version),
        "/healthz".to_owned(),
        "/livez".to_owned(),
        "/readyz".to_owned(),
        "/api".to_owned(),
        format!(
            "/apis/{}",
            script
                .kind
                .api_version
                .split('/')
                .next()
                .unwrap_or_default()
        ),
    ]);
    script.step("discover", "GET", &path, Body::None);
}

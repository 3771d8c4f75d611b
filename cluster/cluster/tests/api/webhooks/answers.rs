//! What webhooks answer, and what clients get of it.

use serde_json::{Value, json};

use super::server::{Hook, MUTATING, Reply, VALIDATING, patching, register};
use crate::bench::{Answer, Bench, CONFIG_MAPS, text};

fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"a": "1"}})
}

/// Creates a ConfigMap where a webhook answers a response.
async fn create(path: &str, response: Value) -> Answer {
    let reply = match response {
        Value::String(body) => Reply::Bytes(200, body),
        response => Reply::Response(response),
    };
    let hook = Hook::start(move |_, _| reply.clone()).await;
    let bench = Bench::new().await;
    register(&bench, path, "c", json!([hook.webhook("", json!({}))])).await;
    bench.post(CONFIG_MAPS, &config_map("m")).await
}

#[tokio::test]
async fn a_denial_has_the_status_of_the_webhook() {
    let denied = "admission webhook \"h.example.com\" denied the request";
    for path in [MUTATING, VALIDATING] {
        let status = json!({"message": "no way", "code": 403, "reason": "Forbidden"});
        let answer = create(path, json!({"allowed": false, "status": status})).await;
        let status = answer.fails(403, "Forbidden");
        assert_eq!(status["message"], format!("{denied}: no way"));
        assert_eq!(status["details"], Value::Null);

        let answer = create(path, json!({"allowed": false})).await;
        let message = answer.fails(400, "")["message"].clone();
        assert_eq!(message, format!("{denied} without explanation"));

        let details =
            json!({"name": "n", "causes": [{"reason": "r", "message": "m", "field": "f"}]});
        let status = json!({"reason": "Odd", "code": 200, "details": details});
        let answer = create(path, json!({"allowed": false, "status": status})).await;
        let status = answer.fails(400, "Odd");
        assert_eq!(status["message"], format!("{denied}: Odd"));
        assert_eq!(status["details"], details);
    }
}

#[tokio::test]
async fn answers_that_are_none_are_internal_errors() {
    let head = "json: cannot unmarshal array into Go value of type struct { APIVersion string \
        \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
    let malformed =
        format!("failed to call webhook: couldn't get version/kind; json parse error: {head}");
    let review = r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}"#;
    let beta = review.replace("v1", "v1beta1");
    for (answer, expected) in [
        (json!("[1]"), malformed.as_str()),
        (
            json!(""),
            "failed to call webhook: 0-length response with status code: 200 and content type: \
            application/json",
        ),
        (
            json!(r#"{"kind": "Pod", "apiVersion": "v1"}"#),
            "failed to call webhook: no kind \"Pod\" is registered \
            for version \"v1\" in scheme \"k8s.io/apiserver/pkg/util/webhook/client.go:71\"",
        ),
        (
            json!(review),
            "received invalid webhook response: webhook response was absent",
        ),
        (
            json!(beta),
            "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown \
            conversion",
        ),
        (
            json!({"allowed": true, "patch": "W10=", "patchType": "JSONPatch"}),
            "received invalid webhook response: \
            validating webhook may not return response.patch",
        ),
    ] {
        let answer = create(VALIDATING, answer).await;
        let status = answer.fails(500, "InternalError");
        let reason = format!("failed calling webhook \"h.example.com\": {expected}");
        assert_eq!(
            status["message"],
            format!("Internal error occurred: {reason}")
        );
        assert_eq!(status["details"]["causes"], json!([{"message": reason}]));
    }
    let answer = create(VALIDATING, json!({"allowed": true, "uid": "x"})).await;
    let status = answer.fails(500, "InternalError");
    let message = text(&status, "/message");
    assert!(
        message.contains("expected response.uid=\"") && message.ends_with("\", got \"x\""),
        "{message}"
    );
}

#[tokio::test]
async fn patches_that_do_not_apply_or_fit_are_internal_errors() {
    let patch = |operation: Value| json!([operation]);
    for (operations, expected) in [
        (
            patch(json!({"op": "replace", "path": "/spec/none/x", "value": 1})),
            "replace operation does not apply: doc is missing path: /spec/none/x: missing value",
        ),
        (
            patch(json!({"op": "remove", "path": "/data/none"})),
            "error in remove for path: '/data/none': Unable to remove nonexistent key: none: missing value",
        ),
        (
            patch(json!({"op": "test", "path": "/data/none", "value": "1"})),
            "testing value /data/none failed: test failed",
        ),
        (
            patch(json!({"op": "add", "path": "/data", "value": [1]})),
            "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
        ),
    ] {
        let Reply::Response(response) = patching(&operations) else {
            unreachable!("it is a response");
        };
        let status = create(MUTATING, response).await.fails(500, "InternalError");
        assert_eq!(
            status["message"],
            format!("Internal error occurred: {expected}")
        );
    }
}

#[tokio::test]
async fn warnings_and_annotations_reach_the_client_and_the_journal() {
    let response = json!({"allowed": true, "warnings": ["careful", "careful", "twice \"x\""],
        "auditAnnotations": {"k": "v"}});
    let hook = Hook::start(move |_, _| Reply::Response(response.clone())).await;
    let bench = Bench::new().await;
    register(
        &bench,
        VALIDATING,
        "c",
        json!([hook.webhook("", json!({}))]),
    )
    .await;
    let created = bench.post(CONFIG_MAPS, &config_map("m")).await;
    let warnings: Vec<_> = created.headers.get_all("warning").into_iter().collect();
    assert_eq!(warnings, ["299 - \"careful\"", "299 - \"twice \\\"x\\\"\""]);
    let requests = bench.cluster.journal().requests();
    let last = requests.last().expect("it was just made");
    assert_eq!(last.audit, [("h.example.com/k".to_owned(), "v".to_owned())]);
}

#[tokio::test]
async fn a_webhook_is_told_what_is_done_and_by_whom() {
    let hook = Hook::allowing().await;
    let bench = Bench::new().await;
    register(
        &bench,
        MUTATING,
        "c",
        json!([hook.webhook("/x", json!({}))]),
    )
    .await;
    let path = format!("{CONFIG_MAPS}/m");
    bench
        .post(&format!("{CONFIG_MAPS}?fieldManager=me"), &config_map("m"))
        .await;
    bench.merge(&path, json!({"data": {"a": "2"}})).await;
    bench.put(&path, &config_map("m")).await;
    bench
        .delete(&format!("{path}?propagationPolicy=Background"))
        .await;
    let asked = hook.asked();
    let seen: Vec<_> = asked
        .iter()
        .map(|request| {
            (
                request["operation"].as_str().unwrap(),
                request["options"]["kind"].as_str().unwrap(),
                request["object"].is_object(),
                request["oldObject"].is_object(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("CREATE", "CreateOptions", true, false),
            ("UPDATE", "PatchOptions", true, true),
            ("UPDATE", "UpdateOptions", true, true),
            ("DELETE", "DeleteOptions", false, true),
        ]
    );
    assert_eq!(asked[3]["options"]["propagationPolicy"], "Background");
}

#[tokio::test]
async fn a_review_has_the_object_and_who_sent_it() {
    let hook = Hook::allowing().await;
    let bench = Bench::new().await;
    register(
        &bench,
        MUTATING,
        "c",
        json!([hook.webhook("/x", json!({}))]),
    )
    .await;
    let path = format!("{CONFIG_MAPS}?fieldManager=me");
    bench.post(&path, &config_map("m")).await;
    let asked = hook.asked();
    let first = &asked[0];
    assert_eq!(
        first["resource"],
        json!({"group": "", "version": "v1", "resource": "configmaps"})
    );
    assert_eq!(
        first["requestKind"],
        json!({"group": "", "version": "v1", "kind": "ConfigMap"})
    );
    assert_eq!(
        (&first["name"], &first["namespace"]),
        (&json!("m"), &json!("default"))
    );
    assert_eq!(first["userInfo"]["username"], "kubernetes-admin");
    assert_eq!(first["dryRun"], false);
    assert_eq!(first["options"]["fieldManager"], "me");
    let object = &first["object"];
    assert_eq!(
        (&object["kind"], &object["apiVersion"]),
        (&json!("ConfigMap"), &json!("v1"))
    );
    assert_eq!(object["metadata"]["managedFields"][0]["manager"], "me");
    assert_eq!(
        object["metadata"]["uid"],
        Value::Null,
        "it is made up later"
    );
}

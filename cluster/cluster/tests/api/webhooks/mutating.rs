//! How webhooks change objects, and in which order.

use serde_json::{Value, json};

use super::server::{Hook, MUTATING, Reply, VALIDATING, patching, register};
use crate::bench::{Bench, CONFIG_MAPS, text};

/// A webhook that appends its path to an annotation.
async fn tracing() -> Hook {
    Hook::start(|path, review| {
        let name = path
            .trim_start_matches('/')
            .split('?')
            .next()
            .unwrap_or_default();
        let object = &review["request"]["object"];
        let trace = object["metadata"]["annotations"]["trace"]
            .as_str()
            .unwrap_or_default();
        let annotations = json!({"trace": format!("{trace}{name}")});
        patching(&json!([{"op": "add", "path": "/metadata/annotations", "value": annotations}]))
    })
    .await
}

fn named(hook: &Hook, name: &str, more: Value) -> Value {
    let mut webhook = hook.webhook(&format!("/{name}"), more);
    webhook["name"] = format!("{name}.example.com").into();
    webhook
}

async fn trace(bench: &Bench, name: &str) -> String {
    let created = bench
        .post(CONFIG_MAPS, &json!({"metadata": {"name": name}}))
        .await
        .json();
    text(&created, "/metadata/annotations/trace").to_owned()
}

#[tokio::test]
async fn webhooks_go_by_the_names_of_their_configurations_and_then_by_place() {
    let hook = tracing().await;
    let bench = Bench::new().await;
    register(&bench, MUTATING, "b", json!([named(&hook, "b", json!({}))])).await;
    let first = json!([named(&hook, "z", json!({})), named(&hook, "a", json!({}))]);
    register(&bench, MUTATING, "a", first).await;
    assert_eq!(trace(&bench, "m").await, "zab");
}

#[tokio::test]
async fn a_webhook_is_asked_again_only_if_it_wants_and_something_changed_behind_it() {
    let hook = tracing().await;
    let bench = Bench::new().await;
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let webhooks = json!([
        named(&hook, "a", again.clone()),
        named(&hook, "b", json!({})),
        named(&hook, "c", again)
    ]);
    register(&bench, MUTATING, "x", webhooks).await;
    // The second call of the first is a change behind the third.
    assert_eq!(trace(&bench, "m").await, "abcac");
    let audit = bench.cluster.journal().requests().pop().unwrap().audit;
    let keys: Vec<&str> = audit
        .iter()
        .map(|(key, _)| key.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "round_0_index_0",
            "round_0_index_1",
            "round_0_index_2",
            "round_1_index_0",
            "round_1_index_2"
        ]
    );
    assert_eq!(
        serde_json::from_str::<Value>(&audit[0].1).unwrap(),
        json!({"configuration": "x", "webhook": "a.example.com", "mutated": true})
    );
}

#[tokio::test]
async fn what_webhooks_add_is_defaulted_validated_and_seen_by_validating_ones() {
    let port = json!({"op": "add", "path": "/spec/ports", "value": [{"port": 80}]});
    let changing = Hook::start(move |_, _| {
        patching(&json!([port, {"op": "add", "path": "/nonsense", "value": 1}]))
    })
    .await;
    let validating = Hook::allowing().await;
    let bench = Bench::new().await;
    let services = "/api/v1/namespaces/default/services";
    let rules = json!({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"],
        "operations": ["CREATE"]}]});
    register(
        &bench,
        MUTATING,
        "c",
        json!([changing.webhook("/good", rules.clone())]),
    )
    .await;
    register(
        &bench,
        VALIDATING,
        "c",
        json!([validating.webhook("", rules.clone())]),
    )
    .await;
    let created = bench
        .post(services, &json!({"metadata": {"name": "s"}, "spec": {}}))
        .await
        .json();
    let expected = json!([{"port": 80, "protocol": "TCP", "targetPort": 80}]);
    assert_eq!(created["spec"]["ports"], expected, "{created:#}");
    assert_eq!(created["nonsense"], Value::Null);
    let managed = created["metadata"]["managedFields"].to_string();
    assert!(
        !managed.contains("f:ports"),
        "what is added on the way has no owner: {managed}"
    );
    let seen = &validating.asked()[0]["object"];
    assert_eq!(seen["spec"]["ports"], expected);
    assert!(seen["metadata"]["uid"].is_string(), "{seen:#}");
}

#[tokio::test]
async fn what_webhooks_make_invalid_is_refused_before_others_are_asked() {
    let changing = Hook::start(|_, _| {
        let ports = json!([{"port": 0}]);
        patching(&json!([{"op": "add", "path": "/spec/ports", "value": ports}]))
    })
    .await;
    let validating = Hook::allowing().await;
    let bench = Bench::new().await;
    let rules = json!({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"],
        "operations": ["CREATE"]}]});
    let webhook = changing.webhook("", rules.clone());
    register(&bench, MUTATING, "c", json!([webhook])).await;
    register(
        &bench,
        VALIDATING,
        "c",
        json!([validating.webhook("", rules)]),
    )
    .await;
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "t"}, "spec": {}});
    let status = bench.post(services, &service).await.fails(422, "Invalid");
    assert!(
        text(&status, "/message").contains("spec.ports[0].port"),
        "{status:#}"
    );
    assert_eq!(validating.asked(), [json!(null); 0]);
}

#[tokio::test]
async fn an_update_is_changed_too_and_an_apply_keeps_its_owners() {
    let hook = tracing().await;
    let bench = Bench::new().await;
    register(&bench, MUTATING, "c", json!([named(&hook, "a", json!({}))])).await;
    let path = format!("{CONFIG_MAPS}/m?fieldManager=me");
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}});
    let apply = async |object: &Value| {
        let media = "application/apply-patch+yaml";
        bench
            .call(http::Method::PATCH, &path, media, object.to_string())
            .await
    };
    let created = apply(&applied).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let again = apply(&applied).await.json();
    assert_eq!(text(&again, "/metadata/annotations/trace"), "aa");
    let managers = again["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managers.len(), 1, "{again:#}");
    assert_eq!(managers[0]["operation"], "Apply");
    assert!(
        !managers[0].to_string().contains("annotations"),
        "{again:#}"
    );
}

#[tokio::test]
async fn managed_fields_that_a_webhook_breaks_are_put_back() {
    let hook = Hook::start(|_, _| {
        let value = json!([{"manager": "x", "operation": "Odd"}]);
        patching(&json!([{"op": "add", "path": "/metadata/managedFields", "value": value}]))
    })
    .await;
    let bench = Bench::new().await;
    register(&bench, MUTATING, "c", json!([hook.webhook("", json!({}))])).await;
    let map = json!({"metadata": {"name": "m"}, "data": {"a": "1"}});
    let created = bench
        .post(&format!("{CONFIG_MAPS}?fieldManager=me"), &map)
        .await;
    assert_eq!(
        created.json()["metadata"]["managedFields"][0]["manager"],
        "me"
    );
    let warning = created.headers.get("warning").unwrap().to_str().unwrap();
    assert!(
        warning.contains("operation must be `Apply` or `Update`"),
        "{warning}"
    );
}

#[tokio::test]
async fn a_deletion_has_nothing_to_change() {
    let hook = Hook::start(|_, review| match review["request"]["operation"].as_str() {
        Some("DELETE") => patching(&json!([{"op": "add", "path": "/data", "value": {}}])),
        _ => Reply::Response(json!({"allowed": true})),
    })
    .await;
    let bench = Bench::new().await;
    register(&bench, MUTATING, "c", json!([hook.webhook("", json!({}))])).await;
    bench
        .post(CONFIG_MAPS, &json!({"metadata": {"name": "m"}}))
        .await;
    let status = bench
        .delete(&format!("{CONFIG_MAPS}/m"))
        .await
        .fails(500, "InternalError");
    assert_eq!(
        status["message"],
        "Internal error occurred: admission webhook \"h.example.com\" attempted to modify the object, which is not \
         supported for this operation"
    );
    assert_eq!(bench.get(&format!("{CONFIG_MAPS}/m")).await.code, 200);
}

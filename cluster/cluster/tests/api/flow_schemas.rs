//! The condition of FlowSchemas whose priority level is missing.

use http::Method;
use serde_json::{Value, json};

use crate::bench::Bench;

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const MERGE: (&str, &str) = ("content-type", "application/merge-patch+json");

/// Waits for the condition of a schema to have a status, and returns the schema.
async fn wait(bench: &Bench, status: &str) -> Value {
    let path = format!("{SCHEMAS}?watch=1&fieldSelector=metadata.name=a");
    let mut watch = bench.watch(&path).await;
    loop {
        let (_, schema) = watch.event().await;
        let conditions = schema["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let dangling = conditions.find(|each| each["type"] == "Dangling");
        if dangling.is_some_and(|each| each["status"] == status) {
            return schema;
        }
    }
}

fn without_times(mut conditions: Value) -> Value {
    for condition in conditions.as_array_mut().into_iter().flatten() {
        let time = condition["lastTransitionTime"].take();
        assert!(time.is_string(), "{condition}");
    }
    conditions
}

fn dangling(status: &str, reason: &str, message: &str) -> Value {
    json!({"type": "Dangling", "status": status, "lastTransitionTime": null, "reason": reason, "message": message})
}

const MISSING: &str = "This FlowSchema references the PriorityLevelConfiguration object named \"l\" but there is no such object";
const FOUND: &str =
    "This FlowSchema references the PriorityLevelConfiguration object named \"l\" and it exists";

/// Creates a schema whose level is missing.
async fn schema_without_level(bench: &Bench) {
    let schema = json!({"metadata": {"name": "a"}, "spec": {
        "priorityLevelConfiguration": {"name": "l"}, "matchingPrecedence": 9999}});
    let created = bench.post(SCHEMAS, &schema).await;
    assert_eq!(created.code, 201, "{}", created.text);
}

/// Applies a merge patch to the schema.
async fn patch(bench: &Bench, subresource: &str, body: &Value) {
    let path = format!("{SCHEMAS}/a{subresource}");
    bench
        .ask(Method::PATCH, &path, &[MERGE], body.to_string())
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_condition_of_a_flow_schema_has_its_own_manager() {
    let bench = Bench::new().await;
    schema_without_level(&bench).await;
    let schema = wait(&bench, "True").await;
    let mut owner = schema["metadata"]["managedFields"][0].clone();
    owner["time"].take();
    let owned = json!({".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:reason": {}, "f:status": {},
        "f:type": {}});
    let expected = json!({
        "manager": "api-priority-and-fairness-config-consumer-v1", "operation": "Apply",
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "time": null, "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Dangling\"}": owned}}},
        "subresource": "status",
    });
    assert_eq!(owner, expected);
}

#[tokio::test(start_paused = true)]
async fn a_flow_schema_says_whether_its_level_exists() {
    let bench = Bench::new().await;
    schema_without_level(&bench).await;
    let schema = wait(&bench, "True").await;
    let expected = json!([dangling("True", "NotFound", MISSING)]);
    assert_eq!(
        without_times(schema["status"]["conditions"].clone()),
        expected
    );

    let level = json!({"metadata": {"name": "l"}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}});
    assert_eq!(bench.post(LEVELS, &level).await.code, 201);
    let schema = wait(&bench, "False").await;
    let expected = json!([dangling("False", "Found", FOUND)]);
    assert_eq!(
        without_times(schema["status"]["conditions"].clone()),
        expected
    );

    // What a client takes away comes back, beside what is the client's.
    let other =
        json!([{"type": "Other", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]);
    patch(&bench, "/status", &json!({"status": {"conditions": other}})).await;
    let schema = wait(&bench, "False").await;
    let conditions = without_times(schema["status"]["conditions"].clone());
    assert_eq!(conditions[0]["type"], "Other");
    assert_eq!(conditions[1], dangling("False", "Found", FOUND));

    bench
        .ask(Method::DELETE, &format!("{LEVELS}/l"), &[], String::new())
        .await;
    let schema = wait(&bench, "True").await;
    let conditions = without_times(schema["status"]["conditions"].clone());
    assert_eq!(conditions[1], dangling("True", "NotFound", MISSING));

    // A level that every server has, even without its object.
    let body = json!({"spec": {"priorityLevelConfiguration": {"name": "exempt"}}});
    patch(&bench, "", &body).await;
    let schema = wait(&bench, "False").await;
    assert_eq!(schema["status"]["conditions"][1]["reason"], "Found");
}

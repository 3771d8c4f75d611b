//! HorizontalPodAutoscalers, which are read and written in two versions.

use http::StatusCode;
use serde_json::{Value, json};

use crate::bench::Bench;

const FIRST: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
const SECOND: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

fn scaler(spec: &Value) -> Value {
    let mut object = json!({"metadata": {"name": "a"}, "spec": spec});
    object["spec"]["maxReplicas"] = json!(3);
    object["spec"]["scaleTargetRef"] =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    object
}

#[tokio::test(start_paused = true)]
async fn a_percentage_of_version_1_is_a_metric_of_version_2() {
    let bench = Bench::new().await;
    let first = scaler(&json!({"targetCPUUtilizationPercentage": 60}));
    let created = bench.post(FIRST, &first).await;
    assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    let mut second = bench.get(&format!("{SECOND}/a")).await.json();
    let target = json!({"type": "Utilization", "averageUtilization": 60});
    let metric = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
    assert_eq!(second["spec"]["metrics"], metric);
    let items = bench.get(SECOND).await.json()["items"].clone();
    assert_eq!(items[0]["spec"]["metrics"], metric);
    second["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] = json!(70);
    let put = bench.put(&format!("{SECOND}/a"), &second).await;
    assert_eq!(put.code, StatusCode::OK, "{}", put.text);
    let first = bench.get(&format!("{FIRST}/a")).await.json();
    assert_eq!(first["spec"]["targetCPUUtilizationPercentage"], 70);
    assert!(first["metadata"].get("annotations").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_update_in_version_1_keeps_what_only_version_2_can_say() {
    let bench = Bench::new().await;
    let target = json!({"type": "AverageValue", "averageValue": "1Gi"});
    let metrics = json!([{"type": "Resource", "resource": {"name": "memory", "target": target}}]);
    let created = bench
        .post(SECOND, &scaler(&json!({"metrics": metrics})))
        .await;
    assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    let mut first = bench.get(&format!("{FIRST}/a")).await.json();
    first["spec"]["maxReplicas"] = json!(5);
    let put = bench.put(&format!("{FIRST}/a"), &first).await;
    assert_eq!(put.code, StatusCode::OK, "{}", put.text);
    let patch = json!({"spec": {"minReplicas": 2}});
    let patched = bench.merge(&format!("{FIRST}/a"), patch).await;
    assert_eq!(patched.code, StatusCode::OK, "{}", patched.text);
    let second = bench.get(&format!("{SECOND}/a")).await.json();
    assert_eq!(second["spec"]["metrics"], metrics);
    assert_eq!(
        (
            &second["spec"]["minReplicas"],
            &second["spec"]["maxReplicas"]
        ),
        (&json!(2), &json!(5))
    );
    assert!(second["metadata"].get("annotations").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_of_policies_is_refused() {
    let bench = Bench::new().await;
    for direction in ["scaleUp", "scaleDown"] {
        let empty = scaler(&json!({"behavior": {direction: {"policies": []}}}));
        let status = bench.post(SECOND, &empty).await.fails(422, "Invalid");
        let cause = &status["details"]["causes"][0];
        assert_eq!(
            cause["field"],
            format!("spec.behavior.{direction}.policies")
        );
        assert_eq!(
            cause["message"],
            "Required value: must specify at least one Policy"
        );
    }
    let none = scaler(&json!({"behavior": {"scaleDown": {"policies": null}}}));
    let created = bench.post(SECOND, &none).await.json();
    assert_eq!(
        created["spec"]["behavior"]["scaleDown"]["policies"][0]["type"],
        "Percent"
    );
}

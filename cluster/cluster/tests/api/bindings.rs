//! Giving Pods to nodes, in both of the places where that can be asked for.

use http::StatusCode;
use serde_json::json;

use crate::bench::{Bench, text};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BINDINGS: &str = "/api/v1/namespaces/default/bindings";

#[tokio::test(start_paused = true)]
async fn a_binding_of_its_own_binds_the_pod_it_names() {
    let bench = Bench::new().await;
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"metadata": {"name": "a"}, "spec": spec});
    assert_eq!(bench.post(PODS, &pod).await.code, StatusCode::CREATED);
    let binding = |name: &str| json!({"metadata": {"name": name}, "target": {"name": "n"}});
    let bound = bench.post(BINDINGS, &binding("a")).await;
    assert_eq!(bound.code, StatusCode::CREATED, "{}", bound.text);
    assert_eq!(bound.json()["status"], "Success");
    let pod = bench.get(&format!("{PODS}/a")).await.json();
    assert_eq!(text(&pod, "/spec/nodeName"), "n");
    let again = bench.post(BINDINGS, &binding("a")).await;
    again.fails(409, "Conflict");
    let missing = bench.post(BINDINGS, &binding("b")).await;
    let status = missing.fails(404, "NotFound");
    assert_eq!(text(&status, "/message"), r#"pods "b" not found"#);
    let nameless = bench
        .post(BINDINGS, &json!({"target": {"name": "n"}}))
        .await;
    nameless.fails(400, "BadRequest");
    bench.get(BINDINGS).await.fails(405, "MethodNotAllowed");
}

#[tokio::test(start_paused = true)]
async fn a_binding_changes_the_condition_in_its_place() {
    let bench = Bench::new().await;
    let then = "2020-01-01T00:00:00Z";
    for (name, status, keeps_time) in [("a", "False", false), ("b", "True", true)] {
        let spec = json!({"containers": [{"name": "c", "image": "i"}]});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        bench.post(PODS, &pod).await;
        let path = format!("{PODS}/{name}");
        let mut pod = bench.get(&path).await.json();
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": then});
        let mut scheduled = condition("PodScheduled", status);
        scheduled["reason"] = "Unschedulable".into();
        scheduled["message"] = "no node fits".into();
        pod["status"]["conditions"] = json!([scheduled, condition("Ready", "False")]);
        pod["status"]["nominatedNodeName"] = "other".into();
        let put = bench.put(&format!("{path}/status"), &pod).await;
        assert_eq!(put.code, StatusCode::OK, "{}", put.text);
        let binding = json!({"metadata": {"name": name}, "target": {"name": "n"}});
        let bound = bench.post(BINDINGS, &binding).await;
        assert_eq!(bound.code, StatusCode::CREATED, "{}", bound.text);
        let pod = bench.get(&path).await.json();
        let conditions = &pod["status"]["conditions"];
        let types: Vec<&str> = (0..2).map(|at| text(&conditions[at], "/type")).collect();
        assert_eq!(types, ["PodScheduled", "Ready"]);
        let time = text(&conditions[0], "/lastTransitionTime");
        assert_eq!(time == then, keeps_time, "{conditions:#}");
        let expected = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": time,
        });
        assert_eq!(conditions[0], expected);
        assert!(pod["status"]["nominatedNodeName"].is_null());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_scheduling_gates_is_not_bound() {
    let bench = Bench::new().await;
    let spec = json!({"schedulingGates": [{"name": "demo.dev/wait"}], "containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"metadata": {"name": "a"}, "spec": spec});
    let pod = bench.post(PODS, &pod).await.json();
    let condition = &pod["status"]["conditions"][0];
    assert_eq!(text(condition, "/type"), "PodScheduled");
    assert_eq!(text(condition, "/reason"), "SchedulingGated");
    let binding = json!({"metadata": {"name": "a"}, "target": {"name": "n"}});
    let refused = bench.post(BINDINGS, &binding).await;
    let status = refused.fails(409, "Conflict");
    let expected = "Operation cannot be fulfilled on pods/binding \"a\": pod a has non-empty .spec.schedulingGates";
    assert_eq!(text(&status, "/message"), expected);
}

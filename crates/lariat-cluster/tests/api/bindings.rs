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

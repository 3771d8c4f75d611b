//! What Services are given, and keep when they are replaced.

use http::StatusCode;
use serde_json::{Value, json};

use crate::bench::{Bench, text};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, kind: &str) -> Value {
    let spec = json!({"type": kind, "externalName": "demo.example", "ports": [{"port": 80}]});
    json!({"metadata": {"name": name}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn a_replaced_service_keeps_what_it_was_given() {
    let bench = Bench::new().await;
    let path = format!("{SERVICES}/a");
    let created = bench.post(SERVICES, &service("a", "NodePort")).await.json();
    let put = bench.put(&path, &service("a", "NodePort")).await;
    assert_eq!(put.code, StatusCode::OK, "{}", put.text);
    assert_eq!(put.json()["spec"], created["spec"]);
    let plain = bench.put(&path, &service("a", "ClusterIP")).await.json();
    assert_eq!(plain["spec"]["clusterIP"], created["spec"]["clusterIP"]);
    assert_eq!(plain["spec"]["ports"][0]["nodePort"], Value::Null);
    let external = bench.put(&path, &service("a", "ExternalName")).await.json();
    assert_eq!(external["spec"]["clusterIP"], Value::Null);
    let back = bench.put(&path, &service("a", "NodePort")).await.json();
    text(&back, "/spec/clusterIP");
    assert!(back["spec"]["ports"][0]["nodePort"].is_u64(), "{back:#}");
}

#[tokio::test(start_paused = true)]
async fn a_port_of_the_nodes_belongs_to_one_service() {
    let bench = Bench::new().await;
    let with_port = |name: &str| {
        let mut service = service(name, "NodePort");
        service["spec"]["ports"][0]["nodePort"] = json!(30080);
        service
    };
    let first = bench.post(SERVICES, &with_port("a")).await;
    assert_eq!(first.code, StatusCode::CREATED, "{}", first.text);
    let status = bench.post(SERVICES, &with_port("b")).await;
    let status = status.fails(422, "Invalid");
    assert!(text(&status, "/message").contains("provided port is already allocated"));
    let portless = json!({"metadata": {"name": "c"}, "spec": {"clusterIP": "None"}});
    let headless = bench.post(SERVICES, &portless).await;
    assert_eq!(headless.code, StatusCode::CREATED, "{}", headless.text);
    assert_eq!(headless.json()["spec"]["ports"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_put_that_creates_means_no_certain_object() {
    let bench = Bench::new().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a";
    let with_uid = json!({"metadata": {"name": "a", "uid": "x"}});
    bench.put(leases, &with_uid).await.fails(409, "Conflict");
    let with_version = json!({"metadata": {"name": "a", "resourceVersion": "7"}});
    let created = bench.put(leases, &with_version).await;
    assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
}

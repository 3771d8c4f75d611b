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

#[tokio::test(start_paused = true)]
async fn what_a_service_asks_for_must_be_there_to_have() {
    let bench = Bench::new().await;
    let taken = bench
        .post(SERVICES, &service("taken", "LoadBalancer"))
        .await
        .json();
    let address = text(&taken, "/spec/clusterIP").to_owned();
    let port = taken["spec"]["ports"][0]["nodePort"].clone();
    let in_use = format!("failed to allocate IP {address}: provided IP is already allocated");
    let outside = "The range of valid ports is 30000-32767";
    let cases = [
        (json!({"clusterIP": address}), in_use.as_str()),
        (
            json!({"clusterIP": "1.2.3.4"}),
            "the provided network does not match the current range",
        ),
        (
            json!({"clusterIPs": ["10.96.0.9"]}),
            "must be empty when `clusterIP` is not specified",
        ),
        (
            json!({"ipFamilyPolicy": "RequireDualStack"}),
            "not configured for dual-stack services",
        ),
        (
            json!({"ipFamilies": ["IPv6"]}),
            "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured",
        ),
        (
            json!({"ipFamilies": ["IPv4", "IPv6"]}),
            "when multiple IP families are specified",
        ),
        (
            json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}),
            outside,
        ),
        (
            json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}),
            "already allocated",
        ),
    ];
    for (mut spec, expected) in cases {
        if spec.get("ports").is_none() {
            spec["ports"] = json!([{"port": 80}]);
        }
        let asking = json!({"metadata": {"name": "asking"}, "spec": spec});
        let status = bench.post(SERVICES, &asking).await.fails(422, "Invalid");
        let message = text(&status, "/message");
        assert!(message.contains(expected), "{asking}: {message}");
    }
    let policy = json!({"type": "LoadBalancer", "ports": [{"port": 80}],
        "externalTrafficPolicy": "Local", "healthCheckNodePort": port});
    let asking = json!({"metadata": {"name": "asking"}, "spec": policy});
    bench
        .post(SERVICES, &asking)
        .await
        .fails(500, "InternalError");
}

//! What a Pod gets from its node, and what its node refuses.
//!
//! The expected answers are those of a kube-apiserver 1.36.2.

use http::Method;
use serde_json::{Value, json};

use crate::bench::Bench;

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

async fn node(bench: &Bench, name: &str, labels: Value, status: Value) {
    let node = json!({"metadata": {"name": name, "labels": labels}});
    let created = bench.post(NODES, &node).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let mut node = created.json();
    node["status"] = status;
    let put = bench.put(&format!("{NODES}/{name}/status"), &node).await;
    assert_eq!(put.code, 200, "{}", put.text);
}

fn pod(name: &str, labels: &Value, node: Option<&str>) -> Value {
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "nodeName": node});
    json!({"metadata": {"name": name, "labels": labels}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn a_pod_has_the_zone_and_the_region_of_its_node() {
    let bench = Bench::new().await;
    let labels = json!({ZONE: "z1", REGION: "r1", "topology.kubernetes.io/rack": "k"});
    node(&bench, "n", labels, json!({})).await;
    let both = json!({ZONE: "z1", REGION: "r1"});
    let created = bench.post(PODS, &pod("a", &Value::Null, Some("n"))).await;
    let created = created.json();
    assert_eq!(created["metadata"]["labels"], both);
    let owned = &created["metadata"]["managedFields"][0]["fieldsV1"];
    assert!(owned["f:metadata"].is_null(), "{owned:#}");

    let own = json!({ZONE: "other", "a": "b"});
    let created = bench.post(PODS, &pod("b", &own, Some("n"))).await;
    let all = json!({ZONE: "z1", REGION: "r1", "a": "b"});
    assert_eq!(created.json()["metadata"]["labels"], all);
    let created = bench.post(PODS, &pod("c", &own, Some("none"))).await;
    assert_eq!(created.json()["metadata"]["labels"][ZONE], "other");

    for (name, target, expected) in [
        ("d", json!({"kind": "Node", "name": "n"}), both),
        ("e", json!({"name": "n"}), Value::Null),
    ] {
        bench.post(PODS, &pod(name, &Value::Null, None)).await;
        let binding = json!({"metadata": {"name": name}, "target": target});
        let bound = bench
            .post(&format!("{PODS}/{name}/binding"), &binding)
            .await;
        assert_eq!(bound.code, 201, "{}", bound.text);
        let bound = bench.get(&format!("{PODS}/{name}")).await.json();
        assert_eq!(bound["metadata"]["labels"], expected, "{name}");
    }
}

/// Resizes a Pod; returns the code, the message of a refusal, and its causes.
async fn resize(bench: &Bench, name: &str, spec: &Value) -> (u16, String, Value) {
    let (path, body) = (format!("{PODS}/{name}/resize"), json!({"spec": spec}));
    let answer = bench
        .call(Method::PATCH, &path, STRATEGIC, body.to_string())
        .await;
    let status = answer.json();
    let message = status["message"].as_str().unwrap_or_default().to_owned();
    let causes = status["details"]["causes"].clone();
    (answer.code.as_u16(), message, causes)
}

fn of_pod(cpu: &str) -> Value {
    json!({"resources": {"requests": {"cpu": cpu}}})
}

fn of_container(list: &str, name: &str, requests: &Value) -> Value {
    json!({list: [{"name": name, "resources": {"requests": requests}}]})
}

#[tokio::test(start_paused = true)]
async fn a_node_declares_what_a_resize_needs() {
    let bench = Bench::new().await;
    let pod = |node: &str| {
        let requests = |cpu: &str| json!({"requests": {"cpu": cpu}});
        json!({"metadata": {"name": format!("on-{node}")}, "spec": {
            "nodeName": node, "resources": {"requests": {"cpu": "4"}, "limits": {"cpu": "5"}},
            "containers": [{"name": "c", "image": "i", "resources": requests("1")}],
            "initContainers": [
                {"name": "i", "image": "i", "resources": requests("1")},
                {"name": "s", "image": "i", "restartPolicy": "Always", "resources": requests("1")},
            ],
        }})
    };
    let status =
        |features: &[&str]| json!({"allocatable": {"cpu": "8"}, "declaredFeatures": features});
    let of_pods = "InPlacePodLevelResourcesVerticalScaling";
    let of_init = "InPlacePodVerticalScalingInitContainers";
    node(&bench, "old", json!({}), status(&[])).await;
    node(&bench, "half", json!({}), status(&[of_pods])).await;
    node(&bench, "new", json!({}), status(&[of_pods, of_init])).await;
    for name in ["none", "old", "half", "new"] {
        let created = bench.post(PODS, &pod(name)).await;
        assert_eq!(created.code, 201, "{}", created.text);
    }
    let two = json!({"cpu": "2"});
    let init = of_container("initContainers", "i", &two);
    let sidecar = of_container("initContainers", "s", &two);
    let mut both = init.clone();
    both["resources"] = of_pod("4500m")["resources"].clone();
    let missing = |features: &str, node: &str| {
        format!(
            "pods \"on-{node}\" is forbidden: pod update requires features {features} which are not available on node \
             {node:?}"
        )
    };
    let not_found = || r#"pods "on-none" is forbidden: node "none" not found"#.to_owned();
    for (node, spec, expected) in [
        ("none", &of_pod("4500m"), Some(not_found())),
        ("none", &of_pod("4000m"), None),
        ("none", &init, Some(not_found())),
        // Every resize needs a node.
        ("none", &sidecar, Some(not_found())),
        ("old", &of_pod("4500m"), Some(missing(of_pods, "old"))),
        (
            "old",
            &both,
            Some(missing(&format!("{of_pods}, {of_init}"), "old")),
        ),
        ("old", &sidecar, None),
        ("half", &both, Some(missing(of_init, "half"))),
        ("half", &of_pod("4500m"), None),
        ("new", &both, None),
    ] {
        let (code, message, causes) = resize(&bench, &format!("on-{node}"), spec).await;
        let expected_code = if expected.is_some() { 403 } else { 200 };
        assert_eq!(
            (code, &message),
            (expected_code, &expected.unwrap_or_default()),
            "{spec}"
        );
        assert!(causes.is_null(), "{causes}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_resize_must_fit_on_a_linux_node() {
    let bench = Bench::new().await;
    let status = json!({"allocatable": {"cpu": "1", "memory": "1Gi"}});
    node(&bench, "linux", json!({}), status.clone()).await;
    node(
        &bench,
        "other",
        json!({"kubernetes.io/os": "windows"}),
        status,
    )
    .await;
    for name in ["linux", "other"] {
        let mut pod = pod(name, &json!({}), Some(name));
        pod["spec"]["containers"][0]["resources"] =
            json!({"requests": {"cpu": "500m", "memory": "1Mi"}});
        let created = bench.post(PODS, &pod).await;
        assert_eq!(created.code, 201, "{}", created.text);
    }
    for (name, requests, expected) in [
        ("linux", json!({"cpu": "600m"}), None),
        ("linux", json!({"cpu": "600001u"}), None),
        (
            "linux",
            json!({"cpu": "1500m", "memory": "2Gi"}),
            Some((
                "node didn't have enough allocatable resources: cpu, requested: 1500, allocatable: 1000; \
                 memory, requested: 2147483648, allocatable: 1073741824",
                "NodeCapacity",
            )),
        ),
        (
            "linux",
            json!({"memory": "2Gi"}),
            Some((
                "node didn't have enough allocatable resources: memory, requested: 2147483648, allocatable: 1073741824",
                "NodeCapacity",
            )),
        ),
        ("linux", json!({"cpu": "1"}), None),
        (
            "other",
            json!({"cpu": "600m"}),
            Some((
                r#"pod resize is only supported on linux nodes, node "other" is "windows""#,
                "UnsupportedPlatform",
            )),
        ),
    ] {
        let spec = of_container("containers", "c", &requests);
        let (code, message, causes) = resize(&bench, name, &spec).await;
        let Some((detail, reason)) = expected else {
            assert_eq!(code, 200, "{requests}: {message}");
            continue;
        };
        assert_eq!(
            (code, message),
            (403, format!("pods {name:?} is forbidden: {detail}"))
        );
        assert_eq!(causes, json!([{"reason": reason}]));
    }
}

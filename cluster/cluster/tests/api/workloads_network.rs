//! Simulated Endpoints, EndpointSlices, volumes and adoption, on paused time.

use std::time::Duration;

use http::StatusCode;
use lariat_cluster::Workloads;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bench::{Bench, text};
use crate::workloads::bench;

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints/web";
/// The slices of the Service `web`; that of the server itself is there too.
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=web";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const STATEFUL_SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

async fn make(bench: &Bench, path: &str, object: &Value) -> Value {
    let answer = bench.post(path, object).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    answer.json()
}

async fn settle() {
    sleep(Duration::from_secs(5)).await;
}

async fn items(bench: &Bench, path: &str) -> Vec<Value> {
    let list = bench.get(path).await.json();
    list["items"].as_array().expect("a list has items").clone()
}

fn pod(name: &str, app: &str) -> Value {
    let container = json!({
        "name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 8080}],
    });
    json!({
        "metadata": {"name": name, "labels": {"app": app}}, "spec": {"containers": [container]},
    })
}

fn service() -> Value {
    json!({"metadata": {"name": "web", "labels": {"team": "a"}}, "spec": {
        "selector": {"app": "web"}, "ports": [{"name": "main", "port": 80, "targetPort": "http"}],
    }})
}

#[tokio::test(start_paused = true)]
async fn a_service_leads_to_its_ready_pods() {
    let bench = bench(Workloads::default()).await;
    make(&bench, SERVICES, &service()).await;
    settle().await;
    let empty = bench.get(ENDPOINTS).await.json();
    assert!(empty["subsets"].is_null(), "{empty:#}");
    let slices = items(&bench, SLICES).await;
    assert_eq!(slices.len(), 1, "there is a slice without Pods too");

    for (name, app) in [("a", "web"), ("b", "web"), ("c", "other")] {
        make(&bench, PODS, &pod(name, app)).await;
    }
    settle().await;
    let slices = items(&bench, SLICES).await;
    let [slice] = &slices[..] else {
        panic!("one slice: {slices:#?}");
    };
    assert!(text(slice, "/metadata/name").starts_with("web-"));
    assert_eq!(
        slice["metadata"]["labels"]["kubernetes.io/service-name"],
        "web"
    );
    assert_eq!(slice["metadata"]["labels"]["team"], "a");
    assert_eq!(slice["ports"][0]["port"], 8080);
    let endpoints = slice["endpoints"].as_array().expect("there are endpoints");
    let names: Vec<&str> = endpoints
        .iter()
        .map(|e| text(e, "/targetRef/name"))
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert!(endpoints.iter().all(|e| e["conditions"]["ready"] == true));
    let subset = bench.get(ENDPOINTS).await.json()["subsets"][0].clone();
    assert_eq!(subset["addresses"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        subset["ports"][0],
        json!({"name": "main", "port": 8080, "protocol": "TCP"})
    );

    bench
        .merge(
            &format!("{PODS}/a"),
            json!({"metadata": {"labels": {"app": "x"}}}),
        )
        .await;
    settle().await;
    let slices = items(&bench, SLICES).await;
    assert_eq!(slices[0]["endpoints"].as_array().map(Vec::len), Some(1));
    let before = bench.get(SLICES).await.json()["metadata"]["resourceVersion"].clone();
    sleep(Duration::from_secs(3600)).await;
    let after = bench.get(SLICES).await.json()["metadata"]["resourceVersion"].clone();
    assert_eq!(before, after, "nothing moves");
    bench.delete(&format!("{SERVICES}/web")).await;
    settle().await;
    bench.get(ENDPOINTS).await.fails(404, "NotFound");
    assert!(items(&bench, SLICES).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn more_pods_than_a_slice_holds_have_several() {
    let bench = bench(Workloads::default()).await;
    make(&bench, SERVICES, &service()).await;
    for number in 0..130 {
        make(&bench, PODS, &pod(&format!("p{number}"), "web")).await;
    }
    settle().await;
    let slices = items(&bench, SLICES).await;
    let sizes = slices
        .iter()
        .map(|each| each["endpoints"].as_array().map_or(0, Vec::len));
    let mut sizes: Vec<usize> = sizes.collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [30, 100]);
}

#[tokio::test(start_paused = true)]
async fn a_service_without_a_selector_is_left_alone() {
    let bench = bench(Workloads::default()).await;
    let object = json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}});
    make(&bench, SERVICES, &object).await;
    settle().await;
    bench.get(ENDPOINTS).await.fails(404, "NotFound");
    assert!(items(&bench, SLICES).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_claims_of_a_stateful_set_are_made_and_bound() {
    let bench = bench(Workloads::default()).await;
    let claim = json!({"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        // As Go's encoder writes a template.
    }, "status": {}});
    let set = json!({"metadata": {"name": "db"}, "spec": {
        "replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
        "volumeClaimTemplates": [claim],
    }});
    let made = make(&bench, STATEFUL_SETS, &set).await;
    let template = &made["spec"]["volumeClaimTemplates"][0];
    assert_eq!(template["status"], json!({"phase": "Pending"}));
    settle().await;
    let claims = items(&bench, CLAIMS).await;
    let names: Vec<&str> = claims
        .iter()
        .map(|each| text(each, "/metadata/name"))
        .collect();
    assert_eq!(names, ["data-db-0", "data-db-1"]);
    for claim in &claims {
        assert_eq!(claim["status"]["phase"], "Bound", "{claim:#}");
        assert_eq!(claim["status"]["capacity"]["storage"], "1Gi");
        let volume = format!("{VOLUMES}/{}", text(claim, "/spec/volumeName"));
        let volume = bench.get(&volume).await.json();
        assert_eq!(volume["status"]["phase"], "Bound");
        assert_eq!(volume["spec"]["claimRef"]["uid"], claim["metadata"]["uid"]);
    }
    let pod = bench.get(&format!("{PODS}/db-1")).await.json();
    let volume = &pod["spec"]["volumes"][0];
    assert_eq!(
        (
            &volume["name"],
            &volume["persistentVolumeClaim"]["claimName"]
        ),
        (&json!("data"), &json!("data-db-1"))
    );
    bench.delete(&format!("{STATEFUL_SETS}/db")).await;
    settle().await;
    assert_eq!(items(&bench, CLAIMS).await.len(), 2, "claims stay");
    bench.delete(&format!("{CLAIMS}/data-db-0")).await;
    settle().await;
    assert_eq!(items(&bench, VOLUMES).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_adopts_pods_and_lets_them_go() {
    let bench = bench(Workloads::default()).await;
    for name in ["a", "b"] {
        make(&bench, PODS, &pod(name, "web")).await;
    }
    settle().await;
    let set = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
        "template": pod("unused", "web"),
    }});
    let set = make(&bench, REPLICA_SETS, &set).await;
    settle().await;
    let pods = items(&bench, PODS).await;
    assert_eq!(pods.len(), 2, "those that are there are enough");
    for pod in &pods {
        assert_eq!(
            pod["metadata"]["ownerReferences"][0]["uid"],
            set["metadata"]["uid"]
        );
    }
    let labels = json!({"metadata": {"labels": {"app": "debug"}}});
    bench.merge(&format!("{PODS}/a"), labels).await;
    settle().await;
    let pods = items(&bench, PODS).await;
    assert_eq!(pods.len(), 3);
    let released = bench.get(&format!("{PODS}/a")).await.json();
    assert!(released["metadata"]["ownerReferences"].is_null());
    make(&bench, PODS, &pod("late", "web")).await;
    settle().await;
    let count = items(&bench, PODS).await.len();
    assert_eq!(count, 3, "one too many is adopted, and one of them goes");
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_that_is_deleted_lets_no_pod_go() {
    let bench = bench(Workloads::default()).await;
    let metadata = json!({"name": "web", "finalizers": ["demo.dev/hold"]});
    let set = json!({"metadata": metadata, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
        "template": pod("unused", "web"),
    }});
    let set = make(&bench, REPLICA_SETS, &set).await;
    settle().await;
    bench
        .delete(&format!("{REPLICA_SETS}/web?propagationPolicy=Background"))
        .await;
    let pods = items(&bench, PODS).await;
    let path = format!("{PODS}/{}", text(&pods[0], "/metadata/name"));
    let labels = json!({"metadata": {"labels": {"app": "debug"}}});
    bench.merge(&path, labels).await;
    settle().await;
    let kept = bench.get(&path).await.json();
    assert_eq!(
        kept["metadata"]["ownerReferences"][0]["uid"],
        set["metadata"]["uid"]
    );
    let status = bench.get(&format!("{REPLICA_SETS}/web")).await.json()["status"].clone();
    assert_eq!(status["replicas"], 0, "it does not count as its own");
}

//! Simulated workloads, on paused time.

use std::time::Duration;

use http::StatusCode;
use lariat_cluster::{Cluster, Workloads};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bench::{Bench, text};

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const STATEFUL_SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
pub(crate) const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

pub(crate) async fn bench(workloads: Workloads) -> Bench {
    let cluster = Cluster::builder().seed(1).simulate_workloads(workloads);
    let cluster = cluster
        .start()
        .await
        .expect("a cluster without a socket starts");
    Bench { cluster }
}

/// Lets everything come to rest, short of time limits.
pub(crate) async fn settle() {
    sleep(Duration::from_secs(5)).await;
}

pub(crate) fn template(app: &str, image: &str, restart: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {"restartPolicy": restart, "containers": [{"name": "c", "image": image}]},
    })
}

pub(crate) fn workload(name: &str, spec: &Value) -> Value {
    let mut object = json!({"metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}}, "template": template(name, "i:1", "Always"),
    }});
    for (member, value) in spec.as_object().into_iter().flatten() {
        object["spec"][member] = value.clone();
    }
    object
}

impl Bench {
    pub(crate) async fn make(&self, path: &str, object: &Value) {
        let answer = self.post(path, object).await;
        assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    }

    pub(crate) async fn status(&self, path: &str) -> Value {
        self.get(path).await.json()["status"].clone()
    }

    pub(crate) async fn items(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).await.json();
        list["items"].as_array().expect("a list has items").clone()
    }
}

pub(crate) fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let conditions = status["conditions"]
        .as_array()
        .expect("there are conditions");
    let found = conditions.iter().find(|each| each["type"] == kind);
    found.unwrap_or_else(|| panic!("no condition {kind} in {status:#}"))
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_scheduled_runs_becomes_ready_and_ends_when_deleted() {
    let bench = bench(
        Workloads::default()
            .start(Duration::from_secs(2))
            .readiness(Duration::from_secs(3)),
    )
    .await;
    sleep(Duration::from_millis(1)).await;
    let node = bench.get("/api/v1/nodes/node-1").await.json();
    assert_eq!(condition(&node["status"], "Ready")["status"], "True");
    let pod =
        json!({"metadata": {"name": "p"}, "spec": template("p", "nginx:1", "Always")["spec"]});
    bench.make(PODS, &pod).await;
    let path = format!("{PODS}/p");
    sleep(Duration::from_secs(1)).await;
    let bound = bench.get(&path).await.json();
    assert_eq!(bound["spec"]["nodeName"], "node-1");
    assert_eq!(bound["status"]["phase"], "Pending");
    assert_eq!(
        bound["metadata"]["generation"], 1,
        "binding is no change of the spec"
    );
    sleep(Duration::from_secs(2)).await;
    let running = bench.status(&path).await;
    assert_eq!(running["phase"], "Running");
    assert_eq!(condition(&running, "Ready")["status"], "False");
    sleep(Duration::from_secs(3)).await;
    let ready = bench.status(&path).await;
    for kind in ["PodScheduled", "Initialized", "Ready", "ContainersReady"] {
        assert_eq!(condition(&ready, kind)["status"], "True", "{kind}");
    }
    let container = &ready["containerStatuses"][0];
    assert_eq!(
        (&container["ready"], &container["image"]),
        (&json!(true), &json!("nginx:1"))
    );
    assert!(container["state"]["running"]["startedAt"].is_string());
    assert_eq!(ready["hostIP"], node["status"]["addresses"][0]["address"]);
    assert!(ready["podIP"].is_string() && ready["startTime"].is_string());
    let mut watch = bench.watch(&format!("{PODS}?watch=1")).await;
    assert_eq!(watch.short().await, "ADDED p");
    assert_eq!(
        bench.delete(&path).await.json()["metadata"]["deletionGracePeriodSeconds"],
        30
    );
    assert_eq!(
        watch.shorts(3).await,
        ["MODIFIED p", "MODIFIED p", "DELETED p"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_a_node_that_fits() {
    let bench = bench(Workloads::default()).await;
    let mut pod = json!({"metadata": {"name": "p"}, "spec": template("p", "i", "Always")["spec"]});
    pod["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    bench.make(PODS, &pod).await;
    settle().await;
    let path = format!("{PODS}/p");
    let scheduled = condition(&bench.status(&path).await, "PodScheduled").clone();
    assert_eq!(
        (&scheduled["status"], &scheduled["reason"]),
        (&json!("False"), &json!("Unschedulable"))
    );
    bench
        .merge(
            "/api/v1/nodes/node-1",
            json!({"metadata": {"labels": {"disk": "ssd"}}}),
        )
        .await;
    settle().await;
    let status = bench.status(&path).await;
    assert_eq!(condition(&status, "PodScheduled")["status"], "True");
    assert_eq!(condition(&status, "Ready")["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_keeps_its_number_of_pods() {
    let bench = bench(Workloads::default()).await;
    let path = format!("{REPLICA_SETS}/web");
    bench
        .make(REPLICA_SETS, &workload("web", &json!({"replicas": 3})))
        .await;
    settle().await;
    let status = bench.status(&path).await;
    assert_eq!(
        status,
        json!({
            "replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "observedGeneration": 1,
        })
    );
    let pods = bench.items(PODS).await;
    assert!(text(&pods[0], "/metadata/name").starts_with("web-"));
    assert_eq!(
        pods[0]["metadata"]["ownerReferences"][0]["controller"],
        true
    );
    bench
        .delete(&format!("{PODS}/{}", text(&pods[0], "/metadata/name")))
        .await;
    settle().await;
    assert_eq!(bench.items(PODS).await.len(), 3);
    bench.merge(&path, json!({"spec": {"replicas": 1}})).await;
    settle().await;
    assert_eq!(bench.items(PODS).await.len(), 1);
    bench.delete(&path).await;
    settle().await;
    assert!(bench.items(PODS).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn stateful_sets_go_in_order() {
    let bench = bench(Workloads::default()).await;
    let path = format!("{STATEFUL_SETS}/db");
    let mut watch = bench.watch(&format!("{PODS}?watch=1")).await;
    bench
        .make(
            STATEFUL_SETS,
            &workload("db", &json!({"replicas": 2, "serviceName": "db"})),
        )
        .await;
    let mut ready_before_second = false;
    loop {
        let (event, pod) = watch.event().await;
        if text(&pod, "/metadata/name") == "db-1" && event == "ADDED" {
            assert!(ready_before_second);
            break;
        }
        ready_before_second = pod["status"]["conditions"].as_array().is_some_and(|all| {
            all.iter()
                .any(|each| each["type"] == "Ready" && each["status"] == "True")
        });
    }
    settle().await;
    let status = bench.status(&path).await;
    for member in [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ] {
        assert_eq!(status[member], 2, "{member}");
    }
    let first = bench.get(&format!("{PODS}/db-0")).await.json();
    assert_eq!(first["spec"]["hostname"], "db-0");
    assert_eq!(
        first["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"],
        "db-0"
    );
    let patch =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}});
    bench.merge(&path, patch).await;
    settle().await;
    let pods = bench.items(PODS).await;
    assert!(
        pods.iter()
            .all(|pod| pod["spec"]["containers"][0]["image"] == "i:2")
    );
    let status = bench.status(&path).await;
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    bench.merge(&path, json!({"spec": {"replicas": 1}})).await;
    settle().await;
    assert_eq!(bench.names(PODS).await, ["db-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_has_a_pod_on_every_node() {
    let bench = bench(Workloads::default().nodes(3)).await;
    bench
        .make(DAEMON_SETS, &workload("agent", &json!({})))
        .await;
    settle().await;
    let mut nodes: Vec<String> = bench
        .items(PODS)
        .await
        .iter()
        .map(|pod| text(pod, "/spec/nodeName").to_owned())
        .collect();
    nodes.sort();
    assert_eq!(nodes, ["node-1", "node-2", "node-3"]);
    bench
        .make("/api/v1/nodes", &json!({"metadata": {"name": "late"}}))
        .await;
    settle().await;
    let path = format!("{DAEMON_SETS}/agent");
    let status = bench.status(&path).await;
    for member in [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "numberAvailable",
        "updatedNumberScheduled",
    ] {
        assert_eq!(status[member], 4, "{member}");
    }
    let patch =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}});
    bench.merge(&path, patch).await;
    settle().await;
    let pods = bench.items(PODS).await;
    assert!(
        pods.iter()
            .all(|pod| pod["spec"]["containers"][0]["image"] == "i:2")
    );
    assert_eq!(bench.status(&path).await["numberReady"], 4);
}

#[tokio::test(start_paused = true)]
async fn a_test_lets_a_pod_fail() {
    let bench = bench(Workloads::default()).await;
    for (name, restart) in [("never", "Never"), ("always", "Always")] {
        let mut pod =
            json!({"metadata": {"name": name}, "spec": template(name, "i", restart)["spec"]});
        pod["metadata"]["annotations"] = json!({"lariat.dev/run-for": "1h"});
        bench.make(PODS, &pod).await;
    }
    settle().await;
    for name in ["never", "always", "unmatched"] {
        bench.cluster.workloads().fail_pod("default", name);
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        bench.status(&format!("{PODS}/never")).await["phase"],
        "Failed"
    );
    let status = bench.status(&format!("{PODS}/always")).await;
    assert_eq!(status["phase"], "Running");
    assert_eq!(condition(&status, "Ready")["status"], "False");
    assert_eq!(status["containerStatuses"][0]["restartCount"], 1);
    sleep(Duration::from_secs(20)).await;
    let status = bench.status(&format!("{PODS}/always")).await;
    assert_eq!(condition(&status, "Ready")["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn nothing_moves_when_everything_is_as_it_should_be() {
    let bench = bench(Workloads::default().nodes(2)).await;
    bench
        .make(DEPLOYMENTS, &workload("web", &json!({"replicas": 2})))
        .await;
    bench
        .make(STATEFUL_SETS, &workload("db", &json!({"replicas": 2})))
        .await;
    bench
        .make(DAEMON_SETS, &workload("agent", &json!({})))
        .await;
    settle().await;
    let before = bench.get(PODS).await.json()["metadata"]["resourceVersion"].clone();
    sleep(Duration::from_secs(3600)).await;
    let after = bench.get(PODS).await.json()["metadata"]["resourceVersion"].clone();
    assert_eq!(before, after);
}

#[tokio::test(start_paused = true)]
async fn numbers_beyond_all_measure_do_not_end_the_simulation() {
    let slow = Duration::from_secs(3600);
    let bench = bench(Workloads::default().scheduling(slow)).await;
    let huge = i32::MAX;
    let rolling = json!({"maxSurge": huge, "maxUnavailable": huge});
    let spec = json!({
        "replicas": huge, "strategy": {"rollingUpdate": rolling}, "minReadySeconds": huge - 1,
        "progressDeadlineSeconds": huge,
        "podManagementPolicy": "Parallel", "ordinals": {"start": huge - 300},
        "parallelism": huge, "completions": huge, "activeDeadlineSeconds": i64::MAX,
    });
    for path in [DEPLOYMENTS, STATEFUL_SETS, JOBS] {
        let mut object = workload("w", &spec);
        if path == JOBS {
            object["spec"]["template"] = template("w", "i:1", "Never");
            object["spec"]["selector"] = Value::Null;
        }
        bench.make(path, &object).await;
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        let gone = format!("{path}/w?propagationPolicy=Background");
        assert_eq!(bench.delete(&gone).await.code, StatusCode::OK);
        sleep(Duration::from_secs(1)).await;
        assert!(bench.items(PODS).await.is_empty(), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_node_is_gone_can_be_deleted() {
    let bench = bench(Workloads::default()).await;
    let spec = template("p", "i:1", "Always")["spec"].clone();
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    bench.make(PODS, &pod).await;
    settle().await;
    bench.delete("/api/v1/nodes/node-1").await;
    settle().await;
    bench.delete(&format!("{PODS}/p")).await;
    sleep(Duration::from_secs(60)).await;
    assert!(bench.items(PODS).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_deletes_the_second_pod_of_a_node() {
    let bench = bench(Workloads::default()).await;
    bench
        .make(DAEMON_SETS, &workload("agent", &json!({})))
        .await;
    settle().await;
    let first = bench.items(PODS).await[0].clone();
    let mut second = json!({"metadata": first["metadata"], "spec": first["spec"]});
    second["metadata"] = json!({
        "name": "zz", "labels": first["metadata"]["labels"],
        "ownerReferences": first["metadata"]["ownerReferences"],
    });
    sleep(Duration::from_secs(2)).await;
    bench.make(PODS, &second).await;
    sleep(Duration::from_secs(60)).await;
    let names: Vec<Value> = bench.items(PODS).await;
    assert_eq!(names.len(), 1);
    assert_eq!(names[0]["metadata"]["name"], first["metadata"]["name"]);
}

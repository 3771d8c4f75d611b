//! Counting Autoscalers on the embedded cluster.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat::cluster::Cluster;
use lariat::cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat::cluster::testing::{TestCluster, namespace, pod};
use lariat::prelude::*;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{AUTOSCALER, Autoscaler, AutoscalerSpec, desired, register};
use crate::define;
use crate::roles::{assert_nothing_was_forbidden, grant, with_roles};

const SECOND: Duration = Duration::from_secs(1);

struct Bench {
    cluster: TestCluster,
    autoscalers: Api<Autoscaler>,
    pods: Api<Pod>,
    /// Kept, because dropping it would stop it.
    _operator: Operator,
}

impl Bench {
    async fn new() -> Self {
        let cluster = Cluster::for_test().await;
        define::<Autoscaler>(&cluster.client()).await;
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        let operator = Operator::new("autoscaler", &factory);
        register(&operator).expect("it is the first");
        Self::with(cluster, operator).await
    }

    async fn with(cluster: TestCluster, operator: Operator) -> Self {
        operator.start(2).await.expect("it starts");
        Self {
            autoscalers: Api::namespaced(cluster.client(), "default"),
            pods: Api::namespaced(cluster.client(), "default"),
            cluster,
            _operator: operator,
        }
    }

    /// Creates an Autoscaler that selects a tier.
    async fn create(&self, name: &str, mut spec: Value) {
        spec["selector"] = json!({"tier": name});
        let spec = serde_json::from_value(spec).expect("what is left out has a default");
        let autoscaler = Autoscaler::new(name, spec);
        let created = self
            .autoscalers
            .create(&PostParams::default(), &autoscaler)
            .await;
        created.expect("it is valid");
        settle().await;
    }

    /// Creates a running pod of a tier with the label of an Autoscaler, ready or not.
    async fn pod(&self, name: &str, tier: &str, is_ready: bool) {
        let pod = pod(name).label(AUTOSCALER, tier).label("tier", tier);
        pod.create(&self.cluster.client())
            .await
            .expect("it is valid");
        self.run(name, is_ready).await;
        settle().await;
    }

    async fn run(&self, name: &str, is_ready: bool) {
        let container = |name: &str, ready| json!({"name": name, "ready": ready, "image": "i", "imageID": "", "restartCount": 0});
        let containers = [container("a", true), container("b", is_ready)];
        let status = json!({"status": {"phase": "Running", "containerStatuses": containers}});
        let patch = Patch::Merge(status);
        let patched = self
            .pods
            .patch_status(name, &PatchParams::default(), &patch)
            .await;
        patched.expect("there is such a pod");
    }

    async fn label(&self, name: &str, labels: Value) {
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        let patched = self.pods.patch(name, &PatchParams::default(), &patch).await;
        patched.expect("there is such a pod");
        settle().await;
    }

    /// Returns how many pods an Autoscaler shows, and how many there should be.
    async fn counts(&self, name: &str) -> (u32, u32) {
        let autoscaler = self.autoscalers.get(name).await.expect("it is there");
        let status = autoscaler.status.expect("it has a status");
        (status.current_replicas, status.desired_replicas)
    }

    fn writes(&self) -> usize {
        let journal = self.cluster.journal();
        journal
            .select()
            .resource("autoscalers")
            .subresource("status")
            .count()
    }
}

/// Waits until nothing is due any more.
async fn settle() {
    sleep(Duration::from_millis(200)).await;
}

#[test]
fn what_is_desired_is_what_there_is_within_bounds() {
    let spec: AutoscalerSpec = serde_json::from_value(json!({"selector": {"a": "b"}})).unwrap();
    assert_eq!(
        (
            spec.min_replicas,
            spec.max_replicas,
            spec.target_cpu_utilization
        ),
        (1, 10, 80)
    );
    for (current, expected) in [(0, 1), (1, 1), (5, 5), (10, 10), (11, 10)] {
        assert_eq!(desired(&spec, current), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn pods_are_counted_that_are_selected_and_run_with_all_containers_ready() {
    let bench = Bench::new().await;
    bench
        .create("web", json!({"minReplicas": 2, "maxReplicas": 3}))
        .await;
    assert_eq!(bench.counts("web").await, (0, 2));
    bench.pod("ready", "web", true).await;
    bench.pod("unready", "web", false).await;
    bench.pod("other", "batch", true).await;
    assert_eq!(bench.counts("web").await, (1, 2));
    bench.run("unready", true).await;
    settle().await;
    assert_eq!(bench.counts("web").await, (2, 2));
    for name in ["third", "fourth"] {
        bench.pod(name, "web", true).await;
    }
    assert_eq!(bench.counts("web").await, (4, 3));
    bench
        .pods
        .delete("third", &DeleteParams::default())
        .await
        .unwrap();
    settle().await;
    assert_eq!(bench.counts("web").await, (3, 3));
    let ours = bench.cluster.journal().count("create", "pods");
    assert_eq!(ours, 5, "the writes of this test: it never creates any");
}

#[tokio::test(start_paused = true)]
async fn a_relabelled_pod_calls_for_both() {
    let bench = Bench::new().await;
    bench.create("web", json!({})).await;
    bench.create("batch", json!({})).await;
    bench.pod("a", "web", true).await;
    assert_eq!(
        (bench.counts("web").await, bench.counts("batch").await),
        ((1, 1), (0, 1))
    );
    bench
        .label("a", json!({AUTOSCALER: "batch", "tier": "batch"}))
        .await;
    assert_eq!(
        (bench.counts("web").await, bench.counts("batch").await),
        ((0, 1), (1, 1))
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_the_label_is_counted_within_thirty_seconds_and_one_elsewhere_is_not() {
    let bench = Bench::new().await;
    bench.create("web", json!({})).await;
    namespace("elsewhere")
        .create(&bench.cluster.client())
        .await
        .unwrap();
    let elsewhere = pod("c")
        .namespace("elsewhere")
        .label(AUTOSCALER, "web")
        .label("tier", "web");
    elsewhere.create(&bench.cluster.client()).await.unwrap();
    bench.pod("a", "unlabelled", true).await;
    bench.label("a", json!({"tier": "web"})).await;
    assert_eq!(bench.counts("web").await, (0, 1));
    sleep(30 * SECOND).await;
    assert_eq!(bench.counts("web").await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_status_is_applied_and_only_when_it_differs() {
    let bench = Bench::new().await;
    bench.create("web", json!({})).await;
    assert_eq!(bench.writes(), 1);
    let web = bench.autoscalers.get("web").await.unwrap();
    let manager = web
        .managed_fields()
        .iter()
        .find(|entry| entry.manager.as_deref() == Some("autoscaler/autoscaler"));
    let manager = manager.expect("it owns fields");
    assert_eq!(
        (manager.operation.as_deref(), manager.subresource.as_deref()),
        (Some("Apply"), Some("status"))
    );
    sleep(600 * SECOND).await;
    assert_eq!(bench.writes(), 1, "it looked twenty times");
    let wrong = Patch::Merge(json!({"status": {"currentReplicas": 7}}));
    bench
        .autoscalers
        .patch_status("web", &PatchParams::default(), &wrong)
        .await
        .unwrap();
    sleep(31 * SECOND).await;
    assert_eq!(bench.counts("web").await, (0, 1), "written by any process");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_is_retried() {
    let bench = Bench::new().await;
    for status in [
        StatusCode::INTERNAL_SERVER_ERROR,
        StatusCode::CONFLICT,
        StatusCode::TOO_MANY_REQUESTS,
    ] {
        let refused = Action::Refuse(Refusal::new(status));
        bench.cluster.faults().add(
            Rule::new(refused)
                .resource("autoscalers")
                .subresource("status")
                .times(1),
        );
    }
    bench.create("web", json!({})).await;
    sleep(5 * SECOND).await;
    assert_eq!(bench.counts("web").await, (0, 1));
}

#[tokio::test(start_paused = true)]
async fn invalid_bounds_and_selectors_are_refused() {
    let bench = Bench::new().await;
    for (spec, expected) in [
        (
            json!({"selector": {"a": "b"}, "minReplicas": 3, "maxReplicas": 2}),
            "minReplicas is at most maxReplicas",
        ),
        (json!({"selector": {}}), "spec.selector"),
    ] {
        let wrong = Autoscaler::new("web", serde_json::from_value(spec).unwrap());
        let error = bench
            .autoscalers
            .create(&PostParams::default(), &wrong)
            .await
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn its_cluster_role_is_sufficient() {
    let (cluster, operator) = with_roles().await;
    define::<Autoscaler>(&cluster.client()).await;
    register(&operator).unwrap();
    grant(&cluster, &operator).await;
    let bench = Bench::with(cluster, operator).await;
    bench.create("web", json!({})).await;
    bench.pod("a", "web", true).await;
    assert_eq!(bench.counts("web").await, (1, 1));
    assert_nothing_was_forbidden(&bench.cluster);
}

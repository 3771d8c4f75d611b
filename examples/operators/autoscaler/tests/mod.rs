//! Autoscalers on the embedded cluster: how many pods, created and deleted by how many requests.

mod namespaces;
mod status;

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lariat::cluster::Cluster;
use lariat::cluster::faults::{Action, After, Refusal, Rule, StatusCode};
use lariat::cluster::testing::{TestCluster, namespace, wait_until_gone};
use lariat::describe;
use lariat::prelude::*;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Autoscaler, AutoscalerSpec, AutoscalerStatus, OWNER_NAME, register};
use crate::define;
use crate::roles::{assert_nothing_was_forbidden, grant, with_roles};

const SECOND: Duration = Duration::from_secs(1);

struct Bench {
    cluster: TestCluster,
    operator: Operator,
    autoscalers: Api<Autoscaler>,
}

impl Bench {
    async fn new() -> Self {
        Self::on(Cluster::for_test().await).await
    }

    /// Creates the namespaces `blue` and `green`, and an operator.
    async fn on(cluster: TestCluster) -> Self {
        define::<Autoscaler>(&cluster.client()).await;
        let operator = operator(&cluster);
        Self::with(cluster, operator).await
    }

    async fn with(cluster: TestCluster, operator: Operator) -> Self {
        for name in ["blue", "green"] {
            let created = namespace(name).create(&cluster.client()).await;
            created.expect("it is a namespace");
        }
        let bench = Self {
            autoscalers: Api::namespaced(cluster.client(), "default"),
            operator,
            cluster,
        };
        bench.operator.start(2).await.expect("it starts");
        bench
    }

    async fn create(&self, name: &str, namespace: &str, replicas: u32) {
        self.create_in("default", name, namespace, replicas).await;
    }

    async fn create_in(&self, home: &str, name: &str, namespace: &str, replicas: u32) {
        let autoscalers: Api<Autoscaler> = Api::namespaced(self.cluster.client(), home);
        let autoscaler = Autoscaler::new(name, spec(namespace, replicas));
        let created = autoscalers
            .create(&PostParams::default(), &autoscaler)
            .await;
        created.expect("it is valid");
        settle().await;
    }

    async fn merge(&self, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        let patched = self
            .autoscalers
            .patch(name, &PatchParams::default(), &patch)
            .await;
        patched.expect("it can be changed");
        settle().await;
    }

    async fn status(&self, name: &str) -> AutoscalerStatus {
        let autoscaler = self.autoscalers.get(name).await.expect("it is there");
        autoscaler.status.expect("it has a status")
    }

    fn pods_in(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.cluster.client(), namespace)
    }

    /// Returns the names of all pods, with their namespaces.
    async fn pods(&self) -> Vec<String> {
        let all: Api<Pod> = Api::all(self.cluster.client());
        let pods = all
            .list(&ListParams::default())
            .await
            .expect("they can be listed");
        let name =
            |pod: &Pod| format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
        pods.iter().map(name).collect()
    }

    async fn set_phase(&self, name: &str, phase: &str) {
        let patch = Patch::Merge(json!({"status": {"phase": phase}}));
        let (pods, params) = (self.pods_in("blue"), PatchParams::default());
        let patched = pods.patch_status(name, &params, &patch).await;
        patched.expect("there is such a pod");
    }

    fn count(&self, verb: &str, resource: &str) -> usize {
        self.cluster.journal().count(verb, resource)
    }
}

fn operator(cluster: &Cluster) -> Operator {
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let operator = Operator::new("autoscaler", &factory);
    register(&operator).expect("it is the first");
    operator
}

fn spec(namespace: &str, replicas: u32) -> AutoscalerSpec {
    AutoscalerSpec {
        target_namespace: namespace.to_owned(),
        desired_replicas: replicas,
        image: "registry.k8s.io/pause:3.10".to_owned(),
    }
}

/// Waits until nothing is due any more.
async fn settle() {
    sleep(Duration::from_millis(200)).await;
}

#[tokio::test(start_paused = true)]
async fn pods_are_created_one_by_one_and_counted_after_each() {
    let bench = Bench::new().await;
    bench.create("web", "blue", 3).await;
    assert_eq!(
        bench.pods().await,
        ["blue/web-0", "blue/web-1", "blue/web-2"]
    );
    assert_eq!(bench.count("create", "pods"), 3);
    let expected = AutoscalerStatus {
        available_replicas: 3,
        ready: true,
    };
    assert_eq!(bench.status("web").await, expected);
    let writes = bench
        .cluster
        .journal()
        .select()
        .resource("autoscalers")
        .subresource("status");
    writes.assert_count(4);
    let events: Api<Event> = Api::namespaced(bench.cluster.client(), "default");
    let events = events.list(&ListParams::default()).await.unwrap();
    assert_eq!(
        events
            .iter()
            .filter(|event| event.reason.as_deref() == Some("ReplicaCreated"))
            .count(),
        3
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_or_fails_is_replaced_by_one() {
    let bench = Bench::new().await;
    bench.create("web", "blue", 3).await;
    bench
        .pods_in("blue")
        .delete("web-1", &DeleteParams::default())
        .await
        .unwrap();
    settle().await;
    assert_eq!(bench.count("create", "pods"), 4);
    bench.set_phase("web-0", "Failed").await;
    settle().await;
    assert_eq!(bench.count("create", "pods"), 5);
    assert!(bench.status("web").await.ready);
}

#[tokio::test(start_paused = true)]
async fn surplus_pods_that_do_not_run_are_deleted_first_and_then_the_youngest() {
    let bench = Bench::new().await;
    bench.create("web", "blue", 2).await;
    sleep(SECOND).await;
    bench
        .merge("web", json!({"spec": {"desiredReplicas": 5}}))
        .await;
    for name in ["web-0", "web-1", "web-3"] {
        bench.set_phase(name, "Running").await;
    }
    bench
        .merge("web", json!({"spec": {"desiredReplicas": 3}}))
        .await;
    assert_eq!(
        bench.pods().await,
        ["blue/web-0", "blue/web-1", "blue/web-3"]
    );
    bench
        .merge("web", json!({"spec": {"desiredReplicas": 2}}))
        .await;
    assert_eq!(bench.pods().await, ["blue/web-0", "blue/web-1"]);
    assert_eq!(bench.count("delete", "pods"), 3);
    bench
        .merge("web", json!({"spec": {"desiredReplicas": 0}}))
        .await;
    assert_eq!(bench.pods().await, [""; 0]);
    assert!(bench.status("web").await.ready);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_nothing_is_different() {
    let bench = Bench::new().await;
    bench.create("web", "blue", 2).await;
    let mark = bench.cluster.journal().mark();
    bench.set_phase("web-0", "Running").await;
    bench
        .merge("web", json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    sleep(3600 * SECOND).await;
    let journal = bench.cluster.journal();
    let writes = |resource: &str, verb: &str| {
        journal
            .select()
            .since(mark)
            .resource(resource)
            .verb(verb)
            .count()
    };
    assert_eq!(writes("pods", "create") + writes("pods", "delete"), 0);
    assert_eq!(writes("autoscalers", "patch"), 1, "that of this test");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_not_created_twice_when_the_watch_is_silent_or_the_answer_lost() {
    for fault in [
        Rule::new(Action::HangWatch(After::Events(0))).resource("pods"),
        Rule::new(Action::CutWatch(After::Events(1))).resource("pods"),
        Rule::new(Action::Delay(5 * SECOND))
            .verb("watch")
            .resource("pods"),
        Rule::new(Action::LoseReply)
            .verb("create")
            .resource("pods")
            .nth(2),
        Rule::new(Action::Refuse(Refusal::too_many_requests()))
            .verb("create")
            .resource("pods")
            .times(3),
        Rule::new(Action::Refuse(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
        )))
        .resource("autoscalers")
        .subresource("status")
        .times(3),
    ] {
        let bench = Bench::new().await;
        let text = format!("{:?}", fault.action());
        bench.cluster.faults().add(fault);
        bench.cluster.cut_watches();
        settle().await;
        bench.create("web", "blue", 5).await;
        sleep(60 * SECOND).await;
        assert_eq!(bench.pods().await.len(), 5, "{text}");
        assert_eq!(
            bench.count("delete", "pods"),
            0,
            "there were never too many: {text}"
        );
        assert_eq!(bench.status("web").await.available_replicas, 5, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_label_changes_calls_for_both() {
    let bench = Bench::new().await;
    bench.create("one", "blue", 2).await;
    bench.create("two", "blue", 2).await;
    let over = Patch::Merge(json!({"metadata": {"labels": {OWNER_NAME: "two"}}}));
    bench
        .pods_in("blue")
        .patch("one-0", &PatchParams::default(), &over)
        .await
        .unwrap();
    settle().await;
    assert_eq!(
        bench.count("create", "pods"),
        5,
        "the old owner has one too few"
    );
    assert_eq!(
        bench.count("delete", "pods"),
        1,
        "the new one has one too many"
    );
    assert!(bench.status("one").await.ready && bench.status("two").await.ready);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_fits_into_no_label_is_refused() {
    let bench = Bench::new().await;
    let long = Autoscaler::new(&"x".repeat(64), spec("blue", 1));
    let error = bench
        .autoscalers
        .create(&PostParams::default(), &long)
        .await
        .unwrap_err();
    assert!(
        describe(&error).contains("at most 63 characters"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn its_cluster_role_is_sufficient() {
    let (cluster, operator) = with_roles().await;
    define::<Autoscaler>(&cluster.client()).await;
    register(&operator).unwrap();
    grant(&cluster, &operator).await;
    let bench = Bench::with(cluster, operator).await;
    bench.create("web", "blue", 3).await;
    bench
        .merge("web", json!({"spec": {"desiredReplicas": 1}}))
        .await;
    let (name, params) = ("web", DeleteParams::default());
    bench.autoscalers.delete(name, &params).await.unwrap();
    wait_until_gone(&bench.autoscalers, name).await.unwrap();
    settle().await;
    assert_nothing_was_forbidden(&bench.cluster);
}

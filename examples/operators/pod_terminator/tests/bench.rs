//! A cluster, pods, and a program that can be restarted.

use std::time::Duration;

use fastrand::Rng;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use lariat::cluster::Cluster;
use lariat::cluster::testing::{TestCluster, pod, wait_for_condition};
use lariat::kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lariat::kube::{self, Client};
use lariat::{Operator, SharedControllerFactory};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use super::super::{PodTerminator, register};

pub(super) const SECOND: Duration = Duration::from_secs(1);

/// A cluster with the CRD of PodTerminators, and their operator.
pub(super) struct Bench {
    pub(super) cluster: TestCluster,
    pub(super) terminators: Api<PodTerminator>,
    pub(super) pods: Api<Pod>,
    pub(super) program: Program,
}

/// The part that is new after a restart.
pub(super) struct Program {
    pub(super) operator: Operator,
    pub(super) tasks: TaskTracker,
}

impl Program {
    pub(super) async fn start(cluster: &TestCluster) -> Self {
        let program = Self::new(cluster.client());
        program.operator.start(2).await.expect("started");
        program
    }

    pub(super) fn new(client: Client) -> Self {
        let factory = SharedControllerFactory::builder(client).build();
        Self::of(Operator::new("pod-terminator", &factory))
    }

    pub(super) fn of(operator: Operator) -> Self {
        let program = Self {
            operator,
            tasks: TaskTracker::new(),
        };
        let registered = register(&program.operator, &program.tasks, Rng::with_seed(7));
        registered.expect("registered");
        program
    }

    pub(super) async fn stop(&self) {
        self.operator.stop().await.expect("stopped");
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Bench {
    pub(super) async fn new() -> Self {
        let cluster = Cluster::for_test().await;
        define(&cluster).await;
        let program = Program::start(&cluster).await;
        Self::of(cluster, program)
    }

    pub(super) fn of(cluster: TestCluster, program: Program) -> Self {
        Self {
            terminators: Api::all(cluster.client()),
            pods: Api::all(cluster.client()),
            program,
            cluster,
        }
    }

    /// Creates pods `web-0`, `web-1` and so on.
    pub(super) async fn with_pods(self, pods: usize) -> Self {
        for number in 0..pods {
            let web = pod(&format!("web-{number}")).label("app", "web");
            web.create(&self.cluster.client()).await.expect("created");
        }
        self
    }

    /// Creates a PodTerminator of pods `app=web` with a period of ten seconds.
    pub(super) async fn terminate(&self, name: &str, spec: Value) {
        let mut whole = json!({
            "apiVersion": "chaos.spotahome.com/v1alpha1", "kind": "PodTerminator",
            "metadata": {"name": name},
            "spec": {"selector": {"app": "web"}, "periodSeconds": 10, "terminationPercent": 50},
        });
        merge(&mut whole["spec"], &spec);
        let terminator = serde_json::from_value(whole).expect("it is one");
        let created = self
            .terminators
            .create(&PostParams::default(), &terminator)
            .await;
        created.expect("created");
        settle().await;
    }

    pub(super) async fn patch(&self, name: &str, patch: Value) {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = self.terminators.patch(name, &params, &patch);
        patched.await.expect("patched");
    }

    pub(super) async fn delete(&self, name: &str) {
        let deleted = self
            .terminators
            .delete(name, &DeleteParams::default())
            .await;
        deleted.expect("deleted");
    }

    pub(super) async fn alive(&self) -> Vec<String> {
        let pods = self
            .pods
            .list(&ListParams::default())
            .await
            .expect("listed");
        let names = pods.items.into_iter().filter_map(|pod| pod.metadata.name);
        names.collect()
    }

    /// Returns the number of deletion requests for pods.
    pub(super) fn kills(&self) -> usize {
        self.cluster.journal().count("delete", "pods")
    }
}

pub(super) async fn define(cluster: &TestCluster) {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let (params, definition) = (PostParams::default(), PodTerminator::crd());
    let created = definitions.create(&params, &definition).await;
    created.expect("defined");
    let name = "podterminators.chaos.spotahome.com";
    let established = wait_for_condition(&definitions, name, "Established").await;
    established.expect("established");
}

pub(super) fn merge(into: &mut Value, from: &Value) {
    let members = from.as_object().cloned().unwrap_or_default();
    into.as_object_mut().expect("an object").extend(members);
}

/// Waits until nothing is due any more; time is paused.
pub(super) async fn settle() {
    sleep(Duration::from_millis(100)).await;
}

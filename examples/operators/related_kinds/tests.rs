//! When Deployments restart, and when they do not.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::cluster::faults::{Action, Rule};
use lariat::cluster::testing::{TestCluster, config_map, deployment};
use lariat::cluster::{Cluster, Workloads};
use lariat::kube::ResourceExt;
use lariat::kube::api::{Api, ListParams};
use lariat::{Operator, SharedControllerFactory};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{CONFIG, RELOAD, register};
use crate::roles::{assert_nothing_was_forbidden, grant, with_roles};
use crate::{delete, merge, until_printed};

struct Bench {
    cluster: TestCluster,
    operator: Operator,
    config_maps: Api<ConfigMap>,
    deployments: Api<Deployment>,
}

impl Bench {
    async fn new() -> Self {
        let builder = Cluster::builder().simulate_workloads(Workloads::default());
        let cluster = builder.for_test().await;
        let client = cluster.client();
        let factory = SharedControllerFactory::builder(client.clone()).build();
        let operator = Operator::new("related-kinds", &factory);
        register(&operator).expect("registered");
        Self::with(cluster, operator).await
    }

    async fn with(cluster: TestCluster, operator: Operator) -> Self {
        let client = cluster.client();
        operator.start(2).await.expect("started");
        let bench = Self {
            operator,
            config_maps: Api::default_namespaced(client.clone()),
            deployments: Api::default_namespaced(client),
            cluster,
        };
        for name in ["common", "own", "unused"] {
            bench.configure(name).await;
        }
        bench
    }

    async fn configure(&self, name: &str) {
        let made = config_map(name, &[("colour", "red")]);
        let created = made.create(&self.cluster.client()).await;
        created.expect("created");
    }

    /// Creates a Deployment whose pod has this container and these volumes.
    async fn deploy(&self, name: &str, container: Value, volumes: Value) {
        let mut container = container;
        container["name"] = "main".into();
        container["image"] = "pause".into();
        let made = deployment(name, 1)
            .annotation(RELOAD, "true")
            .set("/spec/template/spec/containers", json!([container]))
            .set("/spec/template/spec/volumes", volumes);
        let created = made.create(&self.cluster.client()).await;
        created.expect("created");
        settle().await;
    }

    /// Creates a Deployment that takes its environment from ConfigMaps.
    async fn deploy_with(&self, name: &str, config_maps: &[&str]) {
        let source = |name: &&str| json!({"configMapRef": {"name": name}});
        let sources: Vec<Value> = config_maps.iter().map(source).collect();
        self.deploy(name, json!({"envFrom": sources}), json!([]))
            .await;
    }

    /// Makes the template of a Deployment use these ConfigMaps instead.
    async fn name(&self, name: &str, config_maps: &[&str]) {
        let source = |name: &&str| json!({"configMapRef": {"name": name}});
        let sources: Vec<Value> = config_maps.iter().map(source).collect();
        let container = json!([{"name": "main", "image": "pause", "envFrom": sources}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": container}}}});
        let named = merge(&self.deployments, name, patch).await;
        named.expect("changed");
        settle().await;
    }

    async fn change(&self, name: &str, colour: &str) {
        let patch = json!({"data": {"colour": colour}});
        merge(&self.config_maps, name, patch)
            .await
            .expect("changed");
        settle().await;
    }

    /// Returns how often each Deployment was restarted: each time with another ReplicaSet.
    async fn restarts(&self) -> BTreeMap<String, i64> {
        let all: Api<ReplicaSet> = Api::default_namespaced(self.cluster.client());
        let mut restarts = BTreeMap::new();
        for set in all.list(&ListParams::default()).await.expect("listed") {
            let owner = set.owner_references()[0].name.clone();
            *restarts.entry(owner).or_insert(-1) += 1;
        }
        restarts
    }

    async fn restarts_of(&self, name: &str) -> i64 {
        self.restarts().await[name]
    }

    fn writes(&self) -> usize {
        self.cluster.journal().count("patch", "deployments")
    }
}

/// Waits until nothing is due any more.
async fn settle() {
    sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn only_those_that_use_a_config_map_restart() {
    let bench = Bench::new().await;
    bench.deploy_with("web", &["common", "own"]).await;
    bench.deploy_with("api", &["common"]).await;
    assert_eq!(
        bench.restarts().await.into_values().sum::<i64>(),
        0,
        "their pods have just begun"
    );
    bench.change("own", "blue").await;
    assert_eq!(
        (
            bench.restarts_of("web").await,
            bench.restarts_of("api").await
        ),
        (1, 0)
    );
    bench.change("common", "blue").await;
    assert_eq!(
        (
            bench.restarts_of("web").await,
            bench.restarts_of("api").await
        ),
        (2, 1)
    );
    bench.change("unused", "blue").await;
    assert_eq!(bench.writes(), 2 + 3);
}

#[tokio::test(start_paused = true)]
async fn every_way_to_use_a_config_map_counts() {
    let bench = Bench::new().await;
    let key = json!({"configMapKeyRef": {"name": "own", "key": "colour"}});
    let projected = json!([{"configMap": {"name": "own"}}]);
    let none = json!([]);
    for (name, container, volumes) in [
        (
            "from",
            json!({"envFrom": [{"configMapRef": {"name": "own"}}]}),
            none.clone(),
        ),
        (
            "key",
            json!({"env": [{"name": "COLOUR", "valueFrom": key}]}),
            none,
        ),
        (
            "volume",
            json!({}),
            json!([{"name": "v", "configMap": {"name": "own"}}]),
        ),
        (
            "projected",
            json!({}),
            json!([{"name": "v", "projected": {"sources": projected}}]),
        ),
    ] {
        bench.deploy(name, container, volumes).await;
    }
    bench.change("own", "blue").await;
    assert_eq!(Vec::from_iter(bench.restarts().await.into_values()), [1; 4]);
}

#[tokio::test(start_paused = true)]
async fn changes_of_metadata_restart_nothing() {
    let mut bench = Bench::new().await;
    bench.deploy_with("web", &["own"]).await;
    let label = json!({"metadata": {"labels": {"some": "label"}}});
    merge(&bench.config_maps, "own", label.clone())
        .await
        .unwrap();
    merge(&bench.deployments, "web", label).await.unwrap();
    settle().await;
    bench.operator.stop().await.unwrap();
    let factory = SharedControllerFactory::builder(bench.cluster.client()).build();
    bench.operator = Operator::new("related-kinds", &factory);
    register(&bench.operator).unwrap();
    bench.operator.start(2).await.unwrap();
    settle().await;
    assert_eq!(bench.writes(), 1 + 1, "the first note, and the label");
}

#[tokio::test(start_paused = true)]
async fn a_creation_or_deletion_is_a_change() {
    let bench = Bench::new().await;
    bench.deploy_with("web", &["own", "later"]).await;
    delete(&bench.config_maps, "own").await.unwrap();
    settle().await;
    assert_eq!(bench.restarts_of("web").await, 1);
    bench.configure("later").await;
    settle().await;
    assert_eq!(bench.restarts_of("web").await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_change_while_the_operator_is_down_is_found_at_the_start() {
    let bench = Bench::new().await;
    bench.deploy_with("web", &["own"]).await;
    bench.operator.stop().await.unwrap();
    bench.change("own", "blue").await;
    assert_eq!(bench.restarts_of("web").await, 0);
    bench.operator.start(2).await.unwrap();
    settle().await;
    assert_eq!(bench.restarts_of("web").await, 1);
}

#[tokio::test(start_paused = true)]
async fn deployments_without_the_annotation_are_left_alone() {
    let bench = Bench::new().await;
    bench.deploy_with("web", &["own"]).await;
    let patch = json!({"metadata": {"annotations": {RELOAD: null}}});
    merge(&bench.deployments, "web", patch).await.unwrap();
    bench.change("own", "blue").await;
    assert_eq!(bench.restarts_of("web").await, 0);
    // It asks again, and what it missed counts.
    let patch = json!({"metadata": {"annotations": {RELOAD: "true"}}});
    merge(&bench.deployments, "web", patch).await.unwrap();
    settle().await;
    assert_eq!(bench.restarts_of("web").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_restart_without_a_change_of_a_config_map_has_a_reason_too() {
    let bench = Bench::new().await;
    bench.deploy_with("again", &["own"]).await;
    let patch = json!({"metadata": {"annotations": {RELOAD: null}}});
    merge(&bench.deployments, "again", patch).await.unwrap();
    bench.change("own", "blue").await;
    let patch = json!({"metadata": {"annotations": {RELOAD: "true"}}});
    merge(&bench.deployments, "again", patch).await.unwrap();
    until_printed(1, &["Deployment again", "restarts", ": updated "])
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_config_map_that_is_seen_after_its_deployment_restarts_nothing() {
    let bench = Bench::new().await;
    let late = Rule::new(Action::Delay(Duration::from_secs(5))).verb("watch");
    bench.cluster.faults().add(late.resource("configmaps"));
    bench.cluster.cut_watches();
    settle().await;
    bench.configure("made-before").await;
    bench.deploy_with("web", &["made-before"]).await;
    assert_eq!(bench.writes(), 1, "it is managed");
    sleep(Duration::from_secs(60)).await;
    assert_eq!((bench.writes(), bench.restarts_of("web").await), (1, 0));
}

/// As `kubectl set env --from configmap/common` does.
#[tokio::test(start_paused = true)]
async fn another_config_map_in_the_template_is_one_roll_out_and_not_two() {
    let bench = Bench::new().await;
    bench.deploy_with("web", &["own"]).await;
    for used in [&["own", "common"][..], &["common"]] {
        bench.name("web", used).await;
    }
    assert_eq!(bench.restarts_of("web").await, 2, "those of the template");
    bench.change("common", "blue").await;
    assert_eq!(bench.restarts_of("web").await, 3);
    bench.change("own", "blue").await;
    assert_eq!(bench.restarts_of("web").await, 3, "it is not used any more");
}

#[tokio::test(start_paused = true)]
async fn a_changed_config_map_that_stayed_in_the_template_is_found_at_the_start() {
    let bench = Bench::new().await;
    bench.deploy_with("web", &["own"]).await;
    bench.operator.stop().await.unwrap();
    bench.name("web", &["own", "common"]).await;
    bench.change("own", "blue").await;
    assert_eq!(bench.restarts_of("web").await, 1, "that of the template");
    bench.operator.start(2).await.unwrap();
    settle().await;
    assert_eq!(bench.restarts_of("web").await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_restarts_once() {
    let bench = Bench::new().await;
    bench.deploy_with("web", &["own"]).await;
    let lost = Rule::new(Action::LoseReply)
        .verb("patch")
        .resource("deployments");
    bench.cluster.faults().add(lost.times(1));
    bench.change("own", "blue").await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.restarts_of("web").await, 1);
    let web = bench.deployments.get("web").await.unwrap();
    let template = web.spec.unwrap().template.metadata.unwrap();
    let noted = web.metadata.annotations.unwrap()[CONFIG].clone();
    assert_eq!(template.annotations.unwrap()[CONFIG], noted);
}

#[tokio::test(start_paused = true)]
async fn its_cluster_role_is_sufficient() {
    let (cluster, operator) = with_roles().await;
    register(&operator).unwrap();
    grant(&cluster, &operator).await;
    let bench = Bench::with(cluster, operator).await;
    bench.deploy_with("web", &["own"]).await;
    bench.change("own", "blue").await;
    assert_eq!(bench.writes(), 2, "it is managed, and restarts");
    assert_nothing_was_forbidden(&bench.cluster);
}

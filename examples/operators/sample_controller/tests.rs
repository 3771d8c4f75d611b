//! The sample-controller, in requests.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use lariat::cluster::faults::{Action, After, Refusal, Rule, StatusCode};
use lariat::cluster::testing::{TestCluster, deployment, wait_for, wait_until_gone};
use lariat::cluster::{Cluster, RecordedRequest, Workloads};
use lariat::kube::ResourceExt;
use lariat::kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lariat::{Operator, SharedControllerFactory};
use serde_json::json;
use tokio::time::sleep;

use super::{Foo, FooSpec, register};
use crate::roles::{assert_nothing_was_forbidden, grant, with_roles};
use crate::{define, delete, merge};

struct Bench {
    cluster: TestCluster,
    operator: Operator,
    foos: Api<Foo>,
    deployments: Api<Deployment>,
}

impl Bench {
    /// Starts the operator on a cluster on which pods run.
    async fn new() -> Self {
        let builder = Cluster::builder().simulate_workloads(Workloads::default());
        let cluster = builder.for_test().await;
        let client = cluster.client();
        define::<Foo>(&client).await;
        let factory = SharedControllerFactory::builder(client.clone()).build();
        let operator = Operator::new("sample-controller", &factory);
        register(&operator).expect("registered");
        Self::with(cluster, operator).await
    }

    async fn with(cluster: TestCluster, operator: Operator) -> Self {
        let client = cluster.client();
        operator.start(2).await.expect("started");
        Self {
            operator,
            foos: Api::default_namespaced(client.clone()),
            deployments: Api::default_namespaced(client),
            cluster,
        }
    }

    async fn create(&self, name: &str, deployment: &str, replicas: Option<i32>) {
        let spec = FooSpec {
            deployment_name: deployment.to_owned(),
            replicas,
        };
        let foo = Foo::new(name, spec);
        let created = self.foos.create(&PostParams::default(), &foo).await;
        created.expect("created");
    }

    /// Waits until a Foo reports this many available pods.
    async fn available(&self, name: &str, replicas: i32) {
        let reports = |foo: &Foo| {
            foo.status
                .as_ref()
                .is_some_and(|status| status.available_replicas == replicas)
        };
        wait_for(&self.foos, name, reports)
            .await
            .expect("available");
    }

    async fn replicas(&self, name: &str) -> Option<i32> {
        let found = self.deployments.get_opt(name).await.expect("read");
        found?.spec?.replicas
    }

    /// Returns the Events about a Foo, as reasons and notes.
    async fn events(&self) -> Vec<(String, String)> {
        settle().await;
        let events: Api<Event> = Api::default_namespaced(self.cluster.client());
        let events = events.list(&ListParams::default()).await.expect("listed");
        let ours = events
            .items
            .into_iter()
            .filter(|event| event.involved_object.kind.as_deref() == Some("Foo"));
        ours.map(|event| {
            (
                event.reason.unwrap_or_default(),
                event.message.unwrap_or_default(),
            )
        })
        .collect()
    }

    /// Returns the number of writes so far, of all clients.
    fn writes(&self) -> usize {
        let journal = self.cluster.journal();
        let requests = journal.requests();
        let is_write = |verb: &str| !matches!(verb, "get" | "list" | "watch");
        let ours = ["foos", "deployments", "events"];
        requests
            .iter()
            .filter(|request| is_write(&request.verb))
            .filter(|request| ours.contains(&request.resource.as_str()))
            .count()
    }
}

/// Waits until nothing is due any more.
async fn settle() {
    sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_foo_gets_its_deployment_and_reports_available_pods() {
    let bench = Bench::new().await;
    bench.create("shop", "web", Some(2)).await;
    bench.available("shop", 2).await;
    let web = bench.deployments.get("web").await.unwrap();
    let foo = bench.foos.get("shop").await.unwrap();
    let owner = &web.owner_references()[0];
    assert_eq!(
        (&*owner.kind, Some(&owner.uid), owner.controller),
        ("Foo", foo.uid().as_ref(), Some(true))
    );
    let synced = ("Synced".to_owned(), "Foo synced successfully".to_owned());
    assert_eq!(bench.events().await, [synced]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_nothing_has_to_change() {
    let bench = Bench::new().await;
    bench.create("shop", "web", Some(2)).await;
    bench.available("shop", 2).await;
    settle().await;
    let before = bench.writes();
    merge(
        &bench.foos,
        "shop",
        json!({"metadata": {"labels": {"some": "label"}}}),
    )
    .await
    .unwrap();
    bench.cluster.cut_watches();
    bench.operator.stop().await.unwrap();
    bench.operator.start(2).await.unwrap();
    settle().await;
    // The original writes the status, and an Event, in each call.
    assert_eq!(bench.writes() - before, 1, "the label");
}

#[tokio::test(start_paused = true)]
async fn a_foo_that_is_scaled_up_scales_its_deployment() {
    let bench = Bench::new().await;
    bench.create("shop", "web", Some(1)).await;
    bench.available("shop", 1).await;
    merge(&bench.foos, "shop", json!({"spec": {"replicas": 3}}))
        .await
        .unwrap();
    bench.available("shop", 3).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_done_to_the_deployment_is_repaired() {
    let bench = Bench::new().await;
    bench.create("shop", "web", Some(2)).await;
    bench.available("shop", 2).await;
    merge(&bench.deployments, "web", json!({"spec": {"replicas": 7}}))
        .await
        .unwrap();
    settle().await;
    assert_eq!(bench.replicas("web").await, Some(2));
    // The original compares the replicas only.
    let containers = json!([{"name": "main", "image": "other"}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    merge(&bench.deployments, "web", patch).await.unwrap();
    settle().await;
    let web = bench.deployments.get("web").await.unwrap();
    let pod = web.spec.unwrap().template.spec.unwrap();
    assert_eq!(
        pod.containers[0].image.as_deref(),
        Some("registry.k8s.io/pause:3.10")
    );
    delete(&bench.deployments, "web").await.unwrap();
    settle().await;
    assert_eq!(bench.replicas("web").await, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_foo_without_replicas_leaves_them_alone() {
    let bench = Bench::new().await;
    bench.create("shop", "web", None).await;
    bench.available("shop", 1).await;
    merge(&bench.deployments, "web", json!({"spec": {"replicas": 4}}))
        .await
        .unwrap();
    bench.available("shop", 4).await;
}

#[tokio::test(start_paused = true)]
async fn a_foreign_deployment_is_left_alone_until_it_is_deleted() {
    let bench = Bench::new().await;
    let other = deployment("web", 1)
        .create(&bench.cluster.client())
        .await
        .unwrap();
    bench.create("shop", "web", Some(3)).await;
    sleep(Duration::from_secs(600)).await;
    let web = bench.deployments.get("web").await.unwrap();
    assert_eq!(web.uid(), other.uid());
    assert!(web.owner_references().is_empty());
    assert_eq!(bench.replicas("web").await, Some(1));
    let reason = "ErrResourceExists".to_owned();
    let note = r#"Resource "web" already exists and is not managed by Foo"#.to_owned();
    assert_eq!(bench.events().await, [(reason, note)]);
    delete(&bench.deployments, "web").await.unwrap();
    settle().await;
    bench.available("shop", 3).await;
}

#[tokio::test(start_paused = true)]
async fn of_two_foos_with_one_deployment_name_the_first_gets_it() {
    let bench = Bench::new().await;
    bench.create("first", "web", Some(1)).await;
    bench.available("first", 1).await;
    bench.create("second", "web", Some(2)).await;
    settle().await;
    assert_eq!(bench.replicas("web").await, Some(1));
    delete(&bench.foos, "first").await.unwrap();
    bench.available("second", 2).await;
}

#[tokio::test(start_paused = true)]
async fn the_deployment_is_deleted_with_its_foo() {
    let bench = Bench::new().await;
    bench.create("shop", "web", Some(2)).await;
    bench.available("shop", 2).await;
    let foreground = DeleteParams::foreground();
    bench.foos.delete("shop", &foreground).await.unwrap();
    wait_until_gone(&bench.deployments, "web").await.unwrap();
    settle().await;
    assert_eq!(
        bench.replicas("web").await,
        None,
        "nothing creates it again"
    );
    assert_eq!(bench.foos.get_opt("shop").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_with_a_former_name_is_deleted() {
    let bench = Bench::new().await;
    bench.create("shop", "web", Some(2)).await;
    bench.available("shop", 2).await;
    merge(
        &bench.foos,
        "shop",
        json!({"spec": {"deploymentName": "api"}}),
    )
    .await
    .unwrap();
    wait_until_gone(&bench.deployments, "web").await.unwrap();
    bench.available("shop", 2).await;
    assert_eq!(bench.replicas("api").await, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_server_in_trouble_and_a_watch_that_is_silent_change_nothing_in_the_end() {
    for action in [
        Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR)),
        Action::Refuse(Refusal::too_many_requests()),
        Action::LoseReply,
        Action::Disconnect,
        Action::Conflict,
    ] {
        let bench = Bench::new().await;
        let trouble = Rule::new(action.clone()).times(3);
        let is_write =
            |request: &RecordedRequest| !matches!(&*request.verb, "get" | "list" | "watch");
        bench.cluster.faults().add(trouble.when(is_write));
        let silent = Rule::new(Action::HangWatch(After::Events(0)));
        bench
            .cluster
            .faults()
            .add(silent.resource("deployments").times(1));
        // Whatever happens to this request, the Foo exists in the end.
        while bench.foos.get_opt("shop").await.unwrap().is_none() {
            let foo = Foo::new(
                "shop",
                FooSpec {
                    deployment_name: "web".into(),
                    replicas: Some(2),
                },
            );
            drop(bench.foos.create(&PostParams::default(), &foo).await);
        }
        bench.available("shop", 2).await;
        assert_eq!(
            bench.cluster.journal().count("delete", "deployments"),
            0,
            "{action:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn its_cluster_role_is_sufficient() {
    let (cluster, operator) = with_roles().await;
    define::<Foo>(&cluster.client()).await;
    register(&operator).unwrap();
    grant(&cluster, &operator).await;
    let bench = Bench::with(cluster, operator).await;
    let taken = deployment("taken", 0);
    taken.create(&bench.cluster.client()).await.unwrap();
    bench.create("shop", "web", Some(1)).await;
    settle().await;
    let status = json!({"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
    let (params, status) = (PatchParams::default(), Patch::Merge(status));
    let reported = bench.deployments.patch_status("web", &params, &status);
    reported.await.unwrap();
    bench.available("shop", 1).await;
    for name in ["taken", "api"] {
        let renamed = json!({"spec": {"deploymentName": name, "replicas": 2}});
        merge(&bench.foos, "shop", renamed).await.unwrap();
        settle().await;
    }
    assert_eq!(bench.replicas("api").await, Some(2));
    assert_eq!(bench.replicas("web").await, None);
    let reasons: Vec<String> = bench
        .events()
        .await
        .into_iter()
        .map(|(reason, _)| reason)
        .collect();
    assert!(
        reasons.contains(&"ErrResourceExists".to_owned()),
        "{reasons:?}"
    );
    assert_nothing_was_forbidden(&bench.cluster);
}

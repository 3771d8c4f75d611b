//! From the creation of a Website to its deletion.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use lariat::Operator;
use lariat::cluster::faults::{Action, After, Refusal, Rule, StatusCode};
use lariat::cluster::testing::{wait_for, wait_until_gone};
use lariat::cluster::{Cluster, RecordedRequest, Workloads};
use lariat::kube::ResourceExt;
use lariat::kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::super::{FINALIZER, register};
use super::bench::{Bench, condition, operator, serve, site, site_with_secret};
use crate::roles::{assert_nothing_was_forbidden, grant, with_roles};
use crate::{delete, merge};

#[tokio::test(flavor = "multi_thread")]
async fn a_website_gets_pages_pods_and_an_address_in_this_order() {
    let bench = Bench::new().await;
    bench.cluster.journal().clear();
    bench.create(&site("shop")).await;
    let shop = bench.ready("shop").await;
    let status = shop.status.as_ref().unwrap();
    assert_eq!(status.ready_replicas, 1);
    assert_eq!(status.url.as_deref(), Some("http://shop.default.demo.dev"));
    assert_eq!(shop.finalizers(), [FINALIZER]);
    bench.event("Ready").await;
    let pages = bench.api::<ConfigMap>().get("shop").await.unwrap();
    assert_eq!(pages.owner_references()[0].uid, shop.uid().unwrap());
    assert_eq!(pages.data.unwrap(), shop.spec.pages);
    let address = bench.api::<Service>().get("shop").await.unwrap();
    let deployment = bench.api::<Deployment>().get("shop").await.unwrap();
    let pods = deployment.spec.unwrap().selector.match_labels;
    assert_eq!(address.spec.unwrap().selector, pods);
    assert_eq!(
        written(&bench, "patch"),
        ["configmaps", "deployments", "services"]
    );
}

/// Returns the kinds of the objects `shop` that the operator wrote with a verb, in the order of the first write.
fn written(bench: &Bench, verb: &str) -> Vec<String> {
    let of_it = ["configmaps", "deployments", "services"];
    let mut kinds: Vec<String> = Vec::new();
    for request in bench.cluster.journal().requests() {
        let is_it = request.verb == verb && request.name.as_deref() == Some("shop");
        let kind = &*request.resource;
        if is_it
            && request.subresource.is_none()
            && of_it.contains(&kind)
            && !kinds.iter().any(|each| each == kind)
        {
            kinds.push(kind.to_owned());
        }
    }
    kinds
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_wait_for_their_secret_and_are_replaced_when_it_changes() {
    let bench = Bench::new().await;
    bench.create(&site_with_secret("shop", "environment")).await;
    let shop = bench.unready("shop", "SecretMissing").await;
    assert_eq!(
        condition(&shop).unwrap().message,
        "there is no Secret environment"
    );
    bench.event("SecretMissing").await;
    assert_eq!(bench.objects("shop").await, [true, false, false]);
    bench.create_secret("environment", "hello").await;
    bench.ready("shop").await;
    let first = bench.next_checksum("shop", None).await;
    let secrets = bench.api::<Secret>();
    merge(
        &secrets,
        "environment",
        json!({"stringData": {"GREETING": "hi"}}),
    )
    .await
    .unwrap();
    let second = bench.next_checksum("shop", Some(&first)).await;
    merge(
        &secrets,
        "environment",
        json!({"stringData": {"GREETING": "hello"}}),
    )
    .await
    .unwrap();
    let third = bench.next_checksum("shop", Some(&second)).await;
    assert_eq!(third, first, "the content counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_served_stays_while_the_secret_is_missing() {
    let bench = Bench::new().await;
    bench.create_secret("environment", "hello").await;
    bench.create(&site_with_secret("shop", "environment")).await;
    bench.ready("shop").await;
    let checksum = bench.next_checksum("shop", None).await;
    let before = bench.api::<Deployment>().get("shop").await.unwrap();
    delete(&bench.api::<Secret>(), "environment").await.unwrap();
    bench.unready("shop", "SecretMissing").await;
    assert_eq!(bench.objects("shop").await, [true; 3]);
    bench.create_secret("environment", "hello").await;
    bench.ready("shop").await;
    assert_eq!(bench.next_checksum("shop", None).await, checksum);
    let after = bench.api::<Deployment>().get("shop").await.unwrap();
    assert_eq!(
        after.metadata.generation, before.metadata.generation,
        "no pod was replaced"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_do_to_the_objects_is_undone() {
    let bench = Bench::new().await;
    bench.create(&site("shop")).await;
    bench.ready("shop").await;
    let deployments = bench.api::<Deployment>();
    merge(&deployments, "shop", json!({"spec": {"replicas": 5}}))
        .await
        .unwrap();
    let replicas =
        |deployment: &Deployment| deployment.spec.as_ref().and_then(|spec| spec.replicas);
    wait_for(&deployments, "shop", |found| replicas(found) == Some(1))
        .await
        .unwrap();
    delete(&bench.api::<Service>(), "shop").await.unwrap();
    wait_for(&bench.api::<Service>(), "shop", |_| true)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_website_is_deleted_from_its_address_to_its_pages() {
    let bench = Bench::new().await;
    bench.create(&site("shop")).await;
    bench.ready("shop").await;
    bench
        .sites
        .delete("shop", &DeleteParams::default())
        .await
        .unwrap();
    wait_until_gone(&bench.sites, "shop").await.unwrap();
    assert_eq!(
        bench.objects("shop").await,
        [false; 3],
        "before the finalizer is removed"
    );
    assert_eq!(
        written(&bench, "delete"),
        ["services", "deployments", "configmaps"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_in_trouble_and_a_watch_that_is_silent_change_nothing_in_the_end() {
    for action in [
        Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR)),
        Action::LoseReply,
        Action::Disconnect,
        Action::Conflict,
    ] {
        let bench = Bench::new().await;
        let is_ours = |request: &RecordedRequest| {
            let ours = ["configmaps", "deployments", "services", "websites"];
            !matches!(&*request.verb, "get" | "list" | "watch" | "create")
                && ours.contains(&&*request.resource)
        };
        bench
            .cluster
            .faults()
            .add(Rule::new(action.clone()).times(3).when(is_ours));
        let silent = Rule::new(Action::HangWatch(After::Events(0)));
        bench
            .cluster
            .faults()
            .add(silent.resource("deployments").times(1));
        bench.create(&site("shop")).await;
        bench.ready("shop").await;
        bench
            .sites
            .delete("shop", &DeleteParams::default())
            .await
            .unwrap();
        wait_until_gone(&bench.sites, "shop").await.unwrap();
        assert_eq!(bench.objects("shop").await, [false; 3], "{action:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stands_by_answers_webhooks_and_takes_over() {
    let builder = Cluster::builder().simulate_workloads(Workloads::default());
    let cluster = builder.for_test().await;
    let first = operator(cluster.client(), Some("first"));
    let second = operator(cluster.client(), Some("second"));
    let bench = Bench::with(cluster, first).await;
    let leads = |operator: &Operator| operator.factory().leadership().unwrap();
    assert!(leads(&bench.operator).acquired().await);
    register(&second).unwrap();
    let (standing_by, _) = serve(&second).await;
    second.start(2).await.unwrap();
    bench.create(&site("shop")).await;
    bench.ready("shop").await;
    // The configurations lead to the replica that has applied them last.
    bench.server.shutdown().await;
    bench.create(&site("other")).await;
    bench.ready("other").await;
    bench.operator.stop().await.unwrap();
    assert!(leads(&second).acquired().await);
    bench.create(&site("third")).await;
    bench.ready("third").await;
    second.stop().await.unwrap();
    standing_by.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_cluster_role_is_sufficient() {
    let (cluster, operator) = with_roles().await;
    let bench = Bench::granted(cluster, operator, grant).await;
    bench.create(&site_with_secret("shop", "environment")).await;
    bench.unready("shop", "SecretMissing").await;
    bench.create_secret("environment", "hello").await;
    bench.next_checksum("shop", None).await;
    // No pods run here.
    let status = json!({"status": {
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": [{"type": "Available", "status": "True"}],
    }});
    let (params, status) = (PatchParams::default(), Patch::Merge(status));
    let deployments = bench.api::<Deployment>();
    deployments
        .patch_status("shop", &params, &status)
        .await
        .unwrap();
    bench.ready("shop").await;
    bench.event("Ready").await;
    bench
        .sites
        .delete("shop", &DeleteParams::default())
        .await
        .unwrap();
    wait_until_gone(&bench.sites, "shop").await.unwrap();
    assert_nothing_was_forbidden(&bench.cluster);
}

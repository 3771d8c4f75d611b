//! Tests of subresources, collections and metadata, which the cache shows at once.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Binding, ConfigMap, Pod, ServiceAccount};
use kube::api::{
    Api, DeleteParams, EvictParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams,
};
use lariat_cache::{KindOptions, Query};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_cluster::testing::{config_map, deployment, node, pod};
use lariat_controller::Outcome;
use lariat_operator::{CachedApi, Reconcile};
use serde_json::json;

use crate::bench::{Bench, SECOND, Widget, hang_watches, key, settle};
use crate::planning::{lines, plan};

/// Starts, and lets the watch of a kind fall silent once its cache has what exists.
async fn start_silently(bench: &Bench, plural: &str) {
    hang_watches(bench, plural);
    bench.start().await;
    tokio::time::sleep(2 * SECOND).await;
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

#[tokio::test(start_paused = true)]
async fn a_scaled_object_is_read_back_with_its_replicas() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<Deployment>();
    deployment("web", 1)
        .create(&bench.cluster.client())
        .await
        .unwrap();
    start_silently(&bench, "deployments").await;
    let web = key("web");
    let three = Patch::Merge(json!({"spec": {"replicas": 3}}));
    let scale = api
        .patch_scale(&web, &PatchParams::default(), &three)
        .await
        .unwrap();
    assert_eq!(scale.spec.as_ref().unwrap().replicas, Some(3));
    assert_eq!(replicas(&api.get(&web).await.unwrap()), Some(3));
    let mut scale = api.get_scale(&web).await.unwrap();
    scale.spec.as_mut().unwrap().replicas = Some(5);
    api.replace_scale(&web, &PostParams::default(), &scale)
        .await
        .unwrap();
    assert_eq!(replicas(&api.get(&web).await.unwrap()), Some(5));
    let error = api
        .replace_scale(&web, &PostParams::default(), &scale)
        .await
        .unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    let gone = api
        .patch_scale(&key("none"), &PatchParams::default(), &three)
        .await;
    assert!(gone.unwrap_err().is_not_found());
}

#[tokio::test(start_paused = true)]
async fn a_scale_that_the_watch_has_shown_takes_no_read() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<Deployment>();
    deployment("web", 1)
        .create(&bench.cluster.client())
        .await
        .unwrap();
    bench.start().await;
    settle().await;
    let slow = Rule::new(Action::DelayReply(SECOND))
        .resource("deployments")
        .verb("patch");
    bench.cluster.faults().add(slow);
    let three = Patch::Merge(json!({"spec": {"replicas": 3}}));
    api.patch_scale(&key("web"), &PatchParams::default(), &three)
        .await
        .unwrap();
    assert_eq!(replicas(&api.get(&key("web")).await.unwrap()), Some(3));
    assert_eq!(bench.cluster.journal().count("get", "deployments"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_evicted_pod_is_gone_or_going_at_once() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<Pod>();
    for name in ["one", "two"] {
        pod(name).create(&bench.cluster.client()).await.unwrap();
    }
    start_silently(&bench, "pods").await;
    // The options must arrive: kube writes them under a name that the API server ignores.
    let now = EvictParams {
        delete_options: Some(DeleteParams::default().grace_period(0)),
        ..EvictParams::default()
    };
    api.evict(&key("one"), &now).await.unwrap();
    assert!(api.get_opt(&key("one")).await.unwrap().is_none());
    let other = EvictParams {
        delete_options: Some(
            DeleteParams::default().preconditions(kube::api::Preconditions {
                uid: Some("other".to_owned()),
                resource_version: None,
            }),
        ),
        ..EvictParams::default()
    };
    assert!(
        api.evict(&key("two"), &other)
            .await
            .unwrap_err()
            .is_conflict()
    );
    assert!(api.get_opt(&key("two")).await.unwrap().is_some());
    assert!(
        api.evict(&key("three"), &now)
            .await
            .unwrap_err()
            .is_not_found()
    );
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_has_its_node_at_once() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<Pod>();
    node("n1").create(&bench.cluster.client()).await.unwrap();
    pod("web").create(&bench.cluster.client()).await.unwrap();
    start_silently(&bench, "pods").await;
    let binding: Binding = serde_json::from_value(json!({
        "metadata": {}, "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}}))
    .unwrap();
    api.bind(&key("web"), &PostParams::default(), &binding)
        .await
        .unwrap();
    let web = api.get(&key("web")).await.unwrap();
    assert_eq!(web.spec.as_ref().unwrap().node_name.as_deref(), Some("n1"));
    let again = api
        .bind(&key("web"), &PostParams::default(), &binding)
        .await;
    assert!(again.unwrap_err().is_conflict());
}

#[tokio::test(start_paused = true)]
async fn debug_containers_and_resources_of_a_pod_are_seen_at_once() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<Pod>();
    let requests = json!({"requests": {"cpu": "10m"}});
    let web = pod("web").set("/spec/containers/0/resources", requests);
    web.create(&bench.cluster.client()).await.unwrap();
    start_silently(&bench, "pods").await;
    let (web, params) = (key("web"), PatchParams::default());
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}});
    api.patch_ephemeral_containers(&web, &params, &Patch::Strategic(debug))
        .await
        .unwrap();
    let seen = api.get(&web).await.unwrap();
    assert_eq!(
        seen.spec
            .as_ref()
            .unwrap()
            .ephemeral_containers
            .as_ref()
            .unwrap()
            .len(),
        1
    );
    let mut more = Pod::clone(&*seen);
    let containers = &mut more.spec.as_mut().unwrap().ephemeral_containers;
    let mut second = containers.as_ref().unwrap()[0].clone();
    second.name = "second".to_owned();
    containers.as_mut().unwrap().push(second);
    api.replace_ephemeral_containers(&PostParams::default(), &more)
        .await
        .unwrap();
    let seen = api.get(&web).await.unwrap();
    assert_eq!(
        seen.spec
            .as_ref()
            .unwrap()
            .ephemeral_containers
            .as_ref()
            .unwrap()
            .len(),
        2
    );
    let name = seen.spec.as_ref().unwrap().containers[0].name.clone();
    let cpu = json!({"spec": {"containers": [{"name": name, "resources": {"requests": {"cpu": "50m"}}}]}});
    let patch = Patch::Strategic(cpu);
    let resized = api.patch_resize(&web, &params, &patch).await.unwrap();
    let cpu = |pod: &Pod| {
        let resources = pod.spec.as_ref()?.containers[0].resources.clone()?;
        Some(resources.requests?["cpu"].0.clone())
    };
    assert_eq!(cpu(&resized).as_deref(), Some("50m"));
    assert_eq!(cpu(&api.get(&web).await.unwrap()).as_deref(), Some("50m"));
}

#[tokio::test(start_paused = true)]
async fn a_token_is_issued_for_an_account() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<ServiceAccount>();
    bench.start().await;
    let account = ServiceAccount {
        metadata: ObjectMeta {
            name: Some("robot".to_owned()),
            namespace: Some("default".to_owned()),
            ..ObjectMeta::default()
        },
        ..ServiceAccount::default()
    };
    api.create(&account).await.unwrap();
    let request: TokenRequest =
        serde_json::from_value(json!({"metadata": {}, "spec": {"audiences": ["shop"]}})).unwrap();
    let params = PostParams::default();
    let answer = api
        .create_token_request(&key("robot"), &params, &request)
        .await
        .unwrap();
    assert!(
        answer
            .status
            .unwrap()
            .token
            .is_some_and(|token| !token.is_empty())
    );
    let none = api
        .create_token_request(&key("none"), &params, &request)
        .await;
    assert!(none.unwrap_err().is_not_found());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_collection_is_gone_at_once_and_what_is_held_is_going() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<ConfigMap>();
    let client = bench.cluster.client();
    for name in ["one", "two"] {
        config_map(name, &[])
            .label("app", "web")
            .create(&client)
            .await
            .unwrap();
    }
    let held = config_map("held", &[])
        .label("app", "web")
        .finalizer("demo.dev/hold");
    held.create(&client).await.unwrap();
    config_map("other", &[]).create(&client).await.unwrap();
    start_silently(&bench, "configmaps").await;
    let web = ListParams::default().labels("app=web");
    let (now, dry) = (DeleteParams::default(), DeleteParams::default().dry_run());
    let would = api
        .delete_collection(Some("default"), &dry, &web)
        .await
        .unwrap();
    assert_eq!(would, 3);
    assert_eq!(api.list(&Query::all()).await.unwrap().len(), 4);
    let deleted = api
        .delete_collection(Some("default"), &now, &web)
        .await
        .unwrap();
    assert_eq!(deleted, 3);
    let left = api.list(&Query::all()).await.unwrap();
    let names: Vec<_> = left
        .iter()
        .filter_map(|each| each.metadata.name.clone())
        .collect();
    assert_eq!(names, ["held", "other"]);
    assert!(left[0].metadata.deletion_timestamp.is_some());
    // One that is created again under the name is shown.
    config_map("one", &[])
        .label("app", "web")
        .create(&client)
        .await
        .unwrap();
    api.create_or_update(&config_map("one", &[]).to::<ConfigMap>(), |config| {
        config
            .data
            .get_or_insert_default()
            .insert("x".to_owned(), "1".to_owned());
        Ok(())
    })
    .await
    .unwrap();
    assert!(api.get_opt(&key("one")).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_read_after_a_write_that_fails_is_no_failure_of_the_write() {
    let bench = Bench::new().await;
    let (pods, configs) = (
        bench.operator.api::<Pod>(),
        bench.operator.api::<ConfigMap>(),
    );
    let client = bench.cluster.client();
    pod("web").create(&client).await.unwrap();
    config_map("one", &[]).create(&client).await.unwrap();
    bench.start().await;
    settle().await;
    for verb in ["get", "list"] {
        let refused = Action::Refuse(Refusal::new(StatusCode::FORBIDDEN));
        bench.cluster.faults().add(Rule::new(refused).verb(verb));
    }
    let now = EvictParams {
        delete_options: Some(DeleteParams::default().grace_period(0)),
        ..EvictParams::default()
    };
    pods.evict(&key("web"), &now).await.unwrap();
    let all = (DeleteParams::default(), ListParams::default());
    let deleted = configs
        .delete_collection(Some("default"), &all.0, &all.1)
        .await;
    assert_eq!(deleted.unwrap(), 1);
    // The watch shows it.
    settle().await;
    assert!(pods.get_opt(&key("web")).await.unwrap().is_none());
    assert!(configs.list(&Query::all()).await.unwrap().is_empty());
    bench.cluster.faults().clear();
    let refused = Rule::new(Action::Refuse(Refusal::new(StatusCode::FORBIDDEN)));
    bench.cluster.faults().add(refused.verb("deletecollection"));
    let error = configs
        .delete_collection(Some("default"), &all.0, &all.1)
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cannot deletecollection v1 ConfigMap default/*"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn patched_metadata_is_seen_at_once_whether_content_is_cached_or_not() {
    for storage in [
        lariat_cache::Storage::default(),
        lariat_cache::Storage::OnDemand,
    ] {
        let bench = Bench::new()
            .await
            .caching(KindOptions::default().storage(storage));
        let api = bench.operator.api::<Widget>();
        bench.create("a", 7).await;
        start_silently(&bench, "widgets").await;
        let label = Patch::Merge(json!({"metadata": {"labels": {"x": "1"}}}));
        let meta = api
            .patch_metadata(&key("a"), &PatchParams::default(), &label)
            .await
            .unwrap();
        assert_eq!(meta.metadata.labels.unwrap()["x"], "1");
        let labelled = Query::all().labels("x=1".parse().unwrap());
        assert_eq!(api.cache().count(&labelled), 1);
        assert_eq!(api.get(&key("a")).await.unwrap().spec.size, 7);
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_plan_nothing_is_scaled_evicted_or_deleted() {
    let bench = Bench::new().await;
    let client = bench.cluster.client();
    deployment("web", 1).create(&client).await.unwrap();
    pod("web").create(&client).await.unwrap();
    config_map("one", &[]).create(&client).await.unwrap();
    bench.create("a", 1).await;
    let deployments = CachedApi::new(&bench.factory.for_object::<Deployment>());
    let pods = CachedApi::new(&bench.factory.for_object::<Pod>());
    let configs = CachedApi::new(&bench.factory.for_object::<ConfigMap>());
    let operator = plan(&bench, move |_: Reconcile<Widget>| {
        let (deployments, pods, configs) = (deployments.clone(), pods.clone(), configs.clone());
        async move {
            let three = Patch::Merge(json!({"spec": {"replicas": 3}}));
            deployments
                .patch_scale(&key("web"), &PatchParams::default(), &three)
                .await?;
            pods.evict(&key("web"), &EvictParams::default()).await?;
            let all = (DeleteParams::default(), ListParams::default());
            configs
                .delete_collection(Some("default"), &all.0, &all.1)
                .await?;
            assert!(
                pods.get(&key("web"))
                    .await?
                    .metadata
                    .deletion_timestamp
                    .is_none()
            );
            assert_eq!(configs.list(&Query::all()).await?.len(), 1);
            Ok(Outcome::done())
        }
    });
    bench.start().await;
    settle().await;
    let planned = lines(&operator.planned());
    for text in [
        "(scale)",
        "(eviction)",
        "would deletecollection v1 ConfigMap",
    ] {
        assert!(
            planned.iter().any(|line| line.contains(text)),
            "{text}: {planned:?}"
        );
    }
    let deployments: Api<Deployment> = Api::default_namespaced(client);
    assert_eq!(replicas(&deployments.get("web").await.unwrap()), Some(1));
}

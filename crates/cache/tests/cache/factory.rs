//! One informer per kind, however it is asked for.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use lariat_cache::{MissingKind, Phase, SharedCacheFactory};
use lariat_core::{Gvk, ResourceKind, Scope};
use serde_json::json;
use tokio::time::{self, Instant};

use crate::bench::{MINUTE, cluster, eventually, factory};

#[test]
fn a_hundred_threads_get_one_informer_and_the_server_sees_one_of_each_request() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let cluster = cluster().await;
        let factory = factory(cluster.client());
        factory.start();
        let handle = tokio::runtime::Handle::current();
        let threads: Vec<_> = (0..100)
            .map(|number| {
                let (factory, handle) = (factory.clone(), handle.clone());
                std::thread::spawn(move || {
                    // A kind that is asked for while the factory runs starts its task right there.
                    let _runtime = handle.enter();
                    match number % 3 {
                        0 => factory.for_kind(Gvk::new("", "v1", "Pod")),
                        1 => factory.for_kind(GroupVersionKind::gvk("", "v1", "Pod")),
                        _ => {
                            let gvk = Gvk::new("", "v1", "Pod");
                            let pods = ResourceKind::new(gvk, "pods", Scope::Namespaced);
                            factory.for_resource_kind(&pods)
                        }
                    }
                })
            })
            .collect();
        let informers: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        assert!(
            informers
                .iter()
                .all(|informer| informer.is_same(&informers[0]))
        );
        let clients: Vec<_> = informers.iter().map(|informer| informer.client()).collect();
        assert!(clients.iter().all(|client| Arc::ptr_eq(client, clients[0])));
        factory.wait_for_sync(MINUTE).await.unwrap();
        eventually(async || cluster.journal().count("watch", "pods"), 1).await;
        assert_eq!(cluster.journal().count("list", "pods"), 0);
        let discovery = cluster
            .journal()
            .requests()
            .iter()
            .filter(|r| r.path == "/api/v1")
            .count();
        assert!(discovery <= 1, "{discovery}");
    });
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_the_start() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let pods = factory.for_kind(Gvk::new("", "v1", "Pod")).cache::<Pod>();
    time::sleep(MINUTE).await;
    assert!(cluster.journal().requests().is_empty());
    assert!(pods.is_empty());
}

fn widgets() -> Gvk {
    Gvk::new("demo.dev", "v1", "Widget")
}

async fn define_widgets(client: kube::Client) {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.demo.dev"},
        "spec": {
            "group": "demo.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let resource = kube::api::ApiResource::from_gvk(&gvk);
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let crd: DynamicObject = serde_json::from_value(crd).expect("it is one");
    api.create(&PostParams::default(), &crd)
        .await
        .expect("created");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_kind_is_refused_immediately_by_name_and_fills_once_its_crd_exists() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(widgets());
    let _pods = factory.for_kind(Gvk::new("", "v1", "Pod"));
    factory.start();
    let start = Instant::now();
    let error = factory.wait_for_sync(MINUTE).await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(
        error.to_string(),
        "1 kind cannot be synced: demo.dev/v1 Widget is not served by the API server; is its \
         CustomResourceDefinition installed and established, and are group, version and kind spelled right? \
         `operator.installs(…)` installs it at the start, and `MissingKind::Wait` waits for it"
    );
    assert_eq!(informer.status().phase, Phase::Missing);

    define_widgets(cluster.client()).await;
    eventually(async || informer.status().phase, Phase::Synced).await;
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn unserved_version_is_refused_with_the_served_one() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let _informer = factory.for_kind(Gvk::new("apps", "v1beta1", "Deployment"));
    factory.start();
    let error = factory.wait_for_sync(MINUTE).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 kind cannot be synced: apps/v1beta1 Deployment is not served by the API server; it is served as apps/v1 \
         Deployment"
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_in_the_wrong_group_or_version_is_refused_with_those_that_are_served() {
    let cluster = cluster().await;
    for (group, version, kind, expected) in [
        ("app", "v1", "Deployment", "apps/v1 Deployment"),
        ("", "v1", "Deployment", "apps/v1 Deployment"),
        ("core", "v1", "ConfigMap", "v1 ConfigMap"),
    ] {
        let factory = factory(cluster.client());
        let asked = Gvk::new(group, version, kind);
        let _informer = factory.for_kind(asked.clone());
        factory.start();
        let error = factory.wait_for_sync(MINUTE).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "1 kind cannot be synced: {asked} is not served by the API server; did you mean {expected}? If not, \
                 its CustomResourceDefinition is not installed"
            )
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_waited_for_is_picked_up_when_it_is_defined() {
    let cluster = cluster().await;
    let factory = SharedCacheFactory::builder(cluster.client())
        .missing_kind(MissingKind::Wait)
        .build();
    let _widgets = factory.for_kind(widgets());
    factory.start();
    let error = factory
        .wait_for_sync(Duration::from_secs(10))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("1 kind not synced after 10s: demo.dev/v1 Widget")
    );
    let (synced, ()) = tokio::join!(factory.wait_for_sync(MINUTE), async {
        time::sleep(Duration::from_secs(5)).await;
        define_widgets(cluster.client()).await;
    });
    synced.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_mapped_to_its_kind() {
    let cluster = cluster().await;
    let clients = lariat_cache::SharedClientFactory::new(cluster.client());
    let deployments = clients
        .mapper()
        .resource("apps", "v1", "deployments")
        .await
        .unwrap();
    assert_eq!(deployments.gvk(), &Gvk::new("apps", "v1", "Deployment"));
    let again = clients
        .mapper()
        .kind(&Gvk::new("apps", "v1", "StatefulSet"))
        .await
        .unwrap();
    assert_eq!(again.plural(), "statefulsets");
    assert_eq!(
        cluster.journal().requests().len(),
        1,
        "one request lists the kinds of the group"
    );
    let error = clients
        .mapper()
        .resource("apps", "v1", "nothings")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "nothings is not served by the API server under /apis/apps/v1"
    );
    assert!(error.is_unknown());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_factory_stops_its_watches() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(Gvk::new("", "v1", "Pod"));
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    drop(factory);
    eventually(async || informer.status().phase, Phase::Idle).await;
}

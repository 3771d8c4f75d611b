//! kube-rs' Controller, finalizers and events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{self, finalizer};
use kube::runtime::{Controller, watcher};
use kube::{Resource, ResourceExt};
use lariat_cluster::Cluster;
use lariat_cluster::testing::{config_map, eventually, pod, wait_for, wait_until_gone};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bench::TIMEOUT;

#[tokio::test(start_paused = true)]
async fn controller_reconciles_owners_of_what_changes() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let reconciled = Arc::new(Mutex::new(Vec::new()));
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let seen = Arc::clone(&reconciled);
    let controller = Controller::new(config_maps, watcher::Config::default())
        .owns(pods.clone(), watcher::Config::default())
        .graceful_shutdown_on(stop.clone().cancelled_owned())
        .run(
            move |object: Arc<ConfigMap>, _| {
                seen.lock().push(object.name_any());
                async { Ok::<_, Infallible>(Action::await_change()) }
            },
            |_, _, _| Action::requeue(Duration::from_secs(1)),
            Arc::new(()),
        );
    tasks.spawn(controller.for_each(|_| async {}));
    tasks.close();
    let owner = config_map("owner", &[]).create(&client).await.unwrap();
    let times = |count| {
        let reconciled = Arc::clone(&reconciled);
        eventually(TIMEOUT, async move || {
            let names = reconciled.lock().clone();
            if names.len() == count {
                Ok(names)
            } else {
                Err(format!("reconciled {names:?}"))
            }
        })
    };
    assert_eq!(times(1).await.unwrap(), ["owner"]);
    pod("web").owned_by(&owner).create(&client).await.unwrap();
    assert_eq!(times(2).await.unwrap(), ["owner", "owner"]);
    stop.cancel();
    tasks.wait().await;
}

#[tokio::test(start_paused = true)]
async fn finalizer_applies_cleans_up_and_lets_go() {
    const FINALIZER: &str = "demo.dev/cleanup";
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let created: ConfigMap = config_map("a", &[]).to();
    let created = config_maps
        .create(&PostParams::default(), &created)
        .await
        .unwrap();
    let events = Mutex::new(Vec::new());
    let reconcile = async |object: ConfigMap| {
        let done = finalizer(&config_maps, FINALIZER, Arc::new(object), |event| {
            events.lock().push(match event {
                finalizer::Event::Apply(_) => "apply",
                finalizer::Event::Cleanup(_) => "cleanup",
            });
            std::future::ready(Ok::<_, Infallible>(Action::await_change()))
        });
        done.await.unwrap();
    };
    reconcile(created).await;
    let held = wait_for(&config_maps, "a", |object| {
        object.finalizers() == [FINALIZER]
    });
    reconcile(held.await.unwrap()).await;
    config_maps
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    let going = wait_for(&config_maps, "a", |object| {
        object.meta().deletion_timestamp.is_some()
    });
    reconcile(going.await.unwrap()).await;
    wait_until_gone(&config_maps, "a").await.unwrap();
    assert_eq!(*events.lock(), ["apply", "cleanup"]);
}

#[tokio::test(start_paused = true)]
async fn recorder_counts_the_same_event() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let recorder = Recorder::new(client.clone(), Reporter::from("tests"));
    let about = ObjectReference {
        kind: Some("Pod".to_owned()),
        name: Some("web".to_owned()),
        namespace: Some("default".to_owned()),
        uid: Some("1".to_owned()),
        ..ObjectReference::default()
    };
    let event = Event {
        type_: EventType::Warning,
        reason: "Tested".to_owned(),
        note: Some("all is well".to_owned()),
        action: "Test".to_owned(),
        secondary: None,
    };
    recorder.publish(&event, &about).await.unwrap();
    recorder.publish(&event, &about).await.unwrap();
    let events: Api<k8s_openapi::api::events::v1::Event> = Api::default_namespaced(client.clone());
    let events = events
        .list(&kube::api::ListParams::default())
        .await
        .unwrap();
    let [event] = &events.items[..] else {
        panic!("there are {} events", events.items.len());
    };
    assert_eq!(event.reason.as_deref(), Some("Tested"));
    assert_eq!(event.series.as_ref().map(|series| series.count), Some(2));
    // The same event is there for readers of the older version, as kubectl is one.
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::default_namespaced(client);
    let events = events
        .list(&kube::api::ListParams::default())
        .await
        .unwrap();
    assert_eq!(events.items.len(), 1);
    assert_eq!(events.items[0].involved_object.name.as_deref(), Some("web"));
}

#[tokio::test]
async fn apply_shares_objects_between_managers() {
    let cluster = Cluster::for_test().await;
    let config_maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let applied = |key: &str, value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {key: value}});
    let (mine, theirs) = (PatchParams::apply("mine"), PatchParams::apply("theirs"));
    let first = Patch::Apply(applied("a", "1"));
    config_maps.patch("a", &mine, &first).await.unwrap();
    let second = Patch::Apply(applied("b", "2"));
    let both = config_maps.patch("a", &theirs, &second).await.unwrap();
    assert_eq!(both.data.unwrap().len(), 2);
    let conflict = Patch::Apply(applied("a", "3"));
    let refused = config_maps
        .patch("a", &theirs, &conflict)
        .await
        .unwrap_err();
    let kube::Error::Api(status) = refused else {
        panic!("{refused} is no answer");
    };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let forced = config_maps
        .patch("a", &theirs.force(), &conflict)
        .await
        .unwrap();
    assert_eq!(forced.data.unwrap()["a"], "3");
    let managers = forced.metadata.managed_fields.unwrap();
    assert_eq!(
        managers.len(),
        1,
        "fields that no manager applies any more are gone"
    );
}

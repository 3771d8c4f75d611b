//! Restores of the API server, relists and own writes around a restart that goes on where the last run ended.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, PostParams};
use lariat_cache::{Informer, SharedCacheFactory};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, After, Rule, RuleId};
use lariat_core::Gvk;
use serde_json::json;
use tokio::time::{self, Duration};

use crate::bench::{MINUTE, Recorder, Writer, cached, client_as, cluster, config_maps, eventually};
use crate::warm::Folder;

fn factory(client: Client, folder: &Folder) -> SharedCacheFactory {
    SharedCacheFactory::builder(client)
        .warm_restart(&folder.0)
        .build()
}

async fn started(cluster: &Cluster, folder: &Folder) -> (SharedCacheFactory, Informer) {
    let factory = factory(client_as(cluster, "lariat"), folder);
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("synced");
    (factory, informer)
}

/// Creates Secrets, so that the versions of the API server go on.
async fn pass(client: &Client, prefix: &str, count: usize) {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    for number in 0..count {
        let name = format!("{prefix}{number}");
        let secret = serde_json::from_value(json!({"metadata": {"name": name}}));
        let secret = secret.expect("it is a Secret");
        let created = secrets.create(&PostParams::default(), &secret).await;
        created.expect("created");
    }
}

/// A run in which the ConfigMaps have found a restore, and Namespaces get no answer, so that they have not.
struct Restored {
    cluster: Cluster,
    factory: SharedCacheFactory,
    namespaces: Informer,
    never: RuleId,
}

impl Restored {
    async fn start(folder: &Folder) -> Self {
        let cluster = cluster().await;
        let writer = Writer::new(cluster.client());
        writer.create("a").await;
        let (factory, informer) = started(&cluster, folder).await;
        let namespaces = factory.for_kind(Gvk::new("", "v1", "Namespace"));
        assert!(namespaces.synced().await);
        let backup = cluster.snapshot();
        for number in 0..10 {
            writer.change("a", &format!("lost {number}")).await;
        }
        time::sleep(Duration::from_secs(1)).await;
        let never = Rule::new(Action::NoAnswer).resource("namespaces");
        let never = cluster.faults().add(never.client("lariat"));
        cluster.rewind_to(&backup).await.expect("restored");
        eventually(async || cached(&informer), writer.truth().await).await;
        Self {
            cluster,
            factory,
            namespaces,
            never,
        }
    }
}

/// Runs the factory once, and stops it.
async fn ran(cluster: &Cluster, folder: &Folder) {
    let (factory, _informer) = started(cluster, folder).await;
    factory.stop().await;
}

/// Nothing repeats an event, and the server is beyond all versions again.
#[tokio::test(start_paused = true)]
async fn restore_between_two_runs_is_noticed_by_a_kind_without_objects() {
    let folder = Folder::new("empty");
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    let backup = cluster.snapshot();
    pass(&cluster.client(), "lost", 30).await;
    let (factory, informer) = started(&cluster, &folder).await;
    assert!(informer.store().is_empty());
    factory.stop().await;
    cluster.rewind_to(&backup).await.expect("restored");
    writer.create("a").await;
    let (_factory, informer) = started(&cluster, &folder).await;
    eventually(async || cached(&informer), writer.truth().await).await;
}

/// One kind finds the restore. The other one, which cannot find it by itself, is not listed before the stop.
#[tokio::test(start_paused = true)]
async fn stop_before_a_kind_is_read_again_after_a_restore_saves_none_of_its_objects() {
    let folder = Folder::new("former");
    let Restored {
        cluster,
        factory,
        never,
        namespaces: _namespaces,
    } = Restored::start(&folder).await;
    factory.stop().await;
    cluster.faults().remove(never);
    assert!(folder.0.join("core.v1.ConfigMap.gz").exists());
    assert!(!folder.0.join("core.v1.Namespace.gz").exists());
}

#[tokio::test(start_paused = true)]
async fn relist_that_is_requested_during_a_warm_start_is_not_lost() {
    let folder = Folder::new("relist");
    let cluster = cluster().await;
    ran(&cluster, &folder).await;
    // The identity of the cluster is asked for before the file is read.
    let slow = Rule::new(Action::Delay(Duration::from_secs(5))).resource("namespaces");
    cluster.faults().add(slow.client("lariat"));
    let factory = factory(client_as(&cluster, "lariat"), &folder);
    let informer = factory.for_kind(config_maps());
    factory.start();
    // Before the first poll of its task.
    assert!(informer.relist());
    time::sleep(MINUTE).await;
    assert_eq!(informer.status().loads, 1);
}

/// The program writes before the kind is looked up.
#[tokio::test(start_paused = true)]
async fn own_write_during_a_warm_start_is_in_the_synced_cache() {
    let folder = Folder::new("written");
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    ran(&cluster, &folder).await;
    let slow = Rule::new(Action::Delay(Duration::from_secs(5))).resource("namespaces");
    cluster.faults().add(slow.client("lariat"));
    let factory = factory(client_as(&cluster, "lariat"), &folder);
    let informer = factory.for_kind(config_maps());
    factory.start();
    time::sleep(Duration::from_secs(1)).await;
    // Nothing else shows the write: the watch hangs after the event that it repeats.
    let hang = Rule::new(Action::HangWatch(After::Events(1))).verb("watch");
    cluster.faults().add(hang.resource("configmaps"));
    Writer::new(factory.clients().client())
        .change("a", "own")
        .await;
    assert!(informer.synced().await);
    assert_eq!(cached(&informer), writer.truth().await);
}

/// The next round lists the kind.
#[tokio::test(start_paused = true)]
async fn kind_that_is_read_again_after_a_restore_is_saved_at_the_stop() {
    let folder = Folder::new("read-again");
    let Restored {
        cluster,
        factory,
        namespaces,
        never,
    } = Restored::start(&folder).await;
    // A round ends while the kind has not been read again.
    namespaces.need::<k8s_openapi::api::core::v1::Namespace>();
    time::sleep(Duration::from_secs(1)).await;
    cluster.faults().remove(never);
    time::sleep(2 * MINUTE).await;
    assert!(namespaces.content_synced().await);
    factory.stop().await;
    assert!(folder.0.join("core.v1.Namespace.gz").exists());
}

#[tokio::test(start_paused = true)]
async fn write_of_another_kind_during_a_warm_start_leads_to_no_list() {
    let folder = Folder::new("other");
    let cluster = cluster().await;
    ran(&cluster, &folder).await;
    let factory = factory(client_as(&cluster, "lariat"), &folder);
    let informer = factory.for_kind(config_maps());
    pass(&factory.clients().client(), "own", 1).await;
    factory.start();
    assert!(informer.synced().await);
    time::sleep(MINUTE).await;
    assert_eq!(informer.status().loads, 0);
}

/// The kind is used for the first time after the write.
#[tokio::test(start_paused = true)]
async fn own_write_to_an_unused_kind_is_cached_after_a_warm_start() {
    let folder = Folder::new("early");
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    ran(&cluster, &folder).await;
    let factory = factory(client_as(&cluster, "lariat"), &folder);
    factory.start();
    let own = Writer::new(factory.clients().client());
    own.change("a", "own").await;
    let hang = Rule::new(Action::HangWatch(After::Events(1))).verb("watch");
    cluster.faults().add(hang.resource("configmaps"));
    let informer = factory.for_kind(config_maps());
    assert!(informer.synced().await);
    assert_eq!(cached(&informer), writer.truth().await);
}

/// The saved version has expired, and the first list did not end before the stop.
#[tokio::test(start_paused = true)]
async fn second_start_of_a_kind_loads_no_warm_file() {
    let folder = Folder::new("again");
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    ran(&cluster, &folder).await;
    writer.change("a", "new").await;
    writer.create("b").await;
    writer.create("c").await;
    cluster.compact();
    let factory = factory(client_as(&cluster, "lariat"), &folder);
    let informer = factory.for_kind(config_maps());
    let recorder = Arc::new(Recorder::default());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    let hang = Rule::new(Action::HangWatch(After::Events(2))).verb("watch");
    let hang = cluster.faults().add(hang.resource("configmaps"));
    factory.start();
    time::sleep(Duration::from_secs(2)).await;
    assert_eq!(cached(&informer).len(), 2, "a part of the list is read");
    factory.stop().await;
    cluster.faults().remove(hang);
    factory.start();
    assert!(informer.synced().await);
    assert_eq!(cached(&informer), writer.truth().await);
    let reported = recorder.reported();
    assert!(
        !reported.iter().any(|change| change.contains("deleted")),
        "{reported:?}"
    );
    assert_eq!(
        reported
            .iter()
            .filter(|change| change.starts_with("a "))
            .count(),
        2,
        "{reported:?}"
    );
}

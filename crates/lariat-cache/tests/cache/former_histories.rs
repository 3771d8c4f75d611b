//! Answers of a history that a restored backup has ended.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use lariat_cache::{Informer, KindOptions, SharedCacheFactory, Storage, Subscription};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, Rule};
use lariat_core::ObjectKey;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time;

use crate::bench::{Recorder, Writer, cached, client_as, cluster, config_maps, eventually};

/// The time by which an answer is late; a restore is found before.
const LATE: Duration = Duration::from_secs(20);

/// A cache of metadata, and a backup of the cluster before its last change.
struct Bench {
    cluster: Cluster,
    writer: Writer,
    informer: Informer,
    recorder: Arc<Recorder>,
    factory: SharedCacheFactory,
    _subscription: Subscription,
}

impl Bench {
    async fn begin() -> Self {
        let cluster = cluster().await;
        let writer = Writer::new(cluster.client());
        for name in ["a", "b"] {
            writer.create(name).await;
        }
        let factory = SharedCacheFactory::builder(client_as(&cluster, "informer"))
            .default_options(KindOptions::default().storage(Storage::OnDemand))
            .build();
        let informer = factory.for_kind(config_maps());
        let recorder = Arc::new(Recorder::default());
        let subscription = informer.subscribe(Arc::clone(&recorder) as _);
        factory.start();
        assert!(informer.synced().await);
        Self {
            cluster,
            writer,
            informer,
            recorder,
            factory,
            _subscription: subscription,
        }
    }

    fn api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.factory.clients().client(), "default")
    }

    /// Sends a request whose answer is late, and undoes what has happened before the answer.
    async fn undoes<T: Send + 'static>(
        &self,
        verb: &str,
        request: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let backup = self.cluster.snapshot();
        // So that the reflector finds the restore: it does not repeat this event.
        self.writer.change("a", "lost").await;
        eventually(async || cached(&self.informer), self.writer.truth().await).await;
        let late = Rule::new(Action::DelayReply(LATE)).resource("configmaps");
        self.cluster
            .faults()
            .add(late.client("informer").verb(verb).times(1));
        let mut requests = JoinSet::new();
        requests.spawn(request);
        time::sleep(LATE / 20).await;
        self.cluster.rewind_to(&backup).await.expect("restored");
        let answer = requests.join_next().await.expect("it was sent");
        answer.expect("it does not panic")
    }

    /// Checks that the cache shows the objects of the server.
    async fn is_current(&self) {
        let truth = self.writer.truth().await;
        assert_eq!(cached(&self.informer), truth);
        assert_eq!(self.recorder.known(), truth);
    }
}

#[tokio::test(start_paused = true)]
async fn fetched_state_is_not_cached_if_a_restore_was_found_meanwhile() {
    let bench = Bench::begin().await;
    let informer = bench.informer.clone();
    let key = ObjectKey::namespaced("default", "a");
    let load = async move { informer.load(&key).await };
    let loaded = bench.undoes("get", load).await.expect("it was fetched");
    let version = loaded.expect("it exists").version().to_string();
    assert_eq!(version, bench.writer.truth().await["a"]);
    bench.is_current().await;
}

#[tokio::test(start_paused = true)]
async fn own_write_is_not_cached_if_a_restore_was_found_meanwhile() {
    let bench = Bench::begin().await;
    let api = bench.api();
    let patch = async move {
        let patch = Patch::Merge(json!({"data": {"value": "own"}}));
        api.patch("b", &PatchParams::default(), &patch).await
    };
    bench.undoes("patch", patch).await.expect("answered");
    bench.is_current().await;
}

#[tokio::test(start_paused = true)]
async fn own_deletion_is_not_applied_if_a_restore_was_found_meanwhile() {
    let bench = Bench::begin().await;
    let api = bench.api();
    let delete = async move { api.delete("b", &DeleteParams::default()).await };
    bench.undoes("delete", delete).await.expect("answered");
    bench.is_current().await;
}

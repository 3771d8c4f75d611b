//! Answers of a history that a restored backup has ended.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use lariat_cache::{KindOptions, SharedCacheFactory, Storage};
use lariat_cluster::faults::{Action, Rule};
use lariat_core::ObjectKey;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time;

use crate::bench::cached;
use crate::restores::Restored;

/// The time by which an answer is late; a restore is found before.
const LATE: Duration = Duration::from_secs(20);

/// Starts a cache that fetches content on demand.
async fn restored() -> Restored {
    let factory = |client| {
        SharedCacheFactory::builder(client)
            .default_options(KindOptions::default().storage(Storage::OnDemand))
            .build()
    };
    Restored::start(factory, |_| {}).await
}

impl Restored {
    fn api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.factory.clients().client(), "default")
    }

    /// Sends a request, restores a backup from before it, and then lets the answer through.
    async fn answered_after_restore<T: Send + 'static>(
        &self,
        verb: &str,
        request: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let backup = self.cluster.snapshot();
        // So that the reflector finds the restore: it does not repeat this event.
        self.writer.change("a", "lost").await;
        self.catches_up().await;
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
    let bench = restored().await;
    let informer = bench.informer.clone();
    let key = ObjectKey::namespaced("default", "a");
    let load = async move { informer.load(&key).await };
    let loaded = bench
        .answered_after_restore("get", load)
        .await
        .expect("it was fetched");
    let version = loaded.expect("it exists").version().to_string();
    assert_eq!(version, bench.writer.truth().await["a"]);
    bench.is_current().await;
}

#[tokio::test(start_paused = true)]
async fn own_write_is_not_cached_if_a_restore_was_found_meanwhile() {
    let bench = restored().await;
    let api = bench.api();
    let patch = async move {
        let patch = Patch::Merge(json!({"data": {"value": "own"}}));
        api.patch("b", &PatchParams::default(), &patch).await
    };
    bench
        .answered_after_restore("patch", patch)
        .await
        .expect("answered");
    bench.is_current().await;
}

#[tokio::test(start_paused = true)]
async fn own_deletion_is_not_applied_if_a_restore_was_found_meanwhile() {
    let bench = restored().await;
    let api = bench.api();
    let delete = async move { api.delete("b", &DeleteParams::default()).await };
    bench
        .answered_after_restore("delete", delete)
        .await
        .expect("answered");
    bench.is_current().await;
}

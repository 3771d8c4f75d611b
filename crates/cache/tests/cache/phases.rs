//! What this process writes is shown whatever the reflector is at.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cache::{
    Cache, Informer, InitialList, KindOptions, Metadata, Phase, Selection, SharedCacheFactory,
    Storage,
};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, After, Refusal, Rule, StatusCode};
use lariat_core::ObjectKey;
use serde_json::json;
use tokio::time;

use crate::bench::{MINUTE, Recorder, Writer, cluster, config_maps, eventually};

const SECOND: Duration = Duration::from_secs(1);

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn red() -> Selection {
    Selection::all().with_labels("colour=red".parse().expect("it is one"))
}

/// A factory, and what it writes in namespace `default`.
struct Bench {
    factory: SharedCacheFactory,
    informer: Informer,
    api: Api<ConfigMap>,
}

impl Bench {
    fn new(client: Client, options: KindOptions) -> Self {
        let factory = SharedCacheFactory::builder(client)
            .default_options(options)
            .build();
        Self {
            informer: factory.for_kind(config_maps()),
            api: Api::namespaced(factory.clients().client(), "default"),
            factory,
        }
    }

    async fn started(cluster: &Cluster, options: KindOptions) -> Self {
        let bench = Self::new(cluster.client(), options);
        bench.start().await;
        bench
    }

    async fn start(&self) {
        self.factory.start();
        self.factory.wait_for_sync(MINUTE).await.expect("synced");
    }

    fn metadata(&self) -> Cache<Metadata> {
        self.informer.cache()
    }

    fn shows(&self, name: &str) -> bool {
        self.informer.store().contains(&key(name))
    }

    fn version(&self, name: &str) -> Option<String> {
        let object = self.informer.store().get(&key(name))?;
        Some(object.version().to_string())
    }

    async fn create(&self, name: &str, labels: serde_json::Value) {
        let object = json!({"metadata": {"name": name, "labels": labels}});
        let object = serde_json::from_value(object).expect("it is one");
        let created = self.api.create(&PostParams::default(), &object).await;
        created.expect("created");
    }

    /// Labels an object and returns its version since.
    async fn label(&self, name: &str, labels: serde_json::Value) -> Option<String> {
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        let patched = self.api.patch(name, &PatchParams::default(), &patch).await;
        patched.expect("patched").metadata.resource_version
    }

    async fn delete(&self, name: &str) {
        let deleted = self.api.delete(name, &DeleteParams::default()).await;
        deleted.expect("deleted");
    }

    /// Writes in every way, and reads it back immediately and some time later.
    async fn writes_are_shown_until(&self, is_over: impl Fn(&Informer) -> bool) {
        let changed = self.label("a", json!({"colour": "red", "seen": "1"})).await;
        self.create("created", json!({"colour": "red"})).await;
        self.delete("b").await;
        for _ in 0..2 {
            assert!(!is_over(&self.informer));
            assert_eq!(self.version("a"), changed);
            assert!(self.shows("created") && !self.shows("b"));
            time::sleep(5 * SECOND).await;
        }
        // The factory's wait for the sync would end immediately while the kind is missing.
        eventually(async || is_over(&self.informer), true).await;
        assert_eq!(self.version("a"), changed);
        assert!(self.shows("created") && !self.shows("b"));
    }
}

fn is_synced(informer: &Informer) -> bool {
    informer.status().phase == Phase::Synced
}

fn has_content(informer: &Informer) -> bool {
    !informer.is_upgrading()
}

/// A cluster with two ConfigMaps, `a` and `b`, which are red.
async fn coloured() -> Cluster {
    let cluster = cluster().await;
    let writer = Bench::new(cluster.client(), KindOptions::default());
    for name in ["a", "b"] {
        writer.create(name, json!({"colour": "red"})).await;
    }
    cluster
}

fn slow(verb: &'static str, delay: Duration) -> Rule {
    Rule::new(Action::Delay(delay)).verb(verb)
}

#[tokio::test(start_paused = true)]
async fn while_a_watch_of_metadata_becomes_one_of_content() {
    let cluster = coloured().await;
    let bench = Bench::started(&cluster, KindOptions::default()).await;
    cluster.faults().add(slow("watch", 20 * SECOND));
    bench.informer.need::<ConfigMap>();
    bench.writes_are_shown_until(has_content).await;
    let object = bench.informer.cache::<ConfigMap>().get(&key("a"));
    assert!(object.unwrap().is_some(), "with its content");
}

#[tokio::test(start_paused = true)]
async fn while_another_selection_is_read() {
    let cluster = coloured().await;
    let bench = Bench::started(&cluster, KindOptions::default()).await;
    cluster.faults().add(slow("watch", 20 * SECOND));
    bench.informer.select(red());
    bench.writes_are_shown_until(is_synced).await;
    bench.label("a", json!({"colour": "blue"})).await;
    assert!(!bench.shows("a"));
}

#[tokio::test(start_paused = true)]
async fn while_content_is_given_up_for_want_of_memory() {
    let cluster = coloured().await;
    let options = KindOptions::default()
        .storage(Storage::Compressed)
        .memory_budget(20_000);
    let bench = Bench::started(&cluster, options).await;
    bench.informer.need::<ConfigMap>();
    bench.start().await;
    cluster.faults().add(slow("watch", 20 * SECOND));
    let patch = Patch::Merge(json!({"data": {"key": "x".repeat(30_000)}}));
    let params = PatchParams::default();
    bench
        .api
        .patch("b", &params, &patch)
        .await
        .expect("patched");
    let loads = bench.informer.status().loads;
    eventually(async || bench.informer.status().storage, Storage::OnDemand).await;
    assert!(is_synced(&bench.informer));
    let is_read = |informer: &Informer| informer.status().loads > loads;
    bench.writes_are_shown_until(is_read).await;
}

#[tokio::test(start_paused = true)]
async fn content_that_is_given_up_is_no_change_of_the_objects() {
    let cluster = coloured().await;
    let options = KindOptions::default()
        .storage(Storage::Compressed)
        .memory_budget(20_000);
    let bench = Bench::started(&cluster, options).await;
    bench.informer.need::<ConfigMap>();
    bench.start().await;
    let recorder = Arc::new(Recorder::default());
    let _subscription = bench.informer.subscribe(Arc::clone(&recorder) as _);
    let before = recorder.reported().len();
    let patch = Patch::Merge(json!({"data": {"key": "x".repeat(30_000)}}));
    let patched = bench.api.patch("b", &PatchParams::default(), &patch).await;
    patched.expect("patched");
    eventually(async || bench.informer.status().storage, Storage::OnDemand).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(bench.informer.status().phase, Phase::Synced);
    assert_eq!(recorder.reported().len(), before + 1, "the patch alone");
}

#[tokio::test(start_paused = true)]
async fn while_the_api_server_cannot_be_read() {
    let cluster = coloured().await;
    let bench = Bench::started(&cluster, KindOptions::default()).await;
    for verb in ["watch", "list"] {
        let away = Rule::new(Action::Disconnect).verb(verb).times(5);
        cluster.faults().add(away);
    }
    bench.informer.need::<ConfigMap>();
    bench.writes_are_shown_until(has_content).await;
}

/// As where one of two API servers does not serve the kind.
#[tokio::test(start_paused = true)]
async fn while_the_kind_is_not_served_to_those_who_read() {
    let cluster = coloured().await;
    let bench = Bench::started(&cluster, KindOptions::default()).await;
    for verb in ["watch", "list"] {
        let refusal = Action::Refuse(Refusal::new(StatusCode::NOT_FOUND));
        let unserved = Rule::new(refusal).verb(verb).resource("configmaps");
        cluster.faults().add(unserved.for_time(20 * SECOND));
    }
    cluster.cut_watches();
    let missing = async || bench.informer.status().phase == Phase::Missing;
    eventually(missing, true).await;
    bench.writes_are_shown_until(is_synced).await;
}

#[tokio::test(start_paused = true)]
async fn while_the_cache_is_filled_for_the_first_time() {
    let cluster = coloured().await;
    cluster.faults().add(slow("watch", 20 * SECOND));
    // The list shows what was before it was on its way.
    let trickle = Rule::new(Action::Bandwidth(50)).verb("list");
    cluster.faults().add(trickle);
    let options = KindOptions::default().initial_list(InitialList::List);
    let bench = Bench::new(cluster.client(), options);
    bench.factory.start();
    let listing = async || matches!(bench.informer.status().phase, Phase::Listing { .. });
    eventually(listing, true).await;
    let changed = bench.label("a", json!({"seen": "1"})).await;
    bench.create("created", json!({})).await;
    bench.delete("b").await;
    assert!(bench.metadata().readable().await);
    assert_eq!(bench.version("a"), changed);
    assert!(bench.shows("created") && !bench.shows("b"));
    let watches = cluster.journal().count("watch", "configmaps");
    assert_eq!(watches, 1, "no watch has reported it");
}

/// The answer of a stream begins with what there was when it was requested.
#[tokio::test(start_paused = true)]
async fn while_a_stream_is_opened() {
    let cluster = coloured().await;
    let hang = Rule::new(Action::HangWatch(After::Events(2))).verb("watch");
    cluster.faults().add(hang);
    let service = cluster.service();
    let slow_watches = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let mut service = service.clone();
        async move {
            let is_watch = request
                .uri()
                .query()
                .is_some_and(|q| q.contains("watch=true"));
            let answer = tower_service::Service::call(&mut service, request).await;
            if is_watch {
                time::sleep(20 * SECOND).await;
            }
            answer
        }
    });
    let client = Client::new(slow_watches, "default");
    let bench = Bench::new(client, KindOptions::default());
    bench.factory.start();
    let is_asked = async || cluster.journal().count("watch", "configmaps");
    eventually(is_asked, 1).await;
    let changed = bench.label("a", json!({"seen": "1"})).await;
    assert!(bench.metadata().readable().await);
    assert_eq!(bench.version("a"), changed);
}

/// A cluster whose watches fall silent after their beginning.
async fn mute_cluster() -> Cluster {
    let cluster = cluster().await;
    let hang = Rule::new(Action::HangWatch(After::Events(1))).verb("watch");
    cluster.faults().add(hang);
    cluster
}

#[tokio::test(start_paused = true)]
async fn a_label_of_the_selection_is_taken_off_and_put_on_again() {
    let cluster = mute_cluster().await;
    let bench = Bench::started(&cluster, KindOptions::default().selection(red())).await;
    bench.create("a", json!({"colour": "red"})).await;
    assert!(bench.shows("a"));
    bench.label("a", json!({"colour": null})).await;
    assert!(!bench.shows("a"));
    bench.label("a", json!({"colour": "red"})).await;
    assert!(bench.shows("a"), "at once");
    bench.label("a", json!({"colour": "blue"})).await;
    let theirs = Bench::new(cluster.client(), KindOptions::default());
    let changed = theirs.label("a", json!({"colour": "red"})).await;
    bench.factory.stop().await;
    cluster.faults().clear();
    bench.start().await;
    assert_eq!(bench.version("a"), changed, "by the list of a new start");
}

#[tokio::test(start_paused = true)]
async fn the_watch_that_reports_both_later_changes_nothing() {
    let cluster = cluster().await;
    let bench = Bench::started(&cluster, KindOptions::default().selection(red())).await;
    let recorder = std::sync::Arc::new(crate::bench::Recorder::default());
    let _subscription = bench
        .informer
        .subscribe(std::sync::Arc::clone(&recorder) as _);
    bench.create("a", json!({"colour": "red"})).await;
    bench.label("a", json!({"colour": null})).await;
    bench.label("a", json!({"colour": "red"})).await;
    time::sleep(MINUTE).await;
    let reported = recorder.reported();
    assert_eq!(reported.len(), 3, "{reported:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_written_before_the_first_start_is_not_hidden_by_what_an_earlier_run_left() {
    let folder = std::env::temp_dir().join(format!("lariat-early-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let cluster = coloured().await;
    let bench = || {
        let factory = SharedCacheFactory::builder(cluster.client())
            .warm_restart(&folder)
            .build();
        Bench {
            informer: factory.for_kind(config_maps()),
            api: Api::namespaced(factory.clients().client(), "default"),
            factory,
        }
    };
    let earlier = bench();
    earlier.start().await;
    earlier.factory.stop().await;
    let bench = bench();
    let hang = Rule::new(Action::HangWatch(After::Events(1))).verb("watch");
    cluster.faults().add(hang);
    let changed = bench.label("a", json!({"seen": "1"})).await;
    bench.start().await;
    assert_eq!(bench.version("a"), changed);
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_answer_is_slower_than_its_end_and_a_list_is_not_shown() {
    let cluster = coloured().await;
    let service = cluster.service();
    let slow_answers = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let mut service = service.clone();
        async move {
            let is_post = request.method() == http::Method::POST;
            let answer = tower_service::Service::call(&mut service, request).await;
            if is_post {
                time::sleep(20 * SECOND).await;
            }
            answer
        }
    });
    let client = Client::new(slow_answers, "default");
    let bench = Bench::new(client, KindOptions::default());
    // Until the object is deleted nothing is watched.
    cluster
        .faults()
        .add(Rule::new(Action::Disconnect).verb("watch"));
    cluster
        .faults()
        .add(Rule::new(Action::Disconnect).verb("list"));
    bench.factory.start();
    let others = Writer::new(cluster.client());
    let creates = bench.create("short", json!({}));
    let ends = async {
        let is_there = async || cluster.journal().count("create", "configmaps");
        eventually(is_there, 3).await;
        others.delete("short").await;
        cluster.faults().clear();
        bench.factory.wait_for_sync(MINUTE).await.expect("synced");
        assert!(!bench.shows("short"));
    };
    tokio::join!(creates, ends);
    assert!(!bench.shows("short"), "it was gone before the list");
}

//! Servers that are restored from a backup.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use lariat_cache::{Informer, InitialList, KindOptions, SharedCacheFactory, Storage, Subscription};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, After, Refusal, Rule, StatusCode};
use lariat_core::{Gvk, ObjectKey};
use serde_json::json;
use tokio::time;
use tower_service::Service;

use crate::bench::{
    MINUTE, Recorder, Writer, cached, client_as, cluster, config_maps, eventually, factory, listing,
};

/// A cluster with three ConfigMaps, and a cache of them.
pub(crate) struct Restored {
    pub(crate) cluster: Cluster,
    pub(crate) writer: Writer,
    pub(crate) informer: Informer,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) factory: SharedCacheFactory,
    _subscription: Subscription,
}

impl Restored {
    async fn begin() -> Self {
        Self::with(factory).await
    }

    async fn with(factory: fn(kube::Client) -> SharedCacheFactory) -> Self {
        Self::start(factory, Informer::need::<ConfigMap>).await
    }

    /// Starts the cache after its informer was told what is needed of it.
    pub(crate) async fn start(
        factory: fn(kube::Client) -> SharedCacheFactory,
        needs: fn(&Informer),
    ) -> Self {
        let cluster = cluster().await;
        let writer = Writer::new(cluster.client());
        for name in ["a", "b", "c"] {
            writer.create(name).await;
        }
        let factory = factory(client_as(&cluster, "informer"));
        let informer = factory.for_kind(config_maps());
        needs(&informer);
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

    pub(crate) async fn catches_up(&self) {
        eventually(async || cached(&self.informer), self.writer.truth().await).await;
    }

    /// Keeps the informer away for a time.
    fn keep_away(&self, time: Duration) {
        self.cluster.faults().add(refused().for_time(time));
    }

    /// Keeps the informer from reading for 20 seconds.
    ///
    /// This process can write meanwhile.
    fn keep_from_reading(&self) {
        for verb in ["list", "watch"] {
            let rule = refused().resource("configmaps").verb(verb);
            let rule = rule.for_time(Duration::from_secs(20));
            self.cluster.faults().add(rule);
        }
    }

    /// Creates `own` as this process, and checks that it is cached by then.
    async fn create_own(&self) {
        let api: Api<ConfigMap> = Api::namespaced(self.factory.clients().client(), "default");
        let own = json!({"metadata": {"name": "own"}});
        let own = serde_json::from_value(own).expect("it is one");
        let created = api.create(&PostParams::default(), &own).await;
        let created = created.expect("created").metadata.resource_version;
        assert_eq!(cached(&self.informer).get("own"), created.as_ref());
    }

    /// Checks that the cache shows what there is, content included, within two minutes.
    async fn converges(&self) {
        time::sleep(2 * MINUTE).await;
        let truth = self.writer.truth().await;
        assert_eq!(cached(&self.informer), truth);
        assert_eq!(self.recorder.known(), truth);
        for name in truth.keys() {
            assert_eq!(self.value(name), self.writer.value(name).await, "{name}");
        }
    }

    fn value(&self, name: &str) -> Option<String> {
        let key = ObjectKey::namespaced("default", name);
        let object = self.informer.cache::<ConfigMap>().get(&key);
        let object = object.expect("it is cached").expect("it decodes");
        object.data.as_ref()?.get("value").cloned()
    }
}

/// Refuses requests of the informer.
fn refused() -> Rule {
    let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE);
    Rule::new(Action::Refuse(refusal)).client("informer")
}

#[tokio::test(start_paused = true)]
async fn a_cluster_restored_from_a_backup_is_read_again_however_long_it_was_away() {
    for away in [0, 20, 60] {
        let bench = Restored::begin().await;
        let backup = bench.cluster.snapshot();
        bench.writer.change("a", "lost").await;
        bench.writer.delete("b").await;
        bench.writer.create("lost").await;
        bench.catches_up().await;
        bench.keep_away(Duration::from_secs(away));
        bench.cluster.rewind_to(&backup).await.expect("restored");
        bench.converges().await;
    }
}

/// So a watch from the version before the restore is opened.
///
/// It leaves out what happened below that version.
#[tokio::test(start_paused = true)]
async fn a_restored_cluster_that_has_overtaken_the_cache_is_noticed() {
    for away in [20, 60] {
        let bench = Restored::begin().await;
        let backup = bench.cluster.snapshot();
        bench.writer.change("a", "lost").await;
        bench.writer.delete("b").await;
        bench.writer.create("lost").await;
        bench.catches_up().await;
        bench.keep_away(Duration::from_secs(away));
        bench.cluster.rewind_to(&backup).await.expect("restored");
        bench.writer.change("b", "after the restore").await;
        for number in 0..10 {
            bench.writer.change("c", &number.to_string()).await;
        }
        bench.converges().await;
    }
}

/// The newest object that is known was then one of the new history.
///
/// Asking for it alone said nothing.
#[tokio::test(start_paused = true)]
async fn what_this_process_writes_after_a_restore_does_not_hide_it() {
    let bench = Restored::begin().await;
    let backup = bench.cluster.snapshot();
    bench.writer.create("lost").await;
    bench.catches_up().await;
    bench.keep_from_reading();
    bench.cluster.rewind_to(&backup).await.expect("restored");
    for number in 0..5 {
        bench.writer.change("c", &number.to_string()).await;
    }
    bench.create_own().await;
    bench.converges().await;
}

/// The newest object was then one that this process had created again.
///
/// Its version was one that the watch had passed.
#[tokio::test(start_paused = true)]
async fn what_this_process_creates_again_after_a_restore_does_not_hide_it() {
    let bench = Restored::begin().await;
    // No other kind is cached, which might find out.
    let others = Secrets::begin(&bench).await;
    let backup = bench.cluster.snapshot();
    bench.writer.create("lost").await;
    bench.writer.create("own").await;
    for number in 0..20 {
        others.change(&number.to_string()).await;
    }
    bench.catches_up().await;
    // The watch is moved on by bookmarks.
    time::sleep(3 * MINUTE).await;
    bench.keep_from_reading();
    bench.cluster.rewind_to(&backup).await.expect("restored");
    for number in 0..5 {
        others.change(&number.to_string()).await;
    }
    bench.create_own().await;
    for number in 0..30 {
        others.change(&number.to_string()).await;
    }
    bench.converges().await;
}

#[tokio::test(start_paused = true)]
async fn a_restore_after_which_only_a_deletion_is_undone_is_noticed() {
    let bench = Restored::begin().await;
    let others = Secrets::begin(&bench).await;
    let backup = bench.cluster.snapshot();
    bench.writer.delete("b").await;
    bench.catches_up().await;
    bench.keep_away(Duration::from_secs(20));
    bench.cluster.rewind_to(&backup).await.expect("restored");
    for number in 0..10 {
        others.change(&number.to_string()).await;
    }
    bench.converges().await;
}

/// The watch reported the end of another object than the one that is back.
#[tokio::test(start_paused = true)]
async fn a_restore_is_noticed_though_the_object_was_created_again_before_it_was_deleted() {
    let bench = Restored::begin().await;
    let others = Secrets::begin(&bench).await;
    let backup = bench.cluster.snapshot();
    bench.writer.delete("b").await;
    bench.writer.create("b").await;
    bench.writer.delete("b").await;
    bench.catches_up().await;
    bench.keep_away(Duration::from_secs(20));
    bench.cluster.rewind_to(&backup).await.expect("restored");
    for number in 0..10 {
        others.change(&number.to_string()).await;
    }
    bench.converges().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_gets_its_version_again_with_other_content_is_updated() {
    let bench = Restored::begin().await;
    let backup = bench.cluster.snapshot();
    bench.writer.change("a", "before").await;
    bench.writer.change("b", "newest").await;
    bench.catches_up().await;
    let version = cached(&bench.informer)["a"].clone();
    bench.keep_away(Duration::from_secs(20));
    bench.cluster.rewind_to(&backup).await.expect("restored");
    bench.writer.change("a", "after").await;
    assert_eq!(bench.writer.truth().await["a"], version);
    bench.converges().await;
    assert_eq!(bench.value("a").as_deref(), Some("after"));
    let reported = bench.recorder.reported();
    assert!(
        reported.contains(&format!("a updated {version} → {version}")),
        "{reported:?}"
    );
}

/// Writes Secrets; there is one, `s`.
struct Secrets(Api<Secret>);

impl Secrets {
    async fn begin(bench: &Restored) -> Self {
        let api = Api::namespaced(bench.cluster.client(), "default");
        let secrets = Self(api);
        secrets.create("s").await;
        secrets
    }

    async fn create(&self, name: &str) {
        let secret = json!({"metadata": {"name": name}});
        let secret = serde_json::from_value(secret).expect("it is one");
        let params = PostParams::default();
        self.0.create(&params, &secret).await.expect("created");
    }

    /// Changes `s`.
    async fn change(&self, value: &str) {
        let patch = Patch::Merge(json!({"stringData": {"value": value}}));
        let params = PatchParams::default();
        let changed = self.0.patch("s", &params, &patch).await;
        changed.expect("changed");
    }

    async fn names(&self) -> Vec<String> {
        let list = self.0.list(&ListParams::default()).await.expect("listed");
        list.items.iter().map(ResourceExt::name_any).collect()
    }

    /// Makes a cache of them.
    async fn cached(bench: &Restored) -> Informer {
        let informer = bench.factory.for_kind(Gvk::new("", "v1", "Secret"));
        assert!(informer.synced().await);
        informer
    }
}

/// Nothing in the second kind shows that there is another history.
///
/// Nothing had changed in it since the backup.
#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_notice_a_restore_itself_hears_of_it_from_another() {
    let bench = Restored::begin().await;
    let secrets = Secrets::begin(&bench).await;
    let quiet = Secrets::cached(&bench).await;
    // The second restore comes soon after everything was read again because of the first.
    for (round, bookmark) in [3 * MINUTE, MINUTE].into_iter().enumerate() {
        let backup = bench.cluster.snapshot();
        for number in 0..10 {
            bench.writer.change("a", &format!("lost {number}")).await;
        }
        bench.catches_up().await;
        // Its watch is moved on by bookmarks.
        time::sleep(bookmark).await;
        let reached = quiet.status().version;
        assert_eq!(reached, bench.informer.status().version);
        bench.keep_away(Duration::from_secs(5));
        bench.cluster.rewind_to(&backup).await.expect("restored");
        // No object that it knows of is another.
        secrets.create(&format!("restored-{round}")).await;
        for number in 0..20 {
            bench.writer.change("c", &number.to_string()).await;
        }
        time::sleep(MINUTE / 2).await;
        let known = cached(&quiet);
        assert!(
            secrets.names().await.iter().eq(known.keys()),
            "{round}: {known:?}"
        );
    }
    bench.converges().await;
    assert_eq!(quiet.status().loads, 3);
}

#[tokio::test(start_paused = true)]
async fn a_restore_that_another_kind_notices_late_is_no_reason_to_read_twice() {
    let bench = Restored::begin().await;
    let secrets = Secrets::begin(&bench).await;
    let quiet = Secrets::cached(&bench).await;
    let backup = bench.cluster.snapshot();
    bench.writer.change("a", "lost").await;
    secrets.change("lost").await;
    bench.catches_up().await;
    let away = refused().resource("secrets").for_time(MINUTE);
    bench.cluster.faults().add(away);
    let loads = || [&bench.informer, &quiet].map(|informer| informer.status().loads);
    let before = loads();
    bench.cluster.rewind_to(&backup).await.expect("restored");
    bench.converges().await;
    time::sleep(20 * MINUTE).await;
    assert_eq!(loads(), before.map(|loads| loads + 1));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_restored_between_two_runs_is_noticed() {
    let bench = Restored::begin().await;
    let backup = bench.cluster.snapshot();
    bench.writer.change("a", "before").await;
    bench.catches_up().await;
    bench.factory.stop().await;
    bench.cluster.rewind_to(&backup).await.expect("restored");
    bench.writer.change("a", "after").await;
    bench.factory.start();
    bench.converges().await;
    assert_eq!(bench.value("a").as_deref(), Some("after"));
}

/// Without it no object is newer than its deletion, which the watch reported.
#[tokio::test(start_paused = true)]
async fn what_was_created_again_and_written_here_is_no_other_history() {
    let bench = Restored::begin().await;
    bench.writer.delete("b").await;
    bench.writer.create("b").await;
    bench.catches_up().await;
    let loads = bench.informer.status().loads;
    bench.keep_from_reading();
    bench.cluster.cut_watches();
    let own = Writer::new(bench.factory.clients().client());
    own.change("b", "own").await;
    bench.converges().await;
    assert!(bench.informer.status().watches > 1);
    assert_eq!(bench.informer.status().loads, loads);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_the_same_after_an_outage_is_not_read_again() {
    let bench = Restored::begin().await;
    bench.catches_up().await;
    let loads = bench.informer.status().loads;
    for _ in 0..5 {
        bench.keep_away(Duration::from_secs(20));
        bench.cluster.cut_watches();
        // The newest object is another by the time the reflector asks.
        bench.writer.change("c", "meanwhile").await;
        bench.writer.delete("b").await;
        bench.writer.create("b").await;
        bench.converges().await;
    }
    assert_eq!(bench.informer.status().loads, loads);
}

/// A client whose Secrets are those of one cluster, and everything else of another one.
fn of_two(secrets: &Cluster, others: &Cluster) -> kube::Client {
    let services = [secrets.service(), others.service()];
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let is_other = usize::from(!request.uri().path().ends_with("/secrets"));
        services[is_other].clone().call(request)
    });
    kube::Client::new(service, "default")
}

/// The second restore is found while a watch list of the first one is still followed.
#[tokio::test(start_paused = true)]
async fn each_restore_found_by_another_kind_cuts_a_followed_watch_list() {
    let (calm, restored) = (cluster().await, cluster().await);
    let writer = Writer::new(restored.client());
    writer.create("a").await;
    let factory = factory(of_two(&calm, &restored));
    let maps = factory.for_kind(config_maps());
    let secrets = factory.for_kind(Gvk::new("", "v1", "Secret"));
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("it syncs");
    for loads in [2, 3] {
        let backup = restored.snapshot();
        for value in ["1", "2", "3"] {
            writer.change("a", value).await;
        }
        eventually(async || cached(&maps), writer.truth().await).await;
        restored.rewind_to(&backup).await.expect("restored");
        time::sleep(MINUTE).await;
        assert_eq!(cached(&maps), writer.truth().await);
        assert_eq!(secrets.status().loads, loads);
    }
}

/// Its watches lag behind, and its lists are consistent, as those of an API server are.
#[tokio::test(start_paused = true)]
async fn server_that_is_behind_leads_to_a_list_and_reports_nothing_older() {
    let bench = Restored::with(listing).await;
    let behind = Rule::new(Action::Freeze).client("informer");
    let behind = behind.resource("configmaps").verb("watch");
    bench.cluster.faults().add(behind.for_time(5 * MINUTE));
    bench.writer.change("a", "newer").await;
    bench.writer.create("d").await;
    bench.catches_up().await;
    let reported = bench.recorder.reported();
    bench.cluster.cut_watches();
    time::sleep(MINUTE).await;
    assert_eq!(bench.recorder.reported(), reported, "nothing older");
    assert_eq!(bench.informer.status().loads, 2);
    bench.writer.delete("d").await;
    time::sleep(10 * MINUTE).await;
    bench.converges().await;
}

/// The cache had only the restored state, so nothing changed for it.
#[tokio::test(start_paused = true)]
async fn fetched_object_is_replaced_by_a_restore_before_the_watch_reports_it() {
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    let hangs = Rule::new(Action::HangWatch(After::Events(0))).resource("configmaps");
    cluster.faults().add(hangs.times(1));
    let options = KindOptions::default();
    let options = options
        .storage(Storage::OnDemand)
        .initial_list(InitialList::List);
    let factory = SharedCacheFactory::builder(client_as(&cluster, "informer"))
        .default_options(options)
        .build();
    let informer = factory.for_kind(config_maps());
    let recorder = Arc::new(Recorder::default());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    factory.start();
    assert!(informer.synced().await);
    let backup = cluster.snapshot();
    writer.change("a", "lost").await;

    let loaded = informer.load(&ObjectKey::namespaced("default", "a")).await;
    let loaded = loaded.expect("it was fetched").expect("it exists");
    assert_eq!(loaded.version().to_string(), writer.truth().await["a"]);
    assert_eq!(
        recorder.known(),
        writer.truth().await,
        "told before the watch"
    );

    cluster.rewind_to(&backup).await.expect("restored");
    time::sleep(10 * MINUTE).await;
    assert_eq!(recorder.known(), writer.truth().await);
    assert_eq!(cached(&informer), writer.truth().await);
}

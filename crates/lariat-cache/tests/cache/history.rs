//! Servers that are restored from a backup, and what a reflector asks before it watches on.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_cache::{Informer, Phase, SharedCacheFactory, Subscription};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_core::{Gvk, ObjectKey};
use serde_json::json;
use tokio::time;

use crate::bench::{
    MINUTE, Recorder, Writer, cached, client_as, cluster, config_maps, eventually, factory,
};
use crate::script::{Answer, Ending, Script, Scripted, event, list, object, quiet, status};

struct Restored {
    cluster: Cluster,
    writer: Writer,
    informer: Informer,
    recorder: Arc<Recorder>,
    factory: SharedCacheFactory,
    _subscription: Subscription,
}

impl Restored {
    /// A cluster with three objects, and a cache of them.
    async fn begin() -> Self {
        let cluster = cluster().await;
        let writer = Writer::new(cluster.client());
        for name in ["a", "b", "c"] {
            writer.create(name).await;
        }
        let factory = factory(client_as(&cluster, "informer"));
        let informer = factory.for_kind(config_maps());
        informer.need::<ConfigMap>();
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

    async fn catches_up(&self) {
        eventually(async || cached(&self.informer), self.writer.truth().await).await;
    }

    /// Keeps the informer away for a time.
    fn keep_away(&self, time: Duration) {
        let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE);
        let rule = Rule::new(Action::Refuse(refusal)).client("informer");
        self.cluster.faults().add(rule.for_time(time));
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

/// So a watch from the version before the restore is opened, and leaves out what happened below it.
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

/// The newest object that is known was then one of the new history, and asking for it alone said nothing.
#[tokio::test(start_paused = true)]
async fn what_this_process_writes_after_a_restore_does_not_hide_it() {
    let bench = Restored::begin().await;
    let backup = bench.cluster.snapshot();
    bench.writer.create("lost").await;
    bench.catches_up().await;
    for verb in ["list", "watch"] {
        let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE);
        let rule = Rule::new(Action::Refuse(refusal)).client("informer");
        let away = rule.verb(verb).for_time(Duration::from_secs(20));
        bench.cluster.faults().add(away);
    }
    bench.cluster.rewind_to(&backup).await.expect("restored");
    for number in 0..5 {
        bench.writer.change("c", &number.to_string()).await;
    }
    let api: Api<ConfigMap> = Api::namespaced(bench.factory.clients().client(), "default");
    let own = json!({"metadata": {"name": "own"}});
    let own = serde_json::from_value(own).expect("it is one");
    api.create(&PostParams::default(), &own)
        .await
        .expect("created");
    assert!(cached(&bench.informer).contains_key("own"));
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
    let told = bench.recorder.told();
    assert!(
        told.contains(&format!("a updated {version} → {version}")),
        "{told:?}"
    );
}

/// Nothing the second kind knows of shows that there is another history: nothing had changed in it since the backup.
#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_notice_a_restore_itself_hears_of_it_from_another() {
    let bench = Restored::begin().await;
    let secrets: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let secret = |value: &str| {
        let text = json!({"metadata": {"name": "s"}, "stringData": {"value": value}});
        serde_json::from_value::<Secret>(text).expect("it is one")
    };
    let create = PostParams::default();
    secrets
        .create(&create, &secret("first"))
        .await
        .expect("created");
    let quiet = bench.factory.for_kind(Gvk::new("", "v1", "Secret"));
    assert!(quiet.synced().await);
    let backup = bench.cluster.snapshot();
    bench.writer.change("a", "lost").await;
    bench.catches_up().await;
    // Its watch is moved on by bookmarks.
    time::sleep(3 * MINUTE).await;
    let reached = quiet.status().version;
    assert_eq!(reached, bench.informer.status().version);
    bench.keep_away(Duration::from_secs(20));
    bench.cluster.rewind_to(&backup).await.expect("restored");
    let changed = secret("second");
    let (params, patch) = (PatchParams::default(), Patch::Merge(&changed));
    let replaced = secrets.patch("s", &params, &patch);
    let version = replaced.await.expect("changed").metadata.resource_version;
    for number in 0..10 {
        bench.writer.change("c", &number.to_string()).await;
    }
    bench.converges().await;
    let cached = quiet.store().snapshot();
    let cached = cached.iter().map(|object| object.version().to_string());
    assert_eq!(cached.collect::<Vec<_>>(), [version.unwrap()]);
    assert!(quiet.status().loads <= 2, "{}", quiet.status().loads);
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

/// A watch that ends after a moment, having said something.
fn cut() -> Answer {
    Answer::Pieces(vec![event("MODIFIED", "a", 11)], Ending::Cut)
}

/// An answer to a check: the list's version, and an object in it.
fn seen(version: u64, object: Option<String>) -> Answer {
    let object = object.unwrap_or_default();
    let text = format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"items":[{object}]}}"#);
    Answer::Whole(200, Vec::new(), text)
}

/// A server that lists `a` at 10, then at 30, and cuts its first watch after version 11.
fn script(checks: impl Fn(&crate::script::Ask) -> Answer + Send + Sync + 'static) -> Script {
    let script = Script::new(|ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a"]),
        (false, _) => list(30, "", &["a"]),
        (true, 0) => cut(),
        (true, _) => quiet(),
    });
    script.checked(checks)
}

#[tokio::test(start_paused = true)]
async fn the_newest_object_is_asked_for_before_a_watch_goes_on_after_a_failure() {
    let bench = Scripted::of(script(|_| seen(20, Some(object("a", 11)))));
    time::sleep(MINUTE).await;
    let checks = bench.script.checks();
    assert_eq!(checks, ["limit=1&fieldSelector=metadata.name%3Da"]);
    assert!(bench.script.queries(true)[1].contains("resourceVersion=11&"));
    assert_eq!(bench.script.lists(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_that_has_changed_since_is_asked_for_as_it_was() {
    let was = |ask: &crate::script::Ask| ask.query.contains("Exact");
    // It is the same history …
    let bench = Scripted::of(script(move |ask| match was(ask) {
        true => seen(11, Some(object("a", 11))),
        false => seen(20, Some(object("a", 15))),
    }));
    time::sleep(MINUTE).await;
    let exact = "limit=1&resourceVersion=11&resourceVersionMatch=Exact\
                 &fieldSelector=metadata.name%3Da";
    assert_eq!(bench.script.checks()[1], exact);
    assert_eq!((bench.script.lists(), bench.script.watches()), (1, 2));

    // … or another one, in which the object was older then, or was not there …
    for then in [Some(object("a", 9)), None] {
        let bench = Scripted::of(script(move |ask| match was(ask) {
            true => seen(11, then.clone()),
            false => seen(20, None),
        }));
        time::sleep(MINUTE).await;
        assert_eq!((bench.script.lists(), bench.script.watches()), (2, 2));
        assert!(bench.script.queries(true)[1].contains("resourceVersion=30&"));
    }

    // … or the server does not know any more.
    let bench = Scripted::of(script(move |ask| match was(ask) {
        true => status(410, "Expired"),
        false => seen(20, None),
    }));
    time::sleep(MINUTE).await;
    assert_eq!((bench.script.lists(), bench.script.watches()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_understand_the_question_is_watched_on() {
    for answer in [400, 403, 422] {
        let bench = Scripted::of(script(move |_| status(answer, "Invalid")));
        time::sleep(MINUTE).await;
        assert_eq!((bench.script.lists(), bench.script.watches()), (1, 2));
    }
    let html = || Answer::Whole(200, Vec::new(), "<html>".to_owned());
    let bench = Scripted::of(script(move |_| html()));
    time::sleep(MINUTE).await;
    assert_eq!((bench.script.lists(), bench.script.watches()), (1, 2));

    // One that fails at it is listed before long.
    let bench = Scripted::of(script(|_| status(500, "InternalError")));
    time::sleep(2 * MINUTE).await;
    assert_eq!((bench.script.lists(), bench.script.watches()), (2, 2));
    assert_eq!(bench.status().phase, Phase::Synced);
    assert_eq!(bench.status().last_error, None);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_still_away_is_asked_again() {
    let bench = Scripted::of(script(|ask| match ask.number {
        0..8 => Answer::Nothing,
        8 => status(429, "TooManyRequests"),
        _ => seen(20, Some(object("a", 11))),
    }));
    time::sleep(5 * MINUTE).await;
    assert_eq!(bench.script.checks().len(), 10);
    assert_eq!((bench.script.lists(), bench.script.watches()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_as_watches_do_are_opened_again_without_a_question() {
    let script = Script::new(|ask| match ask.watch {
        false => list(10, "", &["a"]),
        true => Answer::Pieces(
            vec![event("MODIFIED", "a", 11 + ask.number as u64)],
            Ending::Clean,
        ),
    });
    let bench = Scripted::of(script.checked(|_| panic!("it is not asked")));
    time::sleep(MINUTE).await;
    assert!(bench.script.watches() > 10);
    assert_eq!((bench.script.checks().len(), bench.script.lists()), (0, 1));
}

/// As a server that forgot what came after its backup, while the watch's end was orderly.
#[tokio::test(start_paused = true)]
async fn a_list_from_before_what_was_reached_is_compared_by_content() {
    let with = |value: &str| {
        let metadata = r#""name":"a","uid":"a","resourceVersion":"11""#;
        format!(r#"{{"metadata":{{{metadata},"labels":{{"v":"{value}"}}}}}}"#)
    };
    let (before, after) = (with("before"), with("after"));
    let modified = format!("{{\"type\":\"MODIFIED\",\"object\":{before}}}\n");
    let bench = Scripted::start(move |ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a"]),
        (false, _) => {
            let items = after.clone();
            let text = format!(r#"{{"metadata":{{"resourceVersion":"11"}},"items":[{items}]}}"#);
            Answer::Whole(200, Vec::new(), text)
        }
        (true, 0) => Answer::Pieces(
            vec![modified.clone(), event("ADDED", "b", 12)],
            Ending::Clean,
        ),
        (true, 1) => status(410, "Expired"),
        (true, _) => quiet(),
    });
    time::sleep(MINUTE).await;
    assert_eq!(
        bench.recorder.told()[2..],
        ["b added at 12", "a updated 11 → 11", "b deleted at 12"]
    );
}

/// The API server sends metadata as `PartialObjectMetadata`, while the answer to a write is a whole object.
#[tokio::test(start_paused = true)]
async fn what_was_written_to_a_kind_of_metadata_is_no_other_history() {
    let cluster = cluster().await;
    Writer::new(cluster.client()).create("a").await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    let recorder = Arc::new(Recorder::default());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    factory.start();
    assert!(informer.synced().await);
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "1"}}}));
    let patched = api.patch("a", &PatchParams::default(), &patch).await;
    patched.expect("patched");
    time::sleep(MINUTE).await;
    let (loads, told) = (informer.status().loads, recorder.told());
    assert_eq!(told.len(), 2, "{told:?}");

    cluster.cut_watches();
    time::sleep(MINUTE).await;
    assert!(informer.status().watches > 1);
    assert_eq!((informer.status().loads, recorder.told()), (loads, told));
}

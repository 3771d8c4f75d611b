//! Kinds that are not served any more: their objects stay, and none counts as deleted.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use lariat_cache::{Informer, InitialList, KindOptions, MissingKind, Phase, SharedCacheFactory};
use lariat_cluster::Cluster;
use lariat_core::{Gvk, ObjectKey};
use lariat_testing::Logs;
use serde_json::{Value, json};
use tokio::time::{self, Instant};

use crate::bench::{MINUTE, Recorder, cluster, config_maps, eventually, no_client};
use crate::script::{Answer, Script, list, quiet, status};

const SECOND: Duration = Duration::from_secs(1);

fn widgets(version: &str) -> Gvk {
    Gvk::new("demo.dev", version, "Widget")
}

fn crd(versions: &[(&str, bool, bool)]) -> Value {
    let version = |(name, served, storage): &(&str, bool, bool)| {
        json!({"name": name, "served": served, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.demo.dev"},
        "spec": {"group": "demo.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": versions.iter().map(version).collect::<Vec<_>>()},
    })
}

/// A cluster with a CRD, and an informer of one of its versions.
struct Bench {
    cluster: Cluster,
    factory: SharedCacheFactory,
    informer: Informer,
    recorder: Arc<Recorder>,
    _subscription: lariat_cache::Subscription,
}

impl Bench {
    async fn start(versions: &[(&str, bool, bool)], read: &str) -> Self {
        let cluster = cluster().await;
        define(&cluster, versions).await;
        let factory = SharedCacheFactory::builder(cluster.client())
            .missing_kind(MissingKind::Wait)
            .build();
        let informer = factory.for_kind(widgets(read));
        let recorder = Arc::new(Recorder::default());
        let subscription = informer.subscribe(Arc::clone(&recorder) as _);
        Self {
            cluster,
            factory,
            informer,
            recorder,
            _subscription: subscription,
        }
    }

    fn crds(&self) -> Api<DynamicObject> {
        crds(&self.cluster)
    }

    async fn undefine(&self) {
        let (crds, params) = (self.crds(), DeleteParams::default());
        let deleted = crds.delete("widgets.demo.dev", &params).await;
        deleted.expect("deleted");
    }

    fn widgets(&self, version: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk("demo.dev", version, "Widget");
        let client = self.cluster.client();
        Api::namespaced_with(client, "default", &ApiResource::from_gvk(&gvk))
    }

    async fn create(&self, version: &str, names: &[&str]) {
        for name in names {
            let gvk = GroupVersionKind::gvk("demo.dev", version, "Widget");
            let object = DynamicObject::new(name, &ApiResource::from_gvk(&gvk));
            let (api, params) = (self.widgets(version), PostParams::default());
            api.create(&params, &object).await.expect("created");
        }
    }

    async fn synced(&self, objects: usize) {
        self.factory.start();
        self.factory.wait_for_sync(MINUTE).await.expect("synced");
        eventually(async || self.informer.store().len(), objects).await;
    }

    async fn phase(&self, phase: Phase) {
        eventually(async || self.informer.status().phase, phase).await;
    }

    fn deletions(&self) -> Vec<String> {
        let reported = self.recorder.reported().into_iter();
        reported.filter(|it| it.contains("deleted")).collect()
    }
}

fn crds(cluster: &Cluster) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(cluster.client(), &ApiResource::from_gvk(&gvk))
}

async fn define(cluster: &Cluster, versions: &[(&str, bool, bool)]) {
    let crd: DynamicObject = serde_json::from_value(crd(versions)).expect("it is one");
    let created = crds(cluster).create(&PostParams::default(), &crd).await;
    created.expect("created");
    time::sleep(2 * SECOND).await;
}

/// As at the end of a migration: the objects exist in the stored version.
#[tokio::test(start_paused = true)]
async fn unserved_version_deletes_nothing_and_names_the_served_version() {
    let logs = Logs::warnings();
    let versions = [("v1", true, true), ("v1beta1", true, false)];
    let bench = Bench::start(&versions, "v1beta1").await;
    bench.create("v1", &["a", "b"]).await;
    bench.synced(2).await;
    assert!(bench.informer.is_current());
    let serve = async |versions: &[(&str, bool, bool)]| {
        let patch = Patch::Merge(json!({"spec": {"versions": crd(versions)["spec"]["versions"]}}));
        let (crds, params) = (bench.crds(), PatchParams::default());
        let patched = crds.patch("widgets.demo.dev", &params, &patch).await;
        patched.expect("patched");
    };
    serve(&[("v1", true, true), ("v1beta1", false, false)]).await;
    bench.phase(Phase::Missing).await;
    let at_first = bench.informer.status().blind.expect("it is not served");
    time::sleep(20 * MINUTE).await;
    assert_eq!(bench.informer.store().len(), 2);
    assert_eq!(bench.deletions(), [""; 0]);
    assert!(!bench.informer.is_current());
    let status = bench.informer.status();
    let blind = status.blind.expect("it is not served");
    assert_eq!(blind.served, [widgets("v1")]);
    assert!(blind.lasts >= at_first.lasts + 20 * MINUTE);
    assert!(
        blind
            .to_string()
            .ends_with("s, served as demo.dev/v1 Widget")
    );
    let error = status.last_error.expect("it has a reason");
    assert!(
        error.ends_with("; it is served as demo.dev/v1 Widget"),
        "{error}"
    );
    let said = logs.lines();
    let about = |it: &&String| it.contains("its cached objects stay") && it.contains(&error);
    assert_eq!(said.iter().filter(about).count(), 1, "{said:?}");

    // What is gone by the time the version is served again is reported then.
    let deleted = bench
        .widgets("v1")
        .delete("a", &DeleteParams::default())
        .await;
    deleted.expect("deleted");
    serve(&versions).await;
    bench.phase(Phase::Synced).await;
    assert_eq!(bench.informer.store().len(), 1);
    assert_eq!(bench.deletions().len(), 1);
    assert!(bench.informer.is_current() && bench.informer.status().blind.is_none());
}

#[tokio::test(start_paused = true)]
async fn deleted_crd_reports_deletions_before_its_kind_is_blind() {
    let bench = Bench::start(&[("v1", true, true)], "v1").await;
    bench.create("v1", &["a", "b", "c"]).await;
    bench.synced(3).await;
    bench.undefine().await;
    bench.phase(Phase::Missing).await;
    assert_eq!(
        bench.deletions().len(),
        3,
        "{:?}",
        bench.recorder.reported()
    );
    assert!(bench.informer.store().is_empty());
}

#[tokio::test(start_paused = true)]
async fn recreated_crd_reports_missed_deletions_by_its_list() {
    let bench = Bench::start(&[("v1", true, true)], "v1").await;
    bench.create("v1", &["a", "b"]).await;
    bench.synced(2).await;
    // The program does not watch while the CRD is deleted.
    bench.factory.stop().await;
    bench.undefine().await;
    time::sleep(MINUTE).await;
    bench.factory.start();
    bench.phase(Phase::Missing).await;
    time::sleep(10 * MINUTE).await;
    assert_eq!(
        (bench.informer.store().len(), bench.deletions().len()),
        (2, 0)
    );
    let blind = bench.informer.status().blind.expect("it is not served");
    assert_eq!(blind.served, []);
    define(&bench.cluster, &[("v1", true, true)]).await;
    bench.create("v1", &["b", "c"]).await;
    bench.phase(Phase::Synced).await;
    let known = async || bench.recorder.known().into_keys().collect::<Vec<_>>();
    eventually(known, vec!["b".to_owned(), "c".to_owned()]).await;
    assert_eq!(bench.deletions().len(), 2, "a, and the former b");
}

/// As during the upgrade of an aggregated API, or where an API server does not know its custom resources yet.
#[tokio::test(start_paused = true)]
async fn service_that_comes_back_deletes_what_its_list_lacks() {
    let start = Instant::now();
    let script = Script::new(move |ask| match (ask.watch, start.elapsed()) {
        (_, now) if now > 60 * SECOND && now < 80 * SECOND => status(404, "NotFound"),
        (_, now) if now > 200 * SECOND && now < 900 * SECOND => status(404, "NotFound"),
        (false, now) if now < 900 * SECOND => list(10, "", &["a", "b"]),
        (false, _) => list(20, "", &["b"]),
        (true, now) if now < 60 * SECOND => Answer::Slow(Vec::new(), SECOND),
        (true, _) => quiet(),
    });
    let factory = of_script();
    let informer = factory.for_source(config_maps(), Arc::new(Ending404(script)));
    let recorder = Arc::new(Recorder::default());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    factory.start();
    time::sleep(100 * SECOND).await;
    assert_eq!(recorder.reported().len(), 2);
    assert_eq!(informer.status().phase, Phase::Synced);
    time::sleep(120 * SECOND).await;
    assert_eq!(informer.status().phase, Phase::Missing);
    time::sleep(600 * SECOND).await;
    assert_eq!(recorder.reported().len(), 2, "an absence deletes nothing");
    assert_eq!(informer.store().len(), 2);
    let blind = informer.status().blind.expect("it is not served");
    assert!(blind.lasts > 600 * SECOND, "{blind}");
    time::sleep(120 * SECOND).await;
    assert_eq!(informer.status().phase, Phase::Synced);
    assert_eq!(recorder.known().into_keys().collect::<Vec<_>>(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn blind_kind_keeps_its_objects_over_stop_and_start() {
    let start = Instant::now();
    let script = Script::new(move |ask| match (ask.watch, start.elapsed()) {
        (_, now) if now > 60 * SECOND && now < 75 * SECOND => status(404, "NotFound"),
        // An API server that starts does not know its custom resources for a moment.
        (_, now) if now > 3600 * SECOND && now < 3700 * SECOND => status(404, "NotFound"),
        (false, _) => list(10, "", &["a", "b"]),
        (true, _) => Answer::Slow(Vec::new(), SECOND),
    });
    let factory = of_script();
    let informer = factory.for_source(config_maps(), Arc::new(Ending404(script)));
    let recorder = Arc::new(Recorder::default());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    factory.start();
    time::sleep(72 * SECOND).await;
    assert_eq!(informer.status().phase, Phase::Missing);
    factory.stop().await;
    time::sleep_until(start + 3601 * SECOND).await;
    factory.start();
    time::sleep(60 * SECOND).await;
    assert_eq!(informer.status().phase, Phase::Missing);
    let blind = informer.status().blind.expect("it is not served");
    assert!(
        blind.lasts <= 60 * SECOND,
        "counted from the start: {blind}"
    );
    time::sleep(60 * SECOND).await;
    assert_eq!(informer.status().phase, Phase::Synced);
    assert_eq!(recorder.reported(), ["a added at 10", "b added at 10"]);
}

#[tokio::test(start_paused = true)]
async fn blind_kind_leaves_readiness_and_kinds_that_never_synced_do_not() {
    let start = Instant::now();
    let script = Script::new(move |ask| match ask.watch {
        _ if start.elapsed() > MINUTE => status(404, "NotFound"),
        false => list(10, "", &["a"]),
        true => Answer::Slow(Vec::new(), SECOND),
    });
    let factory = of_script();
    let informer = factory.for_source(config_maps(), Arc::new(Ending404(script)));
    let never = Script::new(|_| status(404, "NotFound"));
    let _never = factory.for_source(widgets("v1"), Arc::new(never));
    factory.start();
    time::sleep(10 * MINUTE).await;
    assert!(informer.status().blind.is_some());
    let unreadable: Vec<Gvk> = factory.unreadable().into_iter().map(|it| it.gvk).collect();
    assert_eq!(unreadable, [widgets("v1")]);
    let never = factory
        .status()
        .into_iter()
        .find(|it| it.gvk == widgets("v1"));
    assert_eq!(
        never.map(|it| (it.phase, it.blind)),
        Some((Phase::Missing, None))
    );
}

/// A namespace of the selection that is deleted is an empty list, which is a report of the server.
#[tokio::test(start_paused = true)]
async fn namespace_that_is_gone_deletes_its_objects_only() {
    let bench = Bench::start(&[("v1", true, true)], "v1").await;
    bench.create("v1", &["a"]).await;
    let selection = lariat_cache::Selection::all().in_namespaces(["default", "gone"]);
    bench.informer.select(selection);
    bench.synced(1).await;
    time::sleep(30 * MINUTE).await;
    assert_eq!(bench.informer.status().phase, Phase::Synced);
    assert!(
        bench
            .informer
            .store()
            .contains(&ObjectKey::namespaced("default", "a"))
    );
}

/// A list of something else says nothing about the objects of the kind.
#[tokio::test(start_paused = true)]
async fn list_of_other_kind_deletes_nothing() {
    let item = r#"{"kind":"Secret","metadata":{"name":"x","uid":"x","resourceVersion":"9"}}"#;
    let pages = [
        r#"{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"30"},"items":[]}"#.to_owned(),
        r#"{"kind":"ConfigMapList","apiVersion":"v2","metadata":{"resourceVersion":"30"},"items":[]}"#.to_owned(),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{"resourceVersion":"30"},"status":"Success","items":[]}"#.to_owned(),
        r#"{"kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"30"}}"#.to_owned(),
        r#"{"kind":"ConfigMapList","metadata":{},"items":[]}"#.to_owned(),
        format!(r#"{{"metadata":{{"resourceVersion":"30"}},"items":[{item}]}}"#),
    ];
    for page in pages {
        let (start, answer) = (Instant::now(), page.clone());
        let script = Script::new(move |ask| match (ask.watch, start.elapsed()) {
            (false, now) if now < MINUTE => list(10, "", &["a", "b"]),
            (false, now) if now < 10 * MINUTE => Answer::Whole(200, Vec::new(), answer.clone()),
            (false, _) => list(20, "", &["b"]),
            (true, now) if now < MINUTE => Answer::Slow(Vec::new(), SECOND),
            (true, _) => status(410, "Expired"),
        });
        let factory = of_script();
        let informer = factory.for_source(config_maps(), Arc::new(Ending404(script)));
        factory.start();
        time::sleep(9 * MINUTE).await;
        assert_eq!(informer.store().len(), 2, "{page}");
        assert!(informer.status().last_error.is_some(), "{page}");
        time::sleep(10 * MINUTE).await;
        assert_eq!(informer.store().len(), 1, "{page}");
    }
}

/// The empty list of Go, which has null for its items.
#[tokio::test(start_paused = true)]
async fn empty_list_of_the_kind_deletes_all() {
    let start = Instant::now();
    let script = Script::new(move |ask| match (ask.watch, start.elapsed()) {
        (false, now) if now < MINUTE => list(10, "", &["a", "b"]),
        (false, _) => {
            let page = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"30"},"items":null}"#;
            Answer::Whole(200, Vec::new(), page.to_owned())
        }
        (true, now) if now < MINUTE => Answer::Slow(Vec::new(), SECOND),
        (true, _) => status(410, "Expired"),
    });
    let factory = of_script();
    let informer = factory.for_source(config_maps(), Arc::new(Ending404(script)));
    factory.start();
    time::sleep(10 * MINUTE).await;
    assert!(informer.store().is_empty());
}

fn of_script() -> SharedCacheFactory {
    SharedCacheFactory::builder(no_client())
        .missing_kind(MissingKind::Wait)
        .default_options(KindOptions::default().initial_list(InitialList::List))
        .build()
}

/// Ends its watches when the script begins to answer 404.
pub(crate) struct Ending404(pub(crate) Script);

impl lariat_cache::Source for Ending404 {
    fn get<'a>(
        &'a self,
        request: &'a lariat_cache::SourceRequest,
    ) -> futures::future::BoxFuture<
        'a,
        Result<http::Response<lariat_cache::SourceBody>, lariat_cache::SourceError>,
    > {
        use http_body_util::BodyExt;
        let answer = self.0.get(request);
        Box::pin(async move {
            let response = answer.await?;
            if !request.watch || !response.status().is_success() {
                return Ok(response);
            }
            // Watches last ten seconds here.
            let end = futures::StreamExt::boxed(futures::stream::once(async {
                time::sleep(Duration::from_secs(10)).await;
                Ok(http_body::Frame::data(bytes::Bytes::new()))
            }));
            Ok(http::Response::new(
                http_body_util::StreamBody::new(end).boxed_unsync(),
            ))
        })
    }
}

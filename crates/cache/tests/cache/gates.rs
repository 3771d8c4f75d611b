//! Gates: they are asked before a write is sent.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lariat_cache::{
    Cache, GateDecision, PendingWrite, Selection, SharedCacheFactory, SharedClientFactory,
    WriteGate, WriteReceipt, WriteResult,
};
use lariat_client::{Http2, from_config};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, Rule};
use lariat_core::ObjectKey;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;

use crate::bench::{MINUTE, cluster, config_maps, no_client};

/// What was asked, and how it ended.
type Log = Arc<Mutex<Vec<String>>>;

/// Treats all writes alike, and writes them down.
struct Strict {
    what: What,
    log: Log,
}

#[derive(Clone, Copy)]
enum What {
    Passes,
    Sends,
    DryRuns,
    Refuses,
}

struct Slip(Log);

impl WriteGate for Strict {
    fn admit(&self, write: &PendingWrite<'_>) -> GateDecision {
        let objects = write.objects();
        let dry_run = if write.is_dry_run() {
            ", as a dry run"
        } else {
            ""
        };
        let line = format!("{write}: {objects:?}{dry_run}");
        self.log.lock().push(line);
        let slip = || Box::new(Slip(Arc::clone(&self.log)));
        match self.what {
            What::Passes => GateDecision::Pass,
            What::Sends => GateDecision::Send(slip()),
            What::DryRuns => GateDecision::DryRun(slip()),
            What::Refuses => GateDecision::Refuse("not on a Friday".into()),
        }
    }
}

impl WriteReceipt for Slip {
    fn ended(self: Box<Self>, end: &WriteResult<'_>) {
        let body = matches!(end, WriteResult::Answered { body: Some(_), .. });
        self.0.lock().push(format!("{end:?}, body: {body}"));
    }
}

struct Bench {
    cluster: Cluster,
    factory: SharedCacheFactory,
    cache: Cache<ConfigMap>,
    api: Api<ConfigMap>,
    log: Log,
}

impl Bench {
    /// A cluster with two ConfigMaps, `a` and `b`; `a` has a label.
    async fn new(what: What) -> Self {
        let cluster = cluster().await;
        let outside: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
        for (name, label) in [("a", "x"), ("b", "y")] {
            let metadata = json!({"name": name, "labels": {"app": label}});
            let created = outside.create(&PostParams::default(), &of(&metadata)).await;
            created.expect("created");
        }
        let factory = SharedCacheFactory::new(cluster.client());
        let cache = factory.for_kind(config_maps()).cache::<ConfigMap>();
        factory.start();
        factory.wait_for_sync(MINUTE).await.expect("synced");
        // Given out before there is a gate.
        let api = Api::namespaced(factory.clients().client(), "default");
        let log = Log::default();
        let gate = Strict {
            what,
            log: Arc::clone(&log),
        };
        assert!(factory.clients().set_gate(Arc::new(gate)));
        Self {
            cluster,
            factory,
            cache,
            api,
            log,
        }
    }

    async fn label(&self, name: &str, value: &str) -> Result<ConfigMap, kube::Error> {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"app": value}}}));
        self.api.patch(name, &PatchParams::default(), &patch).await
    }

    fn cached_label(&self, name: &str) -> Option<String> {
        let key = ObjectKey::namespaced("default", name);
        let object = self.cache.get(&key).expect("it is one")?;
        object.metadata.labels.as_ref()?.get("app").cloned()
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock())
    }
}

fn of(metadata: &serde_json::Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": metadata})).expect("it is one")
}

#[tokio::test(start_paused = true)]
async fn every_write_is_asked_about_and_no_read_or_question() {
    let bench = Bench::new(What::Passes).await;
    let Bench { api, factory, .. } = &bench;
    let (post, delete) = (PostParams::default(), DeleteParams::default());
    api.get("a").await.unwrap();
    api.list(&ListParams::default()).await.unwrap();
    let review: Api<SelfSubjectAccessReview> = Api::all(factory.clients().client());
    let question = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let question = serde_json::from_value(question).unwrap();
    review.create(&post, &question).await.unwrap();
    assert_eq!(bench.take(), [""; 0]);
    api.create(&post, &of(&json!({"name": "c"}))).await.unwrap();
    let c = api.get("c").await.unwrap();
    api.replace("c", &post, &c).await.unwrap();
    bench.label("c", "x").await.unwrap();
    api.delete("c", &delete.clone().dry_run()).await.unwrap();
    api.delete("c", &delete).await.unwrap();
    let labelled = ListParams::default().labels("app=x");
    api.delete_collection(&delete, &labelled).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(factory.clients().client(), "default");
    secrets
        .delete_collection(&delete, &ListParams::default())
        .await
        .unwrap();
    let expected = [
        "create v1 ConfigMap in default: Some(1)",
        "update v1 ConfigMap default/c: Some(1)",
        "patch v1 ConfigMap default/c: Some(1)",
        "delete v1 ConfigMap default/c: Some(1), as a dry run",
        "delete v1 ConfigMap default/c: Some(1)",
        "deletecollection v1 ConfigMap in default: Some(1)",
        "deletecollection v1 secrets in default: None",
    ];
    assert_eq!(bench.take(), expected);
}

#[tokio::test(start_paused = true)]
async fn receipts_get_the_result_and_caches_as_ever() {
    let bench = Bench::new(What::Sends).await;
    bench.label("a", "z").await.unwrap();
    assert_eq!(bench.cached_label("a").as_deref(), Some("z"));
    bench.label("missing", "z").await.unwrap_err();
    let seen = bench.take();
    assert_eq!(seen[1], "Answered(200), body: true");
    assert_eq!(seen[3], "Answered(404), body: true");
}

#[tokio::test(start_paused = true)]
async fn dry_runs_change_neither_the_cluster_nor_the_cache() {
    let bench = Bench::new(What::DryRuns).await;
    let before = bench.api.list(&ListParams::default()).await.unwrap();
    let answer = bench.label("a", "z").await.unwrap();
    assert_eq!(answer.metadata.labels.unwrap()["app"], "z");
    let (post, delete, all) = (
        PostParams::default(),
        DeleteParams::default(),
        ListParams::default(),
    );
    bench
        .api
        .create(&post, &of(&json!({"name": "c"})))
        .await
        .unwrap();
    bench.api.delete("a", &delete).await.unwrap();
    // With a body, and without.
    let precise = delete.grace_period(0);
    bench.api.delete("a", &precise).await.unwrap();
    let bare = http::Request::delete("/api/v1/namespaces/default/configmaps/b");
    let bare = bare.body(Vec::new()).unwrap();
    bench
        .factory
        .clients()
        .client()
        .request_text(bare)
        .await
        .unwrap();
    bench.api.delete_collection(&precise, &all).await.unwrap();
    time::sleep(Duration::from_secs(1)).await;
    let after = bench.api.list(&all).await.unwrap();
    assert_eq!(before.items, after.items);
    assert_eq!(bench.cached_label("a").as_deref(), Some("x"));
    assert_eq!(bench.cache.len(), before.items.len());
    let answered = bench
        .take()
        .into_iter()
        .filter(|line| line.starts_with("Answered"));
    assert_eq!(answered.count(), 6);
}

#[tokio::test(start_paused = true)]
async fn deletions_whose_options_are_not_json_are_no_dry_runs() {
    let bench = Bench::new(What::DryRuns).await;
    let request = http::Request::delete("/api/v1/namespaces/default/configmaps/b");
    let request = request.body(b"k8s\0 ...".to_vec()).unwrap();
    let client = bench.factory.clients().client();
    let refused = client.request_text(request).await.unwrap_err();
    assert!(refused.to_string().contains("are not JSON"), "{refused}");
    assert!(bench.api.get("b").await.is_ok());
    assert_eq!(bench.take()[1], "NotSent, body: false");
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_not_sent_and_says_why() {
    let bench = Bench::new(What::Refuses).await;
    let error = bench.label("a", "z").await.unwrap_err();
    assert!(
        matches!(&error, kube::Error::Service(reason) if reason.to_string() == "not on a Friday")
    );
    assert_eq!(bench.cluster.journal().count("patch", "configmaps"), 0);
    let other = Strict {
        what: What::Passes,
        log: Log::default(),
    };
    assert!(!bench.factory.clients().set_gate(Arc::new(other)));
    bench.label("a", "z").await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_collection_counts_only_if_the_whole_of_it_is_cached() {
    let selection = Selection::all;
    let labels = selection().with_labels("app=x".parse().unwrap());
    let fields = selection().with_fields("metadata.name=a".parse().unwrap());
    let elsewhere = selection().in_namespaces(["shop"]);
    let here = selection().in_namespaces(["default", "shop"]);
    for (selection, expected) in [
        (labels, "None"),
        (fields, "None"),
        (elsewhere, "None"),
        (here, "Some(2)"),
    ] {
        let bench = Bench::new(What::Refuses).await;
        let informer = bench.factory.for_kind(config_maps());
        let faults = bench.cluster.faults();
        let silent = ["list", "watch"].map(|verb| Rule::new(Action::NoAnswer).verb(verb));
        let silent = silent.map(|rule| faults.add(rule));
        informer.select(selection.clone());
        let (delete, all) = (DeleteParams::default(), ListParams::default());
        let api = &bench.api;
        // Until it has been read again, the cache has not synced.
        api.delete_collection(&delete, &all).await.unwrap_err();
        assert!(bench.take()[0].ends_with(": None"), "{selection:?}");
        for rule in silent {
            faults.remove(rule);
        }
        assert!(informer.synced().await);
        api.delete_collection(&delete, &all).await.unwrap_err();
        let asked = bench.take();
        assert!(asked[0].ends_with(expected), "{asked:?}: {selection:?}");
        let everywhere: Api<ConfigMap> = Api::all(bench.factory.clients().client());
        let path = http::Request::delete("/api/v1/configmaps").body(Vec::new());
        let refused = everywhere.into_client().request_text(path.unwrap()).await;
        refused.unwrap_err();
        let asked = bench.take();
        assert!(asked[0].ends_with(": None"), "{asked:?}: {selection:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_collection_of_a_cache_that_is_not_kept_up_to_date_is_not_counted() {
    let bench = Bench::new(What::Refuses).await;
    bench.factory.stop().await;
    let (delete, all) = (DeleteParams::default(), ListParams::default());
    let refused = bench.api.delete_collection(&delete, &all).await;
    refused.unwrap_err();
    assert!(bench.take()[0].ends_with(": None"));
    assert_eq!(bench.cache.len(), 2, "it can still be read");
}

#[tokio::test(start_paused = true)]
async fn the_query_of_a_deletion_with_a_body_is_no_dry_run() {
    let bench = Bench::new(What::Passes).await;
    let client = bench.factory.clients().client();
    let path = |name| format!("/api/v1/namespaces/default/configmaps/{name}?dryRun=All");
    for (name, body) in [("a", "{}"), ("b", "")] {
        let request = http::Request::delete(path(name));
        let request = request.body(body.as_bytes().to_vec()).unwrap();
        client.request_text(request).await.unwrap();
    }
    let expected = [
        "delete v1 ConfigMap default/a: Some(1)",
        "delete v1 ConfigMap default/b: Some(1), as a dry run",
    ];
    assert_eq!(bench.take(), expected);
    assert_eq!(bench.cached_label("a"), None, "it is deleted");
    assert_eq!(bench.api.get_opt("a").await.unwrap(), None);
    assert!(bench.api.get_opt("b").await.unwrap().is_some());
}

#[tokio::test]
async fn a_write_that_met_no_server_was_not_sent() {
    let config = || kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
    let ours = [Http2::Negotiated, Http2::PriorKnowledge, Http2::Off];
    let mut clients = vec![no_client()];
    for http2 in ours {
        clients.push(from_config(config(), http2).await.unwrap());
    }
    for client in clients {
        let clients = SharedClientFactory::new(client);
        let log = Log::default();
        let gate = Strict {
            what: What::Sends,
            log: Arc::clone(&log),
        };
        assert!(clients.set_gate(Arc::new(gate)));
        let api: Api<ConfigMap> = Api::namespaced(clients.client(), "default");
        let error = api.delete("a", &DeleteParams::default()).await;
        error.unwrap_err();
        let log = log.lock();
        assert_eq!(log[1..], ["NotSent, body: false"], "{log:?}");
    }
}

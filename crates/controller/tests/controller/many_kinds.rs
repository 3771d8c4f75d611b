//! Handlers of all kinds that match, while kinds are added and removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use lariat_cache::Metadata;
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_controller::{Context, HandlerOptions, Outcome};
use lariat_core::Gvk;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time;

use crate::bench::{Bench, SECOND, settle};

/// The calls of a handler of many kinds, in order: kind, key and whether the object exists.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, String, bool)>>>);

impl Seen {
    fn handler(&self) -> impl lariat_controller::Handler<Metadata> {
        let seen = self.clone();
        move |cx: Context<Metadata>| {
            let exists = cx.raw().is_some();
            let is_known = exists || cx.deleted().is_ok_and(|last| last.is_some());
            let entry = (cx.gvk().kind().to_owned(), cx.key().to_string(), exists);
            if is_known {
                seen.0.lock().push(entry);
            }
            async { Ok(Outcome::done()) }
        }
    }

    fn of(&self, kind: &str) -> Vec<(String, bool)> {
        let seen = self.0.lock();
        let of_kind = seen.iter().filter(|(each, ..)| each == kind);
        of_kind
            .map(|(_, key, exists)| (key.clone(), *exists))
            .collect()
    }
}

fn crd(kind: &str) -> CustomResourceDefinition {
    let plural = format!("{}s", kind.to_lowercase());
    serde_json::from_value(json!({
        "metadata": {"name": format!("{plural}.demo.dev")},
        "spec": {
            "group": "demo.dev", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object",
                    "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    }))
    .expect("it is one")
}

pub(crate) async fn define(bench: &Bench, kind: &str) {
    let api: Api<CustomResourceDefinition> = Api::all(bench.cluster.client());
    api.create(&PostParams::default(), &crd(kind))
        .await
        .expect("defined");
}

pub(crate) async fn create(bench: &Bench, kind: &str, name: &str) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("demo.dev", "v1", kind));
    let api: Api<DynamicObject> =
        Api::namespaced_with(bench.cluster.client(), "default", &resource);
    let object = DynamicObject::new(name, &resource);
    api.create(&PostParams::default(), &object)
        .await
        .expect("created");
}

#[tokio::test(start_paused = true)]
async fn every_kind_that_can_be_watched_is_handled_deletions_included() {
    let bench = Bench::new().await;
    let seen = Seen::default();
    let registration = bench
        .factory
        .for_all_kinds(|_| true)
        .view()
        .register_handler("audit", seen.handler())
        .unwrap();
    assert!(registration.kinds().is_empty());
    bench.create("a").await;
    bench.start().await;
    time::sleep(5 * SECOND).await;
    let kinds = registration.kinds();
    let names: BTreeSet<&str> = kinds.iter().map(Gvk::kind).collect();
    for kind in [
        "ConfigMap",
        "Pod",
        "Node",
        "Deployment",
        "CustomResourceDefinition",
    ] {
        assert!(names.contains(kind), "{kind} of {names:?}");
    }
    assert!(!names.contains("TokenReview"), "it cannot be listed");
    assert_eq!(seen.of("ConfigMap"), [("default/a".into(), true)]);
    bench.delete("a").await;
    settle().await;
    assert_eq!(
        seen.of("ConfigMap").last().unwrap(),
        &("default/a".into(), false)
    );
    let journal = bench.cluster.journal();
    let mut watches: BTreeMap<String, usize> = BTreeMap::new();
    for request in journal
        .requests()
        .iter()
        .filter(|request| request.verb == "watch")
    {
        *watches
            .entry(format!("{}/{}", request.group, request.resource))
            .or_default() += 1;
    }
    assert!(
        watches.values().all(|count| *count == 1),
        "one watch each: {watches:?}"
    );
    registration.deregister().await;
    let before = seen.0.lock().len();
    bench.create("b").await;
    settle().await;
    assert_eq!(seen.0.lock().len(), before);
}

#[tokio::test(start_paused = true)]
async fn kinds_that_are_defined_later_are_handled_and_let_go_with_their_crd() {
    let bench = Bench::new().await;
    let seen = Seen::default();
    let ours = bench
        .factory
        .for_all_kinds(|kind| kind.gvk().group() == "demo.dev");
    let registration = ours
        .view()
        .register_handler("audit", seen.handler())
        .unwrap();
    bench.start().await;
    define(&bench, "Widget").await;
    define(&bench, "Gadget").await;
    time::sleep(5 * SECOND).await;
    assert_eq!(registration.kinds().len(), 2, "{registration:?}");
    create(&bench, "Widget", "w").await;
    create(&bench, "Gadget", "g").await;
    settle().await;
    assert_eq!(seen.of("Widget"), [("default/w".into(), true)]);
    assert_eq!(seen.of("Gadget"), [("default/g".into(), true)]);
    let api: Api<CustomResourceDefinition> = Api::all(bench.cluster.client());
    api.delete("widgets.demo.dev", &DeleteParams::default())
        .await
        .unwrap();
    time::sleep(120 * SECOND).await;
    assert_eq!(
        seen.of("Widget").last().unwrap(),
        &("default/w".into(), false)
    );
    assert_eq!(registration.kinds(), [Gvk::new("demo.dev", "v1", "Gadget")]);
    define(&bench, "Widget").await;
    time::sleep(5 * SECOND).await;
    create(&bench, "Widget", "w2").await;
    settle().await;
    assert_eq!(
        seen.of("Widget").last().unwrap(),
        &("default/w2".into(), true)
    );
}

/// The deletions of the kind's objects wait for a paused handler, but not for ever.
#[tokio::test(start_paused = true)]
async fn a_kind_that_ends_while_its_handler_is_paused_is_kept_for_a_while() {
    for resumes in [true, false] {
        let bench = Bench::new().await;
        let seen = Seen::default();
        let ours = bench
            .factory
            .for_all_kinds(|kind| kind.gvk().group() == "demo.dev");
        let registered = ours.view().register_handler("audit", seen.handler());
        let registration = registered.unwrap();
        bench.start().await;
        define(&bench, "Widget").await;
        time::sleep(5 * SECOND).await;
        create(&bench, "Widget", "w").await;
        settle().await;
        let widgets = bench.factory.for_kind(Gvk::new("demo.dev", "v1", "Widget"));
        widgets.pause("audit").unwrap();
        let api: Api<CustomResourceDefinition> = Api::all(bench.cluster.client());
        api.delete("widgets.demo.dev", &DeleteParams::default())
            .await
            .unwrap();
        time::sleep(40 * SECOND).await;
        assert_eq!(seen.of("Widget"), [("default/w".into(), true)]);
        assert_eq!(registration.kinds().len(), 1);
        if resumes {
            widgets.resume("audit").unwrap();
        }
        time::sleep(120 * SECOND).await;
        let last = seen.of("Widget").last().cloned().unwrap();
        assert_eq!(last, ("default/w".into(), !resumes));
        assert!(registration.kinds().is_empty());
        assert!(widgets.resume("audit").is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_read_holds_up_neither_the_others_nor_a_start() {
    let bench = Bench::new().await;
    let refuse = Refusal::new(http::StatusCode::FORBIDDEN);
    let rule = Rule::new(Action::Refuse(refuse)).resource("secrets");
    bench.cluster.faults().add(rule);
    let seen = Seen::default();
    let core = bench
        .factory
        .for_all_kinds(|kind| ["ConfigMap", "Secret"].contains(&kind.gvk().kind()));
    core.view()
        .register_handler("audit", seen.handler())
        .unwrap();
    bench.create("a").await;
    for _ in 0..2 {
        bench.start().await;
        time::sleep(5 * SECOND).await;
        bench.factory.stop().await.unwrap();
    }
    assert_eq!(seen.of("ConfigMap"), [("default/a".into(), true)]);
    bench.cluster.faults().clear();
    let api: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "s"}})).unwrap();
    api.create(&PostParams::default(), &secret).await.unwrap();
    bench.start().await;
    time::sleep(60 * SECOND).await;
    assert_eq!(seen.of("Secret"), [("default/s".into(), true)]);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_in_one_kind_leaves_that_kind_out_and_says_so() {
    let bench = Bench::new().await;
    bench.record("audit");
    let seen = Seen::default();
    let core = bench
        .factory
        .for_all_kinds(|kind| ["ConfigMap", "Secret"].contains(&kind.gvk().kind()));
    let registration = core
        .view()
        .register_handler("audit", HandlerOptions::default().handler(seen.handler()))
        .unwrap();
    bench.start().await;
    time::sleep(SECOND).await;
    assert_eq!(registration.kinds(), [Gvk::new("", "v1", "Secret")]);
    let refused = registration.refused();
    assert_eq!(refused.len(), 1);
    assert!(
        refused[0]
            .1
            .to_string()
            .contains("ConfigMap already has a handler named \"audit\"")
    );
}

#[tokio::test(start_paused = true)]
async fn all_kinds_and_one_kind_share_a_controller() {
    let bench = Bench::new().await;
    let calls = bench.record("mine");
    let seen = Seen::default();
    let all = bench
        .factory
        .for_all_kinds(|kind| kind.gvk().kind() == "ConfigMap");
    all.view()
        .register_handler("audit", seen.handler())
        .unwrap();
    bench.create("a").await;
    bench.start().await;
    time::sleep(SECOND).await;
    assert_eq!((calls.len(), seen.of("ConfigMap").len()), (1, 1));
    assert_eq!(bench.cluster.journal().count("watch", "configmaps"), 1);
    let names: Vec<_> = bench
        .status()
        .handlers
        .iter()
        .map(|each| each.name.to_string())
        .collect();
    assert_eq!(names, ["mine", "audit"]);
    let _: lariat_controller::SharedController<ConfigMap> = bench.config_maps.clone();
}

#[tokio::test(start_paused = true)]
async fn kinds_of_a_group_that_does_not_answer_stay_and_others_are_followed() {
    let bench = Bench::new().await;
    // One group can only fail to respond if discovery asks for each group separately.
    let legacy = Rule::new(Action::LegacyDiscovery);
    bench.cluster.faults().add(legacy);
    define(&bench, "Widget").await;
    // Not wanted, but keeps the group in the list of groups.
    define(&bench, "Gadget").await;
    time::sleep(SECOND).await;
    let seen = Seen::default();
    let all = bench
        .factory
        .for_all_kinds(|kind| ["ConfigMap", "Widget"].contains(&kind.gvk().kind()));
    let registration = all
        .view()
        .register_handler("audit", seen.handler())
        .unwrap();
    bench.start().await;
    time::sleep(SECOND).await;
    assert_eq!(registration.kinds().len(), 2);
    create(&bench, "Widget", "w").await;
    // In a discovery, the core kinds and the lists of groups are served, but no group.
    let down = Refusal::new(http::StatusCode::SERVICE_UNAVAILABLE);
    let rule = Rule::new(Action::Refuse(down))
        .verb("get")
        .resource("")
        .skip(1);
    let rule = bench.cluster.faults().add(rule);
    let api: Api<CustomResourceDefinition> = Api::all(bench.cluster.client());
    api.delete("widgets.demo.dev", &DeleteParams::default())
        .await
        .unwrap();
    time::sleep(20 * SECOND).await;
    assert!(
        bench.cluster.faults().hits(rule) > 0,
        "groups did not answer"
    );
    assert_eq!(
        registration.kinds().len(),
        2,
        "nothing follows from silence"
    );
    bench.create("a").await;
    settle().await;
    assert_eq!(seen.of("ConfigMap"), [("default/a".into(), true)]);
    bench.cluster.faults().clear();
    time::sleep(120 * SECOND).await;
    assert_eq!(registration.kinds(), [Gvk::new("", "v1", "ConfigMap")]);
}

#[tokio::test(start_paused = true)]
async fn a_scoped_handler_of_all_kinds_leaves_them_all() {
    let bench = Bench::new().await;
    let seen = Seen::default();
    let scope = tokio_util::sync::CancellationToken::new();
    let registration = bench
        .factory
        .for_all_kinds(|_| true)
        .view()
        .register_handler(
            "audit",
            HandlerOptions::default()
                .until(scope.clone())
                .handler(seen.handler()),
        )
        .unwrap();
    bench.start().await;
    time::sleep(SECOND).await;
    assert!(registration.kinds().len() > 10);
    scope.cancel();
    settle().await;
    bench.create("a").await;
    time::sleep(60 * SECOND).await;
    assert!(registration.kinds().is_empty());
    assert!(bench.factory.status().is_empty());
    assert!(seen.of("ConfigMap").is_empty());
}

/// Serves versions of the CRD of a kind; `v1` is stored.
async fn serve(bench: &Bench, kind: &str, versions: &[(&str, bool)]) {
    let api: Api<CustomResourceDefinition> = Api::all(bench.cluster.client());
    let spec = &crd(kind).spec;
    let versions = versions.iter().map(|(name, served)| {
        let mut version = spec.versions[0].clone();
        (version.name, version.served) = ((*name).to_owned(), *served);
        version.storage = *name == "v1";
        version
    });
    let patch = json!({"spec": {"versions": versions.collect::<Vec<_>>()}});
    let name = format!("{}.demo.dev", spec.names.plural);
    api.patch(&name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .expect("patched");
}

#[tokio::test(start_paused = true)]
async fn blind_kind_keeps_the_handler_of_all_kinds_for_its_objects() {
    let bench = Bench::new().await;
    let seen = Seen::default();
    let ours = bench
        .factory
        .for_all_kinds(|kind| kind.gvk().group() == "demo.dev");
    let registration = ours
        .view()
        .register_handler("audit", seen.handler())
        .unwrap();
    bench.start().await;
    define(&bench, "Widget").await;
    time::sleep(5 * SECOND).await;
    create(&bench, "Widget", "a").await;
    create(&bench, "Widget", "b").await;
    settle().await;
    serve(&bench, "Widget", &[("v1", false)]).await;
    time::sleep(1200 * SECOND).await;
    let exist = [("default/a".into(), true), ("default/b".into(), true)];
    assert_eq!(seen.of("Widget"), exist);
    assert_eq!(registration.kinds().len(), 1, "the kind may come back");
    serve(&bench, "Widget", &[("v1", true)]).await;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("demo.dev", "v1", "Widget"));
    let api: Api<DynamicObject> =
        Api::namespaced_with(bench.cluster.client(), "default", &resource);
    api.delete("b", &DeleteParams::default()).await.unwrap();
    time::sleep(600 * SECOND).await;
    assert_eq!(seen.of("Widget")[2..], [("default/b".into(), false)]);

    // Another version has a handler for the same objects.
    serve(&bench, "Widget", &[("v1", false), ("v2", true)]).await;
    time::sleep(600 * SECOND).await;
    assert_eq!(registration.kinds(), [Gvk::new("demo.dev", "v2", "Widget")]);
    assert_eq!(seen.of("Widget")[3..], [("default/a".into(), true)]);
}

/// A subscriber that is called while a kind is added asks for the kinds.
struct AsksForKinds {
    registration: Arc<Mutex<Option<lariat_controller::KindsRegistration>>>,
    adding: Mutex<std::sync::mpsc::Receiver<()>>,
    answer: Mutex<Option<oneshot::Sender<usize>>>,
}

impl lariat_cache::Subscriber for AsksForKinds {
    fn changed(&self, _: &[lariat_cache::Change]) {
        let Some(answer) = self.answer.lock().take() else {
            return;
        };
        let _ = self
            .adding
            .lock()
            .recv_timeout(std::time::Duration::from_secs(30));
        let kinds = self
            .registration
            .lock()
            .as_ref()
            .map(|registration| registration.kinds().len());
        let _ = answer.send(kinds.unwrap_or_default());
    }
}

/// A handler that says when its options are read, which happens once for each kind that is added.
struct SaysWhenAdded(Mutex<std::sync::mpsc::Sender<()>>);

impl lariat_controller::Handler<Metadata> for SaysWhenAdded {
    async fn handle(&self, _: Context<Metadata>) -> lariat_controller::HandlerResult {
        Ok(Outcome::done())
    }

    fn options(&self) -> HandlerOptions {
        let _ = self.0.lock().send(());
        HandlerOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn kinds_subscriber_reads_kinds_while_one_is_added() {
    let bench = Bench::new().await;
    let (added, adding) = std::sync::mpsc::channel();
    let (answer, answered) = oneshot::channel();
    let registration = bench
        .factory
        .for_all_kinds(|kind| kind.gvk().kind() == "ConfigMap")
        .view()
        .register_handler("audit", SaysWhenAdded(Mutex::new(added)))
        .unwrap();
    // The options were read for the registration as well.
    while adding.try_recv().is_ok() {}
    let registration = Arc::new(Mutex::new(Some(registration)));
    bench.create("a").await;
    let informer = bench.config_maps.cache().informer().optional();
    let _subscription = informer.subscribe(Arc::new(AsksForKinds {
        registration: Arc::clone(&registration),
        adding: Mutex::new(adding),
        answer: Mutex::new(Some(answer)),
    }));
    bench.start().await;
    let kinds = time::timeout(60 * SECOND, answered).await;
    assert_eq!(
        kinds
            .expect("it does not wait for itself")
            .expect("it was asked"),
        0
    );
    let registration = registration.lock().take().expect("it is there");
    registration.deregister().await;
}

#[tokio::test(start_paused = true)]
async fn predicate_that_panics_for_one_kind_keeps_no_other_out() {
    let bench = Bench::new().await;
    let seen = Seen::default();
    let ours = bench.factory.for_all_kinds(|kind| {
        assert_ne!(kind.gvk().kind(), "Odd");
        kind.gvk().group() == "demo.dev"
    });
    let registered = ours.view().register_handler("audit", seen.handler());
    let registration = registered.expect("the name is free");
    bench.start().await;
    define(&bench, "Odd").await;
    time::sleep(5 * SECOND).await;
    define(&bench, "Later").await;
    time::sleep(600 * SECOND).await;
    let kinds = registration.kinds();
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.kind()).collect();
    assert_eq!(kinds, ["Later"]);
}

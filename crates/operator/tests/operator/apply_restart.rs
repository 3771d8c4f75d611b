//! Tests of sets after a restart: unchanged objects are recognized, and others repaired.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use lariat_cluster::journal::Mark;
use lariat_controller::{Outcome, SharedControllerFactory};
use lariat_operator::{Desired, Operator, Reconcile};
use serde_json::{Value, json};

use crate::apply_rig::{Rig, config, service};
use crate::apply_stale::define;
use crate::bench::{Bench, Widget, settle};

/// Returns a Deployment whose quantities the API server writes in another form.
fn deployment() -> Value {
    let limits = json!({"cpu": "0.1", "memory": "1024Mi"});
    let container = json!({"name": "web", "image": "web", "resources": {"limits": limits},
        "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 0, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}}})
}

fn secret() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"},
        "stringData": {"password": "hunter2"}})
}

/// Applies objects; returns when the applying process ended.
async fn applied(wanted: Vec<Value>) -> (Rig, Mark) {
    let rig = Rig::watching().await;
    let count = wanted.len();
    rig.want(wanted);
    rig.bench.create("a", 1).await;
    settle().await;
    assert_eq!(rig.calls()[0], format!("{count} created"));
    rig.bench.operator.stop().await.expect("stopped");
    let mark = rig.cluster().journal().mark();
    (rig, mark)
}

/// Returns the number of requests with a verb since a mark.
fn count(rig: &Rig, since: Mark, verb: &str) -> usize {
    let journal = rig.cluster().journal();
    journal.select().since(since).verb(verb).count()
}

async fn merge(rig: &Rig, name: &str, patch: Value) {
    let params = PatchParams::default();
    let api: Api<Deployment> = Api::namespaced(rig.cluster().client(), "default");
    let patched = api.patch(name, &params, &Patch::Merge(patch)).await;
    patched.expect("patched");
}

#[tokio::test(start_paused = true)]
async fn what_is_as_wanted_is_read_once_and_not_written() {
    let wanted = vec![
        config("web", "1"),
        service("web", 80),
        deployment(),
        secret(),
    ];
    let (mut rig, mark) = applied(wanted).await;
    rig.restart(true).await;
    assert_eq!(rig.calls()[0], "4 unchanged");
    assert_eq!(count(&rig, mark, "patch"), 0);
    assert_eq!(count(&rig, mark, "get"), 4, "one each");
    for _ in 0..3 {
        rig.kick().await;
    }
    assert_eq!(count(&rig, mark, "get"), 4, "only once");
}

#[tokio::test(start_paused = true)]
async fn unwatched_kinds_are_not_written_either() {
    let rig = Rig::blind().await;
    rig.want([config("web", "1"), deployment(), secret()]);
    rig.bench.create("a", 1).await;
    settle().await;
    let mark = rig.cluster().journal().mark();
    for _ in 0..3 {
        rig.kick().await;
    }
    assert_eq!(count(&rig, mark, "patch"), 0);
    assert_eq!(rig.calls().pop().unwrap(), "3 unchanged");
}

#[tokio::test(start_paused = true)]
async fn what_is_cached_with_its_content_takes_no_request() {
    let bench = Bench::new().await;
    let apply = |factory: &SharedControllerFactory| {
        let config_maps = factory.for_object::<ConfigMap>().cache();
        move |cx: Reconcile<Widget>| {
            let config_maps = config_maps.clone();
            async move {
                config_maps.synced().await;
                config_maps.get(&crate::bench::key("web"))?;
                cx.apply(Desired::new().with_value(config("web", "1")))
                    .await?;
                Ok(Outcome::done())
            }
        }
    };
    let start = async |factory: &SharedControllerFactory| {
        let operator = Operator::new("widgeteer", factory);
        let reconciler = operator
            .reconciler("applies", &factory.for_object::<Widget>())
            .owns(&factory.for_object::<ConfigMap>());
        reconciler.register(apply(factory)).expect("registered");
        operator.start(2).await.expect("started");
        settle().await;
        operator
    };
    bench.create("a", 1).await;
    let first = start(&bench.factory).await;
    first.stop().await.unwrap();
    let journal = bench.cluster.journal();
    assert_eq!(journal.count("patch", "configmaps"), 1);
    let mark = journal.mark();
    let factory = SharedControllerFactory::builder(bench.cluster.client()).build();
    let second = start(&factory).await;
    second.stop().await.unwrap();
    let since = journal.select().since(mark).resource("configmaps");
    let verbs: Vec<String> = since.requests().into_iter().map(|each| each.verb).collect();
    assert_eq!(verbs, ["watch"]);
}

#[tokio::test(start_paused = true)]
async fn what_others_changed_meanwhile_is_repaired() {
    let (mut rig, _) = applied(vec![config("web", "1"), deployment()]).await;
    let params = PatchParams::default();
    let theirs = Patch::Merge(json!({"data": {"key": "theirs"}}));
    let api = rig.config_maps();
    api.patch("web", &params, &theirs).await.unwrap();
    let container =
        json!({"name": "web", "image": "web", "resources": {"limits": {"cpu": "200m"}}});
    merge(
        &rig,
        "web",
        json!({"spec": {"template": {"spec": {"containers": [container]}}}}),
    )
    .await;
    rig.restart(true).await;
    assert_eq!(rig.calls()[0], "2 changed");
    assert_eq!(
        rig.config_map("web").await.unwrap().data.unwrap()["key"],
        "1"
    );
    let api: Api<Deployment> = Api::namespaced(rig.cluster().client(), "default");
    let web = json!(api.get("web").await.unwrap());
    let limits = web.pointer("/spec/template/spec/containers/0/resources/limits");
    assert_eq!(limits, Some(&json!({"cpu": "100m", "memory": "1Gi"})));
}

/// Defines Gadgets, whose specs have a map of objects.
async fn define_gadgets(rig: &Rig) -> Api<DynamicObject> {
    let mut definition = lariat_cluster::testing::crd("gadgets.dev", "v1", "Gadget")
        .value()
        .clone();
    let pool = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    let pools = json!({"type": "object", "additionalProperties": pool});
    let spec = json!({"type": "object", "properties": {"pools": pools}});
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "properties": {"spec": spec}});
    define(rig, &definition).await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("gadgets.dev", "v1", "Gadget"));
    Api::namespaced_with(rig.cluster().client(), "default", &kind)
}

#[tokio::test(start_paused = true)]
async fn an_entry_of_a_map_whose_members_others_changed_is_repaired() {
    let mut rig = Rig::blind().await;
    let gadgets = define_gadgets(&rig).await;
    let pools = |size: i64| json!({"pools": {"x": {"size": size}}});
    rig.want([
        json!({"apiVersion": "gadgets.dev/v1", "kind": "Gadget", "metadata": {"name": "g"},
        "spec": pools(1)}),
    ]);
    rig.bench.create("a", 1).await;
    settle().await;
    assert_eq!(rig.calls()[0], "1 created");
    let theirs = Patch::Merge(json!({"spec": pools(2)}));
    let params = PatchParams::default();
    let theirs = gadgets.patch("g", &params, &theirs).await.unwrap();
    // The entry stays ours, but nothing in it.
    let managed = json!(theirs.metadata.managed_fields);
    let entries = managed.as_array().unwrap();
    let ours = entries.iter().find(|each| each["operation"] == "Apply");
    let ours = ours.and_then(|ours| ours.pointer("/fieldsV1/f:spec/f:pools/f:x"));
    assert_eq!(ours, Some(&json!({})));
    rig.restart(false).await;
    assert_eq!(rig.calls()[0], "1 changed");
    let gadget = gadgets.get("g").await.unwrap();
    assert_eq!(gadget.data["spec"], pools(1));
    rig.restart(false).await;
    assert_eq!(rig.calls()[0], "1 unchanged");
}

#[tokio::test(start_paused = true)]
async fn what_others_added_meanwhile_is_left_alone() {
    let (mut rig, mark) = applied(vec![deployment()]).await;
    let more = json!({"name": "sidecar", "image": "sidecar"});
    let patch = json!({"metadata": {"finalizers": ["demo.dev/hold"], "labels": {"their": "label"}},
        "spec": {"template": {"spec": {"containers": [more]}}}});
    let params = PatchParams::default();
    let api: Api<Deployment> = Api::namespaced(rig.cluster().client(), "default");
    let patched = api.patch("web", &params, &Patch::Strategic(patch)).await;
    let containers = patched
        .unwrap()
        .spec
        .unwrap()
        .template
        .spec
        .unwrap()
        .containers;
    assert_eq!(containers.len(), 2);
    rig.restart(true).await;
    assert_eq!(rig.calls()[0], "1 unchanged");
    let journal = rig.cluster().journal();
    assert_eq!(
        journal.select().since(mark).verb("patch").count(),
        1,
        "theirs"
    );
}

#[tokio::test(start_paused = true)]
async fn a_value_of_a_secret_that_others_changed_is_repaired() {
    let (mut rig, mark) = applied(vec![secret()]).await;
    let api: Api<k8s_openapi::api::core::v1::Secret> =
        Api::namespaced(rig.cluster().client(), "default");
    let theirs = Patch::Merge(json!({"stringData": {"password": "theirs"}}));
    api.patch("key", &PatchParams::default(), &theirs)
        .await
        .unwrap();
    rig.restart(true).await;
    assert_eq!(rig.calls()[0], "1 changed");
    assert_eq!(count(&rig, mark, "patch"), 2);
    let key = api.get("key").await.unwrap();
    assert_eq!(key.data.unwrap()["password"].0, b"hunter2");
    let mark = key.metadata.annotations.unwrap()["lariat.dev/applied"].clone();
    // Another value with the same annotation, so the value cannot be guessed from it.
    let mut other = secret();
    other["stringData"]["password"] = json!("hunter3");
    rig.apply([other]).await;
    let key = api.get("key").await.unwrap();
    assert_eq!(key.data.unwrap()["password"].0, b"hunter3");
    assert_eq!(
        key.metadata.annotations.unwrap()["lariat.dev/applied"],
        mark
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_next_release_wants_otherwise_is_applied() {
    let mut both = config("web", "1");
    both["data"]["more"] = json!("2");
    let (mut rig, _) = applied(vec![both]).await;
    rig.want([config("web", "1")]);
    rig.restart(true).await;
    assert_eq!(rig.calls()[0], "1 changed");
    assert_eq!(rig.config_map("web").await.unwrap().data.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_wanted_as_it_was_read_is_not_changed_by_its_annotation() {
    let (mut rig, mark) = applied(vec![config("web", "1")]).await;
    let web = rig.config_map("web").await.unwrap();
    let mut copy = config("web", "1");
    copy["metadata"]["annotations"] = json!(web.metadata.annotations);
    assert_ne!(copy["metadata"]["annotations"], Value::Null);
    rig.want([copy]);
    rig.restart(true).await;
    rig.kick().await;
    assert_eq!(count(&rig, mark, "patch"), 0);
    let now = rig.config_map("web").await.unwrap();
    let (now, before) = (
        now.metadata.annotations.unwrap(),
        web.metadata.annotations.unwrap(),
    );
    assert_eq!(now.len(), before.len());
}

//! Tests of sets with stale caches, and of kinds whose served versions change.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PropagationPolicy};
use kube::core::{ApiResource, GroupVersionKind};
use lariat_cluster::faults::{Action as Fault, After, Rule};
use serde_json::{Value, json};
use tokio::time;

use crate::apply_rig::{Rig, config, in_default, service};
use crate::bench::{SECOND, key, settle};

/// Checks that the set neither took nor changed objects of others, nor deletes them with its owner.
async fn assert_left_alone(rig: &Rig) {
    let error = rig.failure();
    assert!(error.contains("does not belong to this owner"), "{error}");
    rig.bench.delete("a").await;
    time::sleep(60 * SECOND).await;
    let web = rig.config_map("web").await.expect("it stays");
    assert_eq!(web.data.expect("data")["key"], "theirs");
    assert_eq!(web.metadata.labels, None);
}

#[tokio::test(start_paused = true)]
async fn what_a_cache_does_not_show_yet_is_not_taken() {
    let rig = Rig::falling_behind("configmaps").await;
    time::sleep(2 * SECOND).await;
    rig.create(in_default(config("web", "theirs"))).await;
    rig.want([config("web", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    assert_left_alone(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn what_another_client_created_again_is_not_taken() {
    let rig = Rig::falling_behind("configmaps").await;
    rig.want([config("web", "1")]);
    rig.bench.create("a", 1).await;
    time::sleep(2 * SECOND).await;
    assert_eq!(rig.last().unwrap().objects().len(), 1);
    let api = rig.config_maps();
    api.delete("web", &DeleteParams::default()).await.unwrap();
    rig.create(in_default(config("web", "theirs"))).await;
    rig.apply([config("web", "2")]).await;
    assert_left_alone(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_unnoticed_is_created_again() {
    let rig = Rig::falling_behind("configmaps").await;
    rig.want([config("web", "1")]);
    rig.bench.create("a", 1).await;
    time::sleep(2 * SECOND).await;
    let api = rig.config_maps();
    api.delete("web", &DeleteParams::default()).await.unwrap();
    rig.apply([config("web", "2")]).await;
    assert_eq!(rig.calls()[0], "1 created");
    let web = rig.config_map("web").await.unwrap();
    assert_eq!(web.data.unwrap()["key"], "2");
}

#[tokio::test(start_paused = true)]
async fn what_vanishes_is_not_created_again_for_an_owner_that_is_gone() {
    let rig = Rig::falling_behind("widgets").await;
    rig.want([config("web", "1")]);
    rig.bench.create("a", 1).await;
    time::sleep(2 * SECOND).await;
    assert_eq!(rig.writes("configmaps"), 1);
    // The garbage collector follows, and the cache still has the owner.
    rig.bench.delete("a").await;
    time::sleep(20 * SECOND).await;
    assert_eq!(rig.writes("configmaps"), 1);
    assert!(rig.config_map("web").await.is_none());
    let error = rig.failure();
    assert!(
        error.contains("it no longer exists; nothing was applied"),
        "{error}"
    );
    // A normal race, so neither a failure nor an error in the log.
    let status = rig.bench.widgets.status().expect("it runs");
    assert!(status.handlers.iter().all(|handler| handler.failures == 0));
}

/// The garbage collector removes the reference before the cache shows the deletion.
///
/// That change calls the reconciler.
#[tokio::test(start_paused = true)]
async fn orphaned_object_gets_no_reference_to_deleted_owner() {
    for (finalizers, expected) in [
        (json!([]), "it no longer exists; nothing was applied"),
        (json!(["demo.dev/waits"]), "its owner is being deleted"),
    ] {
        let rig = Rig::falling_behind("widgets").await;
        rig.want([config("web", "1")]);
        rig.bench.create("a", 1).await;
        rig.bench
            .merge("a", json!({"metadata": {"finalizers": finalizers}}))
            .await;
        time::sleep(2 * SECOND).await;
        let orphaning = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Orphan),
            ..DeleteParams::default()
        };
        rig.bench.api.delete("a", &orphaning).await.unwrap();
        time::sleep(5 * SECOND).await;
        assert!(rig.failure().contains(expected), "{}", rig.failure());
        if rig.bench.get("a").await.is_some() {
            rig.bench
                .merge("a", json!({"metadata": {"finalizers": []}}))
                .await;
        }
        time::sleep(20 * SECOND).await;
        let web = rig.config_map("web").await.expect("it stays");
        assert_eq!(web.owner_references(), []);
        let status = rig.bench.widgets.status().expect("it runs");
        assert!(status.handlers.iter().all(|handler| handler.failures == 0));
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_is_faster_keeps_what_is_created() {
    for rig in [Rig::watching().await, Rig::blind().await] {
        let slow = Rule::new(Fault::Delay(5 * SECOND))
            .resource("configmaps")
            .verb("patch");
        rig.cluster().faults().add(slow.times(1));
        rig.want([config("web", "1")]);
        rig.bench.create("a", 1).await;
        settle().await;
        rig.create(in_default(config("web", "theirs"))).await;
        time::sleep(6 * SECOND).await;
        assert_left_alone(&rig).await;
    }
}

/// However soon before: times in objects are in whole seconds.
#[tokio::test(start_paused = true)]
async fn what_another_client_creates_meanwhile_is_not_taken_though_no_field_conflicts() {
    for (delay, adopts) in [(2, false), (50, false), (2, true)] {
        for rig in [Rig::watching().await, Rig::blind().await] {
            rig.setup(move |set| set.adopts(adopts));
            let slow = Rule::new(Fault::Delay(delay * SECOND / 10))
                .resource("configmaps")
                .verb("patch");
            rig.cluster().faults().add(slow.times(1));
            rig.want([config("web", "1")]);
            rig.bench.create("a", 1).await;
            settle().await;
            let mut theirs = in_default(config("web", "theirs"));
            theirs["data"] = json!({"other": "theirs"});
            rig.create(theirs).await;
            let created = rig.config_map("web").await.expect("created");
            time::sleep(6 * SECOND).await;
            if adopts {
                assert_eq!(rig.calls()[0], "1 changed");
                continue;
            }
            let error = rig.failure();
            assert!(error.contains("does not belong to this owner"), "{error}");
            rig.bench.delete("a").await;
            time::sleep(60 * SECOND).await;
            // It has not been written since, not even to undo something.
            assert_eq!(rig.config_map("web").await, Some(created));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_process_of_ours_creates_meanwhile_is_not_emptied_if_others_write_to_it_too() {
    for rig in [Rig::watching().await, Rig::blind().await] {
        rig.want([config("web", "1")]);
        rig.bench.create("a", 1).await;
        settle().await;
        let mut ours = json!(rig.config_map("web").await.expect("created"));
        ours["apiVersion"] = "v1".into();
        ours["kind"] = "ConfigMap".into();
        let metadata = ours["metadata"].as_object_mut().expect("metadata");
        let applied = ["name", "labels", "annotations", "ownerReferences"];
        metadata.retain(|field, _| applied.contains(&&**field));
        let slow = Rule::new(Fault::Delay(5 * SECOND))
            .resource("configmaps")
            .verb("patch");
        rig.cluster().faults().add(slow.times(1));
        let api = rig.config_maps();
        api.delete("web", &DeleteParams::default()).await.unwrap();
        settle().await;
        // The watch makes it be applied immediately.
        rig.bench.widgets.enqueue(&key("a"));
        settle().await;
        assert!(rig.config_map("web").await.is_none());
        let params = PatchParams::apply("widgeteer");
        let applied = api.patch("web", &params, &Patch::Apply(&ours)).await;
        applied.expect("applied");
        let note = json!({"metadata": {"annotations": {"injected": "yes"}}});
        let params = PatchParams::default();
        let injected = api.patch("web", &params, &Patch::Merge(&note)).await;
        injected.expect("injected");
        time::sleep(6 * SECOND).await;
        rig.last().expect("applied");
        let web = rig.config_map("web").await.expect("it stays");
        assert_eq!(json!(web.data), json!({"key": "1"}));
        assert_eq!(json!(web.metadata.labels), ours["metadata"]["labels"]);
        assert_eq!(web.metadata.annotations.unwrap()["injected"], "yes");
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_process_noted_is_kept() {
    let rig = Rig::falling_behind("widgets").await;
    rig.want([config("web", "1")]);
    rig.bench.create("a", 1).await;
    time::sleep(2 * SECOND).await;
    rig.calls();
    let (key, _) = rig.noted().await.remove(0);
    let web = rig.config_map("web").await.unwrap();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key",
        "labels": web.metadata.labels, "ownerReferences": web.metadata.owner_references}});
    let secrets: Api<Secret> = Api::namespaced(rig.cluster().client(), "default");
    let (params, patch) = (PatchParams::apply("widgeteer"), Patch::Apply(secret));
    secrets.patch("key", &params, &patch).await.unwrap();
    let theirs = json!({"metadata": {"annotations": {key: "v1/ConfigMap,v1/Secret"}}});
    rig.bench.merge("a", theirs).await;
    settle().await;
    rig.calls();
    rig.apply([config("web", "1"), service("web", 80)]).await;
    assert_eq!(rig.calls()[0], "1 created, 1 unchanged");
    rig.kick().await;
    assert!(
        secrets.get_opt("key").await.unwrap().is_none(),
        "it was looked for"
    );
    rig.kick().await;
    assert_eq!(rig.noted().await[0].1, "v1/ConfigMap,v1/Service");
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_not_forgotten_because_a_cache_does_not_show_its_objects() {
    let mut rig = Rig::watching().await;
    let caches = |request: &lariat_cluster::RecordedRequest| {
        matches!(&*request.verb, "list" | "watch") && !request.query.contains("labelSelector")
    };
    for behind in [Fault::Freeze, Fault::HangWatch(After::Time(SECOND))] {
        let rule = Rule::new(behind).resource("configmaps");
        rig.cluster().faults().add(rule.when(caches));
    }
    rig.want([config("one", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.want([]);
    rig.restart(true).await;
    time::sleep(5 * SECOND).await;
    assert!(rig.config_map("one").await.is_none());
}

/// Defines Gadgets in two versions; the older one may not be served.
fn gadgets(serves_old: bool) -> Value {
    let mut definition = lariat_cluster::testing::crd("gadgets.dev", "v1", "Gadget")
        .value()
        .clone();
    let mut old = definition["spec"]["versions"][0].clone();
    old["name"] = json!("v1beta1");
    old["storage"] = json!(false);
    old["served"] = json!(serves_old);
    let versions = definition["spec"]["versions"].as_array_mut();
    versions.expect("versions").push(old);
    definition
}

pub(crate) async fn define(rig: &Rig, definition: &Value) {
    let api: Api<CustomResourceDefinition> = Api::all(rig.cluster().client());
    let (params, patch) = (
        PatchParams::apply("kubectl").force(),
        Patch::Apply(definition),
    );
    let applied = api.patch("gadgets.gadgets.dev", &params, &patch);
    applied.await.expect("defined");
    time::sleep(5 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn objects_are_pruned_though_their_version_is_not_served_any_more() {
    for restarts in [true, false] {
        let mut rig = Rig::blind().await;
        define(&rig, &gadgets(true)).await;
        let gadget = json!({"apiVersion": "gadgets.dev/v1beta1", "kind": "Gadget", "metadata": {"name": "g"}});
        rig.want([gadget]);
        rig.bench.create("a", 1).await;
        settle().await;
        assert_eq!(rig.calls()[0], "1 created");
        define(&rig, &gadgets(false)).await;
        rig.want([]);
        if restarts {
            rig.restart(false).await
        } else {
            rig.kick().await
        }
        let kind = GroupVersionKind::gvk("gadgets.dev", "v1", "Gadget");
        let api: Api<DynamicObject> = Api::namespaced_with(
            rig.cluster().client(),
            "default",
            &ApiResource::from_gvk(&kind),
        );
        assert_eq!(api.get_opt("g").await.unwrap(), None, "{restarts}");
        rig.kick().await;
        assert_eq!(rig.noted().await.len(), 0, "{restarts}");
    }
}

#[tokio::test(start_paused = true)]
async fn object_of_a_kind_without_served_version_is_not_gone_until_it_is_pruned() {
    let mut rig = Rig::blind().await;
    let gadgets = |is_served: bool| {
        let mut definition = gadgets(false);
        definition["spec"]["versions"][0]["served"] = is_served.into();
        definition
    };
    define(&rig, &gadgets(true)).await;
    let gadget =
        json!({"apiVersion": "gadgets.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}});
    rig.want([gadget]);
    rig.bench.create("a", 1).await;
    settle().await;
    define(&rig, &gadgets(false)).await;
    rig.want([]);
    rig.restart(false).await;
    let last = rig.last().unwrap();
    assert!(!last.is_gone(), "the object is stored");
    assert_eq!(last.to_string(), "gadgets.dev/v1 Gadget not served");
    define(&rig, &gadgets(true)).await;
    // A discovery is reused for half a minute.
    time::sleep(60 * SECOND).await;
    for _ in 0..3 {
        rig.kick().await;
    }
    assert!(rig.last().unwrap().is_gone());
    assert_eq!(rig.noted().await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_at_all_stays_noted() {
    let mut rig = Rig::blind().await;
    define(&rig, &gadgets(true)).await;
    let gadget =
        json!({"apiVersion": "gadgets.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}});
    rig.want([gadget]);
    rig.bench.create("a", 1).await;
    settle().await;
    let api: Api<CustomResourceDefinition> = Api::all(rig.cluster().client());
    let name = "gadgets.gadgets.dev";
    api.delete(name, &DeleteParams::default()).await.unwrap();
    time::sleep(10 * SECOND).await;
    rig.want([]);
    rig.restart(false).await;
    let last = rig.last().unwrap();
    assert!(!last.is_gone(), "only the CRD tells that they are deleted");
    assert_eq!(last.unserved(), ["gadgets.dev/v1/Gadget".parse().unwrap()]);
    assert_eq!(rig.noted().await[0].1, "gadgets.dev/v1/Gadget");
    rig.cluster().journal().clear();
    for _ in 0..10 {
        rig.kick().await;
    }
    let requests = rig.cluster().journal().requests();
    let asked = requests.iter().filter(|request| request.path == "/apis");
    assert!(
        asked.count() <= 1,
        "what is served is not asked for in each call"
    );
}

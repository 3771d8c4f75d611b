//! Tests of sets of objects: applied, kept and pruned, with no request if nothing changes.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use lariat_cluster::RecordedRequest;
use lariat_cluster::faults::{Action as Fault, Rule};
use lariat_cluster::testing::deployment;
use lariat_controller::Outcome;
use lariat_operator::{Action, Desired, Reconcile};
use serde_json::json;
use tokio::time;

use crate::apply_rig::{Rig, config, service};
use crate::bench::{Bench, SECOND, Widget, settle};

#[tokio::test(start_paused = true)]
async fn what_is_wanted_is_created_with_a_reference_to_its_owner() {
    let rig = Rig::watching().await;
    rig.want([service("web", 80), config("web", "1")]);
    let owner = rig.bench.create("a", 1).await;
    settle().await;
    let applied = rig.calls();
    assert_eq!(applied[0], "2 created");
    let web = rig.config_map("web").await.unwrap();
    let references = web.metadata.owner_references.unwrap();
    assert_eq!(references.len(), 1);
    assert_eq!(Some(&references[0].uid), owner.metadata.uid.as_ref());
    assert_eq!(references[0].controller, Some(true));
    assert_eq!(references[0].block_owner_deletion, Some(true));
    let labels = web.metadata.labels.unwrap();
    assert_eq!(labels["lariat.dev/set"], "things");
    assert_eq!(labels["lariat.dev/operator"], "widgeteer");
    let managers = web.metadata.managed_fields.unwrap();
    assert_eq!(managers[0].manager.as_deref(), Some("widgeteer"));
    assert_eq!(rig.noted().await[0].1, "v1/ConfigMap,v1/Service");
}

#[tokio::test(start_paused = true)]
async fn configuration_comes_before_what_reads_it_and_goes_after_it() {
    let rig = Rig::watching().await;
    rig.bench.create("a", 1).await;
    settle().await;
    rig.apply([service("web", 80), config("web", "1")]).await;
    rig.apply([]).await;
    let journal = rig.cluster().journal();
    let deleted: Vec<String> = journal
        .requests()
        .into_iter()
        .filter(|request| request.verb == "delete")
        .map(|request| request.resource)
        .collect();
    assert_eq!(deleted, ["services", "configmaps"]);
    let applied: Vec<String> = journal
        .requests()
        .into_iter()
        .filter(|request| request.verb == "patch" && request.resource != "widgets")
        .map(|request| request.resource)
        .collect();
    assert_eq!(applied, ["configmaps", "services"]);
    let last = rig.last().unwrap();
    assert!(last.is_gone(), "{last}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_while_nothing_changes() {
    let rig = Rig::watching().await;
    rig.want([config("one", "1"), config("two", "2"), service("web", 80)]);
    rig.bench.create("a", 1).await;
    settle().await;
    assert_eq!(rig.calls()[0], "3 created");
    rig.cluster().journal().clear();
    for size in 2..5 {
        rig.bench.resize("a", size).await;
        settle().await;
    }
    assert_eq!(rig.calls(), ["3 unchanged"; 3]);
    let journal = rig.cluster().journal();
    for resource in ["configmaps", "services"] {
        assert_eq!(journal.select().resource(resource).count(), 0, "{resource}");
    }
    // The three of the test itself.
    assert_eq!(journal.select().resource("widgets").count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_status_is_no_reason_to_send() {
    let rig = Rig::watching().await;
    rig.want([deployment("web", 0).value().clone()]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.calls();
    rig.cluster().journal().clear();
    let deployments: Api<Deployment> = Api::namespaced(rig.cluster().client(), "default");
    let condition = json!({"type": "Odd", "status": "True"});
    let status = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    let params = PatchParams::default();
    deployments
        .patch_status("web", &params, &status)
        .await
        .unwrap();
    settle().await;
    let calls = rig.calls();
    assert!(!calls.is_empty(), "it was looked at");
    assert!(calls.iter().all(|call| call == "1 unchanged"), "{calls:?}");
    assert_eq!(rig.writes("deployments"), 1, "the status");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_comes_between_is_not_reported_as_a_change_of_the_set() {
    let rig = Rig::watching().await;
    rig.want([deployment("web", 0).value().clone()]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.calls();
    let ours = |request: &RecordedRequest| request.query.contains("fieldManager=widgeteer");
    let slow = Rule::new(Fault::Delay(SECOND)).resource("deployments");
    rig.cluster().faults().add(slow.when(ours));
    // Like the controller of Deployments: an annotation, which is a reason to apply again, and then a status.
    let deployments: Api<Deployment> = Api::namespaced(rig.cluster().client(), "default");
    let params = PatchParams::default();
    let revision = Patch::Merge(json!({"metadata": {"annotations": {"revision": "1"}}}));
    let annotated = deployments.patch("web", &params, &revision);
    annotated.await.unwrap();
    settle().await;
    let status = Patch::Merge(json!({"status": {"observedGeneration": 1}}));
    let written = deployments.patch_status("web", &params, &status);
    written.await.unwrap();
    time::sleep(3 * SECOND).await;
    let calls = rig.calls();
    assert!(!calls.is_empty(), "it was looked at");
    assert!(calls.iter().all(|call| call == "1 unchanged"), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn drift_is_repaired_and_what_others_add_is_left_alone() {
    let rig = Rig::watching().await;
    rig.want([config("web", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    let drift = json!({"data": {"key": "other", "more": "theirs"}});
    let api = rig.config_maps();
    let params = PatchParams::default();
    api.patch("web", &params, &Patch::Merge(drift))
        .await
        .unwrap();
    settle().await;
    let data = rig.config_map("web").await.unwrap().data.unwrap();
    assert_eq!(data["key"], "1");
    assert_eq!(data["more"], "theirs");
    api.delete("web", &DeleteParams::default()).await.unwrap();
    settle().await;
    let data = rig.config_map("web").await.unwrap().data.unwrap();
    assert_eq!(data.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_field_that_is_not_wanted_any_more_is_removed() {
    let rig = Rig::watching().await;
    let mut both = config("web", "1");
    both["data"]["more"] = json!("2");
    rig.want([both]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.calls();
    rig.apply([config("web", "1")]).await;
    assert_eq!(rig.calls()[0], "1 changed");
    let data = rig.config_map("web").await.unwrap().data.unwrap();
    assert_eq!(data.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_process_prunes_what_an_earlier_one_applied() {
    for watches in [true, false] {
        let mut rig = if watches {
            Rig::watching().await
        } else {
            Rig::blind().await
        };
        rig.want([config("one", "1"), service("web", 80)]);
        rig.bench.create("a", 1).await;
        settle().await;
        rig.calls();
        // It has no ConfigMap any more, and only the record on the owner names the kind.
        rig.want([service("web", 80)]);
        rig.restart(watches).await;
        let calls = rig.calls();
        let waits = "1 unchanged, v1 ConfigMap default/one is deleted in the next call";
        assert_eq!(calls[..2], [waits, "1 unchanged, 1 pruned"], "{watches}");
        assert!(rig.config_map("one").await.is_none());
        rig.kick().await;
        let noted = rig.noted().await;
        let [(key, kinds)] = noted.as_slice() else {
            panic!("{noted:?}");
        };
        assert!(
            key.starts_with("applied.lariat.dev/widgeteer.things-"),
            "{key}"
        );
        assert_eq!(kinds, "v1/Service");
        rig.apply([]).await;
        rig.kick().await;
        assert!(rig.last().unwrap().is_gone());
        let noted = rig.bench.get("a").await.unwrap().metadata.annotations;
        assert_eq!(noted.unwrap_or_default().len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn kinds_can_be_given_instead_of_being_noted() {
    let mut rig = Rig::watching().await;
    rig.setup(|set| {
        let config_maps = lariat_core::Gvk::new("", "v1", "ConfigMap");
        set.without_annotation().prunes_kind(config_maps)
    });
    rig.want([config("one", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    assert_eq!(rig.bench.get("a").await.unwrap().metadata.annotations, None);
    rig.want([]);
    rig.restart(true).await;
    assert!(rig.config_map("one").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_set_under_a_new_name_takes_over_what_the_old_one_had() {
    let rig = Rig::watching().await;
    rig.want([config("one", "1"), config("two", "2")]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.calls();
    rig.rename("better");
    rig.apply([config("one", "1")]).await;
    assert_eq!(rig.calls()[0], "1 changed");
    assert!(rig.config_map("two").await.is_some(), "no set prunes it");
    rig.setup(|set| set.renamed_from("things"));
    rig.kick().await;
    assert!(rig.config_map("two").await.is_none());
    let one = rig.config_map("one").await.unwrap();
    assert_eq!(one.metadata.labels.unwrap()["lariat.dev/set"], "better");
    let noted = rig.noted().await;
    assert_eq!(noted.len(), 1, "{noted:?}");
    assert!(
        noted[0]
            .0
            .starts_with("applied.lariat.dev/widgeteer.better-"),
        "{noted:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_note_of_a_former_name_moves_though_no_kind_is_new() {
    let mut rig = Rig::watching().await;
    rig.want([config("one", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.setup(|set| set.renamed_from("things"));
    rig.rename("better");
    rig.kick().await;
    let noted = rig.noted().await;
    assert_eq!(noted.len(), 1, "{noted:?}");
    assert!(
        noted[0]
            .0
            .starts_with("applied.lariat.dev/widgeteer.better-"),
        "{noted:?}"
    );
    // The former name can be left out from now on.
    rig.setup(|set| set);
    rig.want([]);
    rig.restart(true).await;
    assert!(rig.config_map("one").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_unused_watch_ends_though_sets_are_applied() {
    let rig = Rig::watching().await;
    rig.want([config("one", "1")]);
    rig.bench.create("a", 1).await;
    let caches = rig.bench.factory.caches();
    let pods = lariat_core::Gvk::new("", "v1", "Pod");
    let used = caches.for_kind(&pods);
    assert!(used.synced().await);
    drop(used);
    for _ in 0..60 {
        rig.kick().await;
        time::sleep(10 * SECOND).await;
    }
    assert!(caches.existing(&pods).is_none());
    assert_eq!(rig.last().unwrap().count(Action::Unchanged), 1);
}

#[tokio::test(start_paused = true)]
async fn sets_of_other_names_and_owners_are_left_alone() {
    let rig = Rig::watching().await;
    rig.want([config("one", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.rename("other");
    rig.apply([config("two", "2")]).await;
    assert!(rig.config_map("one").await.is_some());
    rig.want([config("three", "3")]);
    rig.bench.create("b", 1).await;
    settle().await;
    assert!(rig.config_map("two").await.is_some());
    assert_eq!(
        rig.last().unwrap().count(Action::Created),
        0,
        "the last call found it"
    );
}

#[tokio::test(start_paused = true)]
async fn unwatched_kinds_are_applied_and_pruned_as_well() {
    let rig = Rig::blind().await;
    rig.want([config("one", "1"), config("two", "2")]);
    rig.bench.create("a", 1).await;
    settle().await;
    assert_eq!(rig.calls()[0], "2 created");
    rig.apply([config("one", "1")]).await;
    assert_eq!(rig.calls()[0], "1 unchanged, 1 pruned");
    assert_eq!(rig.cluster().journal().count("watch", "configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn typed_and_dynamic_objects_are_applied_in_a_set_named_after_the_reconciler() {
    let bench = Bench::new().await;
    let config_maps = bench.factory.for_object::<ConfigMap>();
    let reconciler = bench.operator.reconciler("configures", &bench.widgets);
    let registered = reconciler
        .owns(&config_maps)
        .register(|cx: Reconcile<Widget>| async move {
            let metadata = |name: &str| kube::api::ObjectMeta {
                name: Some(name.to_owned()),
                ..Default::default()
            };
            let typed = ConfigMap {
                metadata: metadata("typed"),
                ..ConfigMap::default()
            };
            let dynamic: DynamicObject = serde_json::from_value(config("dynamic", "1"))?;
            let mut desired = Desired::new().with(&typed);
            if cx.object().spec.size > 0 {
                desired = desired.with_dynamic(&dynamic);
            }
            cx.apply(desired).await?;
            Ok(Outcome::done())
        });
    registered.unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    let api: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    let typed = api.get("typed").await.unwrap();
    assert_eq!(
        typed.metadata.labels.unwrap()["lariat.dev/set"],
        "configures"
    );
    assert!(api.get_opt("dynamic").await.unwrap().is_some());
    bench.resize("a", 0).await;
    settle().await;
    assert!(api.get_opt("dynamic").await.unwrap().is_none());
}

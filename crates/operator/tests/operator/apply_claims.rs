//! Tests of claims: a set neither adopts nor deletes the objects of others.

use k8s_openapi::api::core::v1::ConfigMap;
use std::sync::Arc;

use futures::poll;
use kube::api::{Api, Patch, PatchParams};
use lariat_controller::Outcome;
use lariat_operator::{Action, Apply, Desired, Immutable, PlannedAction, Reconcile};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time;

use crate::apply_rig::{Rig, config, in_default, service};
use crate::bench::{SECOND, Widget, settle};

#[tokio::test(start_paused = true)]
async fn what_another_owner_controls_is_not_stolen() {
    for rig in [Rig::watching().await, Rig::blind().await] {
        let mut theirs = in_default(config("web", "theirs"));
        theirs["metadata"]["ownerReferences"] = json!([{"apiVersion": "demo.dev/v1", "kind": "Widget",
            "name": "z", "uid": rig.bench.create("z", 1).await.metadata.uid, "controller": true}]);
        rig.create(theirs).await;
        settle().await;
        rig.calls();
        for adopts in [false, true] {
            rig.setup(move |set| set.adopts(adopts));
            rig.want([config("web", "1"), config("other", "1")]);
            rig.bench.create(&format!("a{adopts}"), 1).await;
            settle().await;
            let error = rig.last().unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("v1 ConfigMap default/web: it exists and is controlled by Widget z"),
                "{text}"
            );
            assert!(!error.is_terminal());
            rig.bench.delete(&format!("a{adopts}")).await;
            settle().await;
        }
        let web = rig.config_map("web").await.unwrap();
        assert_eq!(web.data.unwrap()["key"], "theirs");
    }
}

#[tokio::test(start_paused = true)]
async fn what_exists_is_adopted_only_if_the_set_does_so() {
    let rig = Rig::watching().await;
    rig.create(in_default(config("web", "theirs"))).await;
    rig.want([config("web", "1"), config("other", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    let error = rig.last().unwrap_err();
    assert!(
        error.to_string().contains("does not belong to this owner"),
        "{error}"
    );
    assert_eq!(error.applied().objects().len(), 1, "the other is applied");
    assert_eq!(
        rig.config_map("web").await.unwrap().data.unwrap()["key"],
        "theirs"
    );
    rig.setup(|set| set.adopts(true));
    rig.kick().await;
    let web = rig.config_map("web").await.unwrap();
    assert_eq!(web.data.unwrap()["key"], "1");
    assert!(web.metadata.owner_references.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_copy_with_the_labels_of_the_set_is_not_pruned() {
    for rig in [Rig::watching().await, Rig::blind().await] {
        rig.want([config("web", "1")]);
        rig.bench.create("a", 1).await;
        settle().await;
        let web = rig.config_map("web").await.unwrap();
        let mut copy = in_default(config("copy", "1"));
        copy["metadata"]["labels"] = json!(web.metadata.labels);
        copy["metadata"]["ownerReferences"] = json!(web.metadata.owner_references);
        rig.create(copy).await;
        settle().await;
        rig.apply([]).await;
        assert!(rig.config_map("web").await.is_none());
        assert!(rig.config_map("copy").await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changes_while_it_is_pruned_is_pruned_all_the_same() {
    use lariat_cluster::faults::{Action as Fault, Rule};
    let rig = Rig::watching().await;
    rig.want([config("web", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    let recreate = Fault::Recreate(String::new());
    let rule = Rule::new(recreate)
        .verb("delete")
        .resource("configmaps")
        .times(1);
    rig.cluster().faults().add(rule);
    rig.apply([]).await;
    // A recreated object has the same content, and so belongs to the set too.
    assert!(rig.config_map("web").await.is_none());
    assert_eq!(rig.cluster().journal().count("delete", "configmaps"), 2);
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_owned_need_a_set_without_owner() {
    let rig = Rig::watching().await;
    let outside = || {
        let mut object = config("web", "1");
        object["metadata"]["namespace"] = json!("kube-system");
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "web"}, "rules": []});
        [object, role]
    };
    rig.want(outside());
    rig.bench.create("a", 1).await;
    settle().await;
    let error = rig.last().unwrap_err();
    assert_eq!(error.failures().len(), 2);
    assert!(error.is_terminal());
    assert!(error.to_string().contains("without_owner"), "{error}");
    rig.setup(Apply::without_owner);
    rig.kick().await;
    let api: Api<k8s_openapi::api::core::v1::ConfigMap> =
        Api::namespaced(rig.cluster().client(), "kube-system");
    let web = api.get("web").await.unwrap();
    assert_eq!(web.metadata.owner_references, None);
    rig.apply([]).await;
    assert!(api.get_opt("web").await.unwrap().is_none());
    rig.kick().await;
    assert!(rig.last().unwrap().is_gone());
}

#[tokio::test(start_paused = true)]
async fn fields_of_others_are_named_unless_they_are_taken() {
    let rig = Rig::watching().await;
    rig.want([config("web", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.setup(|set| set.force(false));
    let params = PatchParams::apply("kubectl").force();
    let theirs = in_default(config("web", "2"));
    let api = rig.config_maps();
    api.patch("web", &params, &Patch::Apply(theirs))
        .await
        .unwrap();
    settle().await;
    let error = rig.failure();
    assert!(
        error.contains(".data.key (conflict with \"kubectl\""),
        "{error}"
    );
    assert_eq!(
        rig.config_map("web").await.unwrap().data.unwrap()["key"],
        "2"
    );
    rig.setup(|set| set.force(true));
    rig.kick().await;
    assert_eq!(
        rig.config_map("web").await.unwrap().data.unwrap()["key"],
        "1"
    );
}

fn fixed(value: &str) -> Value {
    let mut object = config("web", value);
    object["immutable"] = json!(true);
    object
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_changed_is_reported_or_replaced() {
    let rig = Rig::watching().await;
    rig.want([fixed("1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.calls();
    rig.apply([fixed("2")]).await;
    let error = rig.last().unwrap_err();
    assert!(!error.is_terminal(), "another client may delete it");
    assert!(
        error.to_string().contains("cannot be changed differ: data"),
        "{error}"
    );
    time::sleep(250 * SECOND).await;
    assert_eq!(rig.calls().len(), 0, "it is not tried again soon");
    time::sleep(100 * SECOND).await;
    assert_eq!(rig.calls().len(), 1);
    rig.setup(|set| set.on_immutable(Immutable::Replace));
    let plan = rig.plan([fixed("2")]).await;
    assert_eq!(plan.count(PlannedAction::Replace), 1, "{plan}");
    rig.kick().await;
    assert_eq!(
        rig.config_map("web").await.unwrap().data.unwrap()["key"],
        "2"
    );
    // One of them was the dry run of the plan.
    assert_eq!(rig.cluster().journal().count("delete", "configmaps"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_binding_to_another_role_is_replaced() {
    let rig = Rig::watching().await;
    rig.setup(|set| set.on_immutable(Immutable::Replace));
    let binding = |role: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "web"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role}})
    };
    rig.want([binding("one")]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.calls();
    rig.apply([binding("two")]).await;
    assert_eq!(rig.last().unwrap().count(Action::Replaced), 1);
}

#[tokio::test(start_paused = true)]
async fn what_the_set_did_not_apply_is_not_deleted_to_be_replaced() {
    let rig = Rig::watching().await;
    rig.want([config("web", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    let web = rig.config_map("web").await.unwrap();
    let mut copy = fixed("theirs");
    copy["metadata"] = json!({"name": "copy", "namespace": "default", "labels": web.metadata.labels,
        "ownerReferences": web.metadata.owner_references});
    rig.setup(|set| set.on_immutable(Immutable::Replace));
    let mut wanted = fixed("ours");
    wanted["metadata"]["name"] = json!("copy");
    rig.create(copy).await;
    rig.apply([config("web", "1"), wanted]).await;
    let error = rig.failure();
    assert!(
        error.contains("default/copy: fields that cannot be changed differ"),
        "{error}"
    );
    let copy = rig.config_map("copy").await.unwrap();
    assert_eq!(copy.data.unwrap()["key"], "theirs");
    assert_eq!(rig.cluster().journal().count("delete", "configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_set_of_another_owner_has_is_not_adopted() {
    let rig = Rig::watching().await;
    let mut theirs = in_default(config("web", "theirs"));
    theirs["metadata"]["labels"] = json!({"lariat.dev/owner-uid": "stranger", "lariat.dev/operator": "widgeteer",
        "lariat.dev/set": "things"});
    rig.create(theirs).await;
    rig.setup(|set| set.adopts(true));
    rig.want([config("web", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    let error = rig.last().unwrap_err();
    assert!(error.failures()[0].error.is_name_taken());
    let text = error.to_string();
    assert!(
        text.contains("another owner, whose uid is \"stranger\""),
        "{text}"
    );
    let web = rig.config_map("web").await.unwrap();
    assert_eq!(web.data.unwrap()["key"], "theirs");
}

#[tokio::test(start_paused = true)]
async fn object_that_cannot_be_adopted_outlives_the_owner() {
    let rig = Rig::watching().await;
    rig.create(in_default(fixed("theirs"))).await;
    rig.setup(|set| set.adopts(true));
    rig.want([fixed("1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    let error = rig.failure();
    assert!(
        error.contains("fields that cannot be changed differ"),
        "{error}"
    );
    let web = rig.config_map("web").await.unwrap().metadata;
    assert_eq!((web.labels, web.owner_references), (None, None));
    rig.bench.delete("a").await;
    time::sleep(5 * SECOND).await;
    assert!(rig.config_map("web").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_replacement_waits_for_finalizers() {
    let rig = Rig::watching().await;
    rig.setup(|set| set.on_immutable(Immutable::Replace));
    rig.want([fixed("1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    let api = rig.config_maps();
    let finalizers = |value: Value| Patch::Merge(json!({"metadata": {"finalizers": value}}));
    let params = PatchParams::default();
    api.patch("web", &params, &finalizers(json!(["demo.dev/hold"])))
        .await
        .unwrap();
    settle().await;
    rig.apply([fixed("2")]).await;
    let error = rig.last().unwrap_err();
    assert!(!error.is_terminal());
    assert!(error.to_string().contains("it is being deleted"), "{error}");
    api.patch("web", &params, &finalizers(json!(null)))
        .await
        .unwrap();
    settle().await;
    assert_eq!(
        rig.config_map("web").await.unwrap().data.unwrap()["key"],
        "2"
    );
}

#[tokio::test(start_paused = true)]
async fn what_takes_time_to_go_is_reported_until_it_is_gone() {
    let rig = Rig::watching().await;
    let mut held = config("web", "1");
    held["metadata"]["finalizers"] = json!(["demo.dev/hold"]);
    rig.want([held]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.apply([]).await;
    rig.kick().await;
    let applied = rig.last().unwrap();
    assert_eq!(applied.count(Action::Pruned), 1);
    assert_eq!(rig.cluster().journal().count("delete", "configmaps"), 1);
    let api = rig.config_maps();
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("web", &PatchParams::default(), &patch)
        .await
        .unwrap();
    settle().await;
    assert!(rig.last().unwrap().is_gone());
}

#[tokio::test(start_paused = true)]
async fn a_plan_shows_what_would_happen_and_writes_nothing() {
    let rig = Rig::watching().await;
    let secret = |value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"},
        "data": {"password": value}})
    };
    rig.want([
        config("one", "1"),
        config("two", "2"),
        service("web", 80),
        secret("b2xk"),
    ]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.cluster().journal().clear();
    let wanted = [
        config("one", "changed"),
        service("web", 80),
        service("new", 1),
        secret("bmV3"),
        json!({}),
    ];
    let plan = rig.plan(wanted.clone()).await;
    assert_eq!(plan.count(PlannedAction::Fail), 1, "{plan}");
    assert_eq!(
        plan.count(PlannedAction::Prune),
        0,
        "nothing is pruned then"
    );
    let plan = rig.plan(wanted.into_iter().take(4)).await;
    let expected = "\
change    v1 ConfigMap default/one
            data.key: \"1\" → \"changed\"
change    v1 Secret default/key
            data.password: (hidden) → (hidden)
unchanged v1 Service default/web
create    v1 Service default/new
prune     v1 ConfigMap default/two";
    assert_eq!(plan.to_string(), expected);
    let journal = rig.cluster().journal();
    let writes = journal.requests().into_iter().filter(|request| {
        // The dry run of a deletion says so in its body.
        !matches!(&*request.verb, "get" | "list" | "watch" | "delete")
            && !request.query.contains("dryRun=All")
    });
    assert_eq!(writes.count(), 0);
    assert!(rig.config_map("two").await.is_some());
}

/// While both are registered, the object stays with the one that wants it.
#[tokio::test(start_paused = true)]
async fn object_of_a_reconciler_that_has_ended_is_taken_over() {
    let rig = Rig::watching().await;
    let factory = &rig.bench.factory;
    let two = rig
        .bench
        .operator
        .reconciler("two", &rig.bench.widgets)
        .owns(&factory.for_object::<ConfigMap>())
        .register(|cx: Reconcile<Widget>| async move {
            let wanted = Desired::new().with_value(config("x", "1"));
            cx.apply_set("of-two").apply(wanted).await?;
            Ok(Outcome::done())
        });
    let two = two.expect("the name is free");
    rig.bench.create("a", 1).await;
    settle().await;
    assert!(rig.config_map("x").await.is_some());
    rig.want([config("x", "2")]);
    rig.kick().await;
    let error = rig.last().expect_err("the other one wants it");
    assert!(error.to_string().contains("of-two"), "{error}");
    two.deregister().await;
    rig.kick().await;
    time::sleep(60 * SECOND).await;
    let x = rig.config_map("x").await.expect("it exists");
    assert_eq!(x.data.expect("it has data")["key"], "2");
}

#[tokio::test(start_paused = true)]
async fn call_that_outlives_its_reconciler_wants_nothing() {
    let rig = Rig::watching().await;
    let go = Arc::new(Notify::new());
    let wait = Arc::clone(&go);
    let two = rig
        .bench
        .operator
        .reconciler("two", &rig.bench.widgets)
        .owns(&rig.bench.factory.for_object::<ConfigMap>())
        .register(move |cx: Reconcile<Widget>| {
            let wait = Arc::clone(&wait);
            async move {
                wait.notified().await;
                let wanted = Desired::new().with_value(config("x", "1"));
                cx.apply_set("of-two").apply(wanted).await?;
                Ok(Outcome::done())
            }
        });
    let two = two.expect("the name is free");
    rig.bench.create("a", 1).await;
    settle().await;
    let mut ending = Box::pin(two.deregister());
    assert!(poll!(ending.as_mut()).is_pending(), "its call is running");
    go.notify_one();
    ending.await;
    assert!(rig.config_map("x").await.is_some());
    rig.want([config("x", "2")]);
    rig.kick().await;
    time::sleep(60 * SECOND).await;
    let x = rig.config_map("x").await.expect("it exists");
    assert_eq!(x.data.expect("it has data")["key"], "2");
}

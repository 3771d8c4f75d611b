//! Tests of steps: each is applied once those before it are ready, and deleted before them.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use lariat_cluster::testing::deployment;
use lariat_controller::Outcome;
use lariat_operator::{
    Apply, Desired, Finalizer, ObjectError, PlannedAction, Reconcile, Step, Waiting,
};
use serde_json::json;
use tokio::time;

use crate::apply_rig::{Rig, config};
use crate::apply_steps_bench::{chain, gate, open, rig_with, there};
use crate::bench::{Bench, SECOND, Widget, key, settle};

#[tokio::test(start_paused = true)]
async fn a_step_begins_once_those_before_it_are_ready() {
    let rig = rig_with(chain()).await;
    assert_eq!(there(&rig).await, ["one"]);
    let applied = rig.last().unwrap();
    assert_eq!(
        applied.to_string(),
        "1 unchanged, step second waits for first; step third waits for second"
    );
    assert!(!applied.is_ready());
    let waiting = Waiting::Step {
        step: "second".to_owned(),
        after: vec!["first".to_owned()],
    };
    assert_eq!(applied.waiting()[0], waiting);
    assert_eq!(
        rig.noted().await[0].1,
        "v1/ConfigMap",
        "noted before anything of it exists"
    );
    let last = rig.bench.widgets.history_of(&key("a")).pop().unwrap();
    let history = last.to_string();
    for text in [
        "applies done after",
        ": v1 ConfigMap default/one: in progress: it is closed; step second waits for first",
    ] {
        assert!(history.contains(text), "{history}");
    }
    // Its change calls the reconciler.
    open(&rig, "one", Some("yes")).await;
    assert_eq!(there(&rig).await, ["one", "two"]);
    open(&rig, "two", Some("yes")).await;
    assert_eq!(there(&rig).await, ["one", "three", "two"]);
    let applied = rig.last().unwrap();
    assert!(
        applied.is_ready() && applied.waiting().is_empty(),
        "{applied}"
    );
    let labels = |name: &'static str| async {
        let labels = rig.config_map(name).await.unwrap().metadata.labels.unwrap();
        labels.get("lariat.dev/order").cloned()
    };
    assert_eq!(labels("one").await, None);
    assert_eq!(labels("three").await.as_deref(), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_and_nothing_is_called_while_it_waits() {
    let rig = rig_with(chain()).await;
    rig.calls();
    rig.cluster().journal().clear();
    time::sleep(100 * SECOND).await;
    assert_eq!(
        rig.calls(),
        [""; 0],
        "the kind is owned, so nothing is looked at again"
    );
    rig.kick().await;
    assert_eq!(rig.writes("configmaps"), 0);
    assert_eq!(rig.cluster().journal().count("get", "configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_step_that_waits_again_are_left_as_they_are() {
    let rig = rig_with(chain()).await;
    open(&rig, "one", Some("yes")).await;
    open(&rig, "two", Some("yes")).await;
    open(&rig, "one", None).await;
    let changed = Desired::new()
        .step(Step::new("first").with_dependent(gate("one")))
        .step(
            Step::new("second")
                .after("first")
                .with_value(config("two", "changed")),
        );
    rig.apply_all(changed.clone()).await;
    let data = rig.config_map("two").await.unwrap().data.unwrap();
    assert_eq!(data["key"], "1");
    assert!(
        rig.config_map("three").await.is_some(),
        "nothing is pruned while a step waits"
    );
    open(&rig, "one", Some("yes")).await;
    let data = rig.config_map("two").await.unwrap().data.unwrap();
    assert_eq!(data["key"], "changed");
    assert!(rig.config_map("three").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_waited_for_by_its_status() {
    let rig = rig_with(
        Desired::new()
            .step(Step::new("server").with_value(deployment("db", 2).value().clone()))
            .step(
                Step::new("client")
                    .after("server")
                    .with_value(config("web", "1")),
            ),
    )
    .await;
    let api: Api<Deployment> = Api::namespaced(rig.cluster().client(), "default");
    let generation = api.get("db").await.unwrap().metadata.generation;
    let write = |available: i64| {
        let status = json!({"status": {"observedGeneration": generation, "replicas": 2,
            "updatedReplicas": 2, "readyReplicas": available, "availableReplicas": available}});
        let api = api.clone();
        async move {
            let status = Patch::Merge(status);
            let written = api
                .patch_status("db", &PatchParams::default(), &status)
                .await;
            written.expect("written");
            settle().await;
        }
    };
    write(1).await;
    assert!(rig.config_map("web").await.is_none());
    let applied = rig.last().unwrap();
    let condition = format!("{:?}", applied.condition("Ready"));
    for text in [
        "\"False\"",
        "\"Waiting\"",
        "apps/v1 Deployment default/db: in progress: 1 of 2 replicas are available",
        "step client waits for server",
    ] {
        assert!(condition.contains(text), "{text}: {condition}");
    }
    write(2).await;
    assert!(rig.config_map("web").await.is_some());
    let condition = format!("{:?}", rig.last().unwrap().condition("Ready"));
    assert!(condition.contains("\"True\""), "{condition}");
}

#[tokio::test(start_paused = true)]
async fn what_has_failed_is_in_the_condition() {
    let rig = rig_with(chain()).await;
    open(&rig, "one", Some("no room")).await;
    let applied = rig.last().unwrap();
    let condition = format!("{:?}", applied.condition("Ready"));
    assert!(condition.contains("\"Failed\""), "{condition}");
    assert!(
        condition.contains("v1 ConfigMap default/one: failed: no room"),
        "{condition}"
    );
    assert_eq!(there(&rig).await, ["one"]);
}

#[tokio::test(start_paused = true)]
async fn steps_are_deleted_in_the_opposite_order_each_once_the_last_is_gone() {
    let mut rig = rig_with(chain()).await;
    open(&rig, "one", Some("yes")).await;
    open(&rig, "two", Some("yes")).await;
    let held = Patch::Merge(json!({"metadata": {"finalizers": ["demo.dev/hold"]}}));
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let (api, params) = (rig.config_maps(), PatchParams::default());
    api.patch("three", &params, &held).await.unwrap();
    settle().await;
    // A process that knows neither the steps nor the objects.
    rig.want_all(Desired::new());
    rig.restart(true).await;
    rig.kick().await;
    let applied = rig.last().unwrap();
    assert_eq!(applied.waiting().len(), 2, "{applied}");
    assert!(!applied.is_gone());
    assert_eq!(there(&rig).await, ["one", "three", "two"]);
    assert!(
        rig.config_map("two")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_none()
    );
    assert_eq!(
        rig.noted().await[0].1,
        "v1/ConfigMap",
        "it is not forgotten"
    );
    api.patch("two", &params, &held).await.unwrap();
    api.patch("three", &params, &free).await.unwrap();
    settle().await;
    assert_eq!(there(&rig).await, ["one", "two"]);
    let applied = rig.last().unwrap();
    assert_eq!(applied.waiting().len(), 1, "{applied}");
    api.patch("two", &params, &free).await.unwrap();
    settle().await;
    assert_eq!(there(&rig).await, [""; 0]);
    rig.kick().await;
    assert!(rig.last().unwrap().is_gone());
    assert_eq!(rig.noted().await, []);
    let requests = rig.cluster().journal().requests();
    let deleted = requests.iter().filter(|request| request.verb == "delete");
    let deleted: Vec<_> = deleted
        .filter_map(|request| request.path.rsplit('/').next())
        .collect();
    assert_eq!(deleted, ["three", "two", "one"]);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_applies_an_empty_set_keeps_the_order() {
    let bench = Bench::new().await;
    let configs = bench.factory.for_object::<ConfigMap>();
    let reconciler = bench
        .operator
        .reconciler("steps", &bench.widgets)
        .owns(&configs);
    let finalizer = Finalizer::new("demo.dev/steps");
    let cleanup = |cx: Reconcile<Widget>| async move {
        let applied = cx.apply(Desired::new()).await?;
        if applied.is_gone() {
            return Ok(Outcome::done());
        }
        Ok(Outcome::requeue_after(SECOND))
    };
    let registered =
        reconciler
            .finalizer(finalizer, cleanup)
            .register(|cx: Reconcile<Widget>| async move {
                let desired = Desired::new()
                    .step(Step::new("low").with_value(config("low", "1")))
                    .step(
                        Step::new("high")
                            .after("low")
                            .with_value(config("high", "1")),
                    );
                cx.apply(desired).await?;
                Ok(Outcome::done())
            });
    registered.unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    bench.delete("a").await;
    time::sleep(5 * SECOND).await;
    assert!(bench.get("a").await.is_none());
    let requests = bench.cluster.journal().requests();
    let deleted = requests.iter().filter(|request| request.verb == "delete");
    let deleted: Vec<_> = deleted
        .filter_map(|request| request.path.rsplit('/').next())
        .collect();
    assert_eq!(deleted, ["a", "high", "low"]);
}

#[tokio::test(start_paused = true)]
async fn preconditions_keep_a_step_waiting_and_conditions_take_it_away() {
    let steps = |wanted: bool, holds: bool| {
        Desired::new()
            .step(
                Step::new("migration")
                    .only_if(wanted)
                    .with_dependent(gate("one")),
            )
            .step(
                Step::new("server")
                    .after("migration")
                    .only_when(holds, "a licence")
                    .with_value(config("two", "1")),
            )
    };
    let rig = rig_with(steps(true, false)).await;
    open(&rig, "one", Some("yes")).await;
    let applied = rig.last().unwrap();
    assert_eq!(
        applied.to_string(),
        "1 unchanged, step server waits: a licence"
    );
    rig.apply_all(steps(true, true)).await;
    assert_eq!(there(&rig).await, ["one", "two"]);
    // The precondition does not hold any more: what is there stays.
    rig.apply_all(steps(true, false)).await;
    assert_eq!(there(&rig).await, ["one", "two"]);
    // A step that is not wanted keeps no other waiting.
    rig.apply_all(steps(false, true)).await;
    assert_eq!(there(&rig).await, ["two"]);
}

#[tokio::test(start_paused = true)]
async fn steps_without_an_order_are_refused_and_nothing_is_applied() {
    let circle = Desired::new()
        .step(Step::new("a").after("b").with_value(config("one", "1")))
        .step(Step::new("b").after("a").with_value(config("two", "1")));
    let unknown = Desired::new().with_value(config("three", "1")).step(
        Step::new("a")
            .after("nothing")
            .with_value(config("one", "1")),
    );
    let rig = rig_with(circle).await;
    let error = rig.last().unwrap_err();
    assert!(error.is_terminal());
    assert!(matches!(
        error.failures()[0].error,
        ObjectError::Steps { .. }
    ));
    assert!(
        error
            .to_string()
            .contains("\"a\", \"b\" wait for each other"),
        "{error}"
    );
    rig.apply_all(unknown).await;
    assert!(
        rig.failure()
            .contains("after \"nothing\", which is not a step")
    );
    assert_eq!(there(&rig).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_plan_has_all_steps() {
    let rig = rig_with(Desired::new()).await;
    let plan = rig.plan_all(chain()).await;
    assert_eq!(plan.count(PlannedAction::Create), 3, "{plan}");
    assert_eq!(there(&rig).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_owned_is_looked_at_again_after_a_delay() {
    let rig = Rig::blind().await;
    rig.want_all(chain());
    rig.bench.create("a", 1).await;
    settle().await;
    assert_eq!(there(&rig).await, ["one"]);
    open(&rig, "one", Some("yes")).await;
    assert_eq!(there(&rig).await, ["one"], "nothing calls");
    time::sleep(11 * SECOND).await;
    assert_eq!(there(&rig).await, ["one", "two"]);
    open(&rig, "two", Some("yes")).await;
    time::sleep(11 * SECOND).await;
    assert_eq!(there(&rig).await, ["one", "three", "two"]);
    rig.calls();
    time::sleep(100 * SECOND).await;
    assert_eq!(rig.calls(), [""; 0], "nothing is waited for any more");
    // Deletions that are waited for are looked at too.
    let held = Patch::Merge(json!({"metadata": {"finalizers": ["demo.dev/hold"]}}));
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let (api, params) = (rig.config_maps(), PatchParams::default());
    api.patch("three", &params, &held).await.unwrap();
    rig.apply_all(Desired::new()).await;
    api.patch("three", &params, &free).await.unwrap();
    time::sleep(11 * SECOND).await;
    assert_eq!(there(&rig).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn applied_objects_are_returned_as_they_are_on_the_server() {
    let rig = Rig::watching().await;
    rig.setup(Apply::reads_content);
    rig.want([config("web", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    let read = || rig.last().unwrap().read::<ConfigMap>(&key("web")).unwrap();
    let created = read().unwrap();
    assert!(created.metadata.uid.is_some());
    let more = Patch::Merge(json!({"data": {"more": "theirs"}}));
    let api = rig.config_maps();
    api.patch("web", &PatchParams::default(), &more)
        .await
        .unwrap();
    settle().await;
    let data = read().unwrap().data.clone().unwrap();
    assert_eq!((&*data["key"], &*data["more"]), ("1", "theirs"));
    rig.cluster().journal().clear();
    rig.kick().await;
    let unchanged = rig.last().unwrap();
    assert!(unchanged.is_unchanged() && unchanged.is_ready());
    assert_eq!(
        rig.cluster().journal().count("get", "configmaps"),
        0,
        "it is remembered"
    );
    assert_eq!(unchanged.read::<ConfigMap>(&key("other")).unwrap(), None);
}

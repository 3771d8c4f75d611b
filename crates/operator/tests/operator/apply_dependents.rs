//! Tests of objects with options of their own: created only, kept, adopted, forced, replaced.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use lariat_cluster::faults::{Action as Fault, Rule};
use lariat_operator::{Action, Dependent, Desired, Immutable, PlannedAction};
use serde_json::{Value, json};
use tokio::time;

use crate::apply_rig::{Rig, config, in_default};
use crate::apply_steps_bench::rig_with;
use crate::bench::{SECOND, settle};

fn password(value: &str) -> Dependent {
    Dependent::value(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"},
        "stringData": {"password": value}}),
    )
    .create_only()
}

async fn password_of(rig: &Rig) -> String {
    let api: Api<Secret> = Api::namespaced(rig.cluster().client(), "default");
    let data = api.get("db").await.expect("there").data.expect("data");
    String::from_utf8(data["password"].0.clone()).expect("text")
}

#[tokio::test(start_paused = true)]
async fn a_generated_password_is_created_once_and_never_changed() {
    let mut rig = rig_with(Desired::new().with_dependent(password("first"))).await;
    assert_eq!(password_of(&rig).await, "first");
    rig.cluster().journal().clear();
    rig.apply_all(Desired::new().with_dependent(password("second")))
        .await;
    assert_eq!(rig.last().unwrap().count(Action::Unchanged), 1);
    rig.restart(true).await;
    rig.kick().await;
    assert_eq!(rig.writes("secrets"), 0);
    assert_eq!(password_of(&rig).await, "first");
    let plan = rig
        .plan_all(Desired::new().with_dependent(password("third")))
        .await;
    assert_eq!(plan.count(PlannedAction::Unchanged), 1, "{plan}");
    // One that is deleted is created again, and one that is not wanted is pruned.
    let api: Api<Secret> = Api::namespaced(rig.cluster().client(), "default");
    api.delete("db", &DeleteParams::default()).await.unwrap();
    settle().await;
    assert_eq!(password_of(&rig).await, "third");
    rig.apply_all(Desired::new()).await;
    assert!(api.get_opt("db").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_password_whose_creation_had_no_answer_stays() {
    let rig = Rig::watching().await;
    let lost = Rule::new(Fault::LoseReply)
        .resource("secrets")
        .verb("patch")
        .times(1);
    rig.cluster().faults().add(lost);
    rig.want_all(Desired::new().with_dependent(password("first")));
    rig.bench.create("a", 1).await;
    rig.want_all(Desired::new().with_dependent(password("second")));
    time::sleep(20 * SECOND).await;
    let first = password_of(&rig).await;
    rig.apply_all(Desired::new().with_dependent(password("third")))
        .await;
    assert_eq!(password_of(&rig).await, first);
}

#[tokio::test(start_paused = true)]
async fn an_adopted_password_keeps_its_value() {
    let rig = Rig::watching().await;
    rig.create(in_default(json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "db"}, "stringData": {"password": "theirs"}})))
        .await;
    rig.want_all(Desired::new().with_dependent(password("ours")));
    rig.bench.create("a", 1).await;
    settle().await;
    assert!(rig.failure().contains("does not belong to this owner"));
    rig.apply_all(Desired::new().with_dependent(password("ours").adopts(true)))
        .await;
    assert_eq!(rig.calls()[0], "1 changed");
    assert_eq!(password_of(&rig).await, "theirs");
    let api: Api<Secret> = Api::namespaced(rig.cluster().client(), "default");
    let meta = api.get("db").await.unwrap().metadata;
    assert_eq!(meta.owner_references.unwrap().len(), 1);
    rig.cluster().journal().clear();
    rig.kick().await;
    assert_eq!(rig.writes("secrets"), 0);
}

fn kept(name: &str, value: &str) -> Dependent {
    Dependent::value(config(name, value)).keep()
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_outlives_its_set_and_its_owner_and_is_taken_over() {
    let rig = rig_with(
        Desired::new()
            .with_dependent(kept("data", "1"))
            .with_value(config("web", "1")),
    )
    .await;
    let meta = rig.config_map("data").await.unwrap().metadata;
    assert_eq!(meta.owner_references.unwrap_or_default(), []);
    rig.apply_all(Desired::new()).await;
    let calls = rig.calls();
    assert!(calls.contains(&"1 pruned, 1 kept".to_owned()), "{calls:?}");
    assert!(rig.config_map("data").await.is_some() && rig.config_map("web").await.is_none());
    rig.kick().await;
    assert!(rig.last().unwrap().is_gone(), "what is kept does not count");
    // It is the set's again, if it is wanted again.
    rig.apply_all(Desired::new().with_dependent(kept("data", "2")))
        .await;
    assert_eq!(
        rig.config_map("data").await.unwrap().data.unwrap()["key"],
        "2"
    );
    rig.bench.delete("a").await;
    time::sleep(5 * SECOND).await;
    assert!(
        rig.config_map("data").await.is_some(),
        "the garbage collector has no reason"
    );
    // A recreated owner takes it over only if it says so.
    rig.bench.create("a", 1).await;
    settle().await;
    assert!(rig.failure().contains("belongs to a set of another owner"));
    rig.apply_all(Desired::new().with_dependent(kept("data", "3").adopts(true)))
        .await;
    assert_eq!(
        rig.config_map("data").await.unwrap().data.unwrap()["key"],
        "3"
    );
    assert!(rig.calls().contains(&"1 changed".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_another_owner_keeps_is_not_taken_over_while_that_owner_exists() {
    let rig = rig_with(Desired::new().with_dependent(kept("data", "1").adopts(true))).await;
    rig.last().unwrap();
    rig.bench.create("b", 1).await;
    settle().await;
    let error = rig.failure();
    assert!(
        error.contains("belongs to a set of demo.dev/v1/Widget default/a, which exists"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_not_kept_any_more_is_pruned() {
    let rig = rig_with(Desired::new().with_dependent(kept("data", "1"))).await;
    rig.apply_all(Desired::new().with_value(config("data", "1")))
        .await;
    let meta = rig.config_map("data").await.unwrap().metadata;
    assert_eq!(meta.owner_references.unwrap().len(), 1);
    rig.apply_all(Desired::new()).await;
    assert!(rig.config_map("data").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn one_object_is_adopted_and_another_is_not() {
    let rig = Rig::watching().await;
    for name in ["one", "two"] {
        rig.create(in_default(config(name, "theirs"))).await;
    }
    rig.want_all(
        Desired::new()
            .with_dependent(Dependent::value(config("one", "1")).adopts(true))
            .with_value(config("two", "1")),
    );
    rig.bench.create("a", 1).await;
    settle().await;
    let error = rig.last().unwrap_err();
    assert_eq!(error.failures().len(), 1, "{error}");
    assert!(
        error.to_string().contains("default/two: it exists"),
        "{error}"
    );
    assert_eq!(
        rig.config_map("one").await.unwrap().data.unwrap()["key"],
        "1"
    );
}

#[tokio::test(start_paused = true)]
async fn one_object_is_forced_and_another_is_not() {
    let both = |force: bool| {
        Desired::new().with_dependent(Dependent::value(config("one", "1")).force(force))
    };
    let rig = rig_with(both(false)).await;
    let api = rig.config_maps();
    let theirs = Patch::Apply(in_default(config("one", "theirs")));
    api.patch("one", &PatchParams::apply("them").force(), &theirs)
        .await
        .unwrap();
    settle().await;
    assert!(rig.failure().contains("other field managers own .data.key"));
    rig.apply_all(both(true)).await;
    assert_eq!(
        rig.config_map("one").await.unwrap().data.unwrap()["key"],
        "1"
    );
}

#[tokio::test(start_paused = true)]
async fn one_object_is_replaced_if_immutable_and_what_is_kept_never() {
    let immutable = |name: &str, value: &str| {
        let mut object = config(name, value);
        object["immutable"] = Value::Bool(true);
        Dependent::value(object)
    };
    let all = |value: &str| {
        Desired::new()
            .with_dependent(immutable("one", value).on_immutable(Immutable::Replace))
            .with_dependent(immutable("two", value))
            .with_dependent(
                immutable("three", value)
                    .on_immutable(Immutable::Replace)
                    .keep(),
            )
    };
    let rig = rig_with(all("1")).await;
    rig.apply_all(all("2")).await;
    let error = rig.last().unwrap_err();
    assert_eq!(error.failures().len(), 2, "{error}");
    let value = |map: Option<ConfigMap>| map.unwrap().data.unwrap()["key"].clone();
    assert_eq!(value(rig.config_map("one").await), "2");
    assert_eq!(value(rig.config_map("two").await), "1");
    assert_eq!(value(rig.config_map("three").await), "1");
}

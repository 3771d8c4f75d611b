//! Tests of owners, operators and reconcilers that change: recreated, renamed, of other kinds, of other shards.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy};
use lariat_cluster::faults::{Action as Fault, Rule};
use lariat_controller::{Outcome, SharedControllerFactory};
use lariat_lease::Lease;
use lariat_operator::{Dependent, Desired, Operator, Reconcile, Step};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;

use crate::apply_rig::{Rig, config};
use crate::apply_steps_bench::rig_with;
use crate::bench::{Bench, SECOND, Widget, settle};
use crate::protection_bench::{Options, Program, World};

fn kept(value: &str) -> Dependent {
    Dependent::value(config("data", value)).keep().adopts(true)
}

fn orphaning() -> DeleteParams {
    DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    }
}

async fn data_of(rig: &Rig) -> String {
    let map = rig.config_map("data").await.expect("there");
    map.data.expect("data")["key"].clone()
}

#[tokio::test(start_paused = true)]
async fn kept_object_of_living_owner_of_other_kind_is_refused() {
    let rig = rig_with(Desired::new().with_dependent(kept("1"))).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(rig.cluster().client(), "default");
    let account = json!({"metadata": {"name": "b"}});
    let account = serde_json::from_value(account).expect("an account");
    accounts
        .create(&PostParams::default(), &account)
        .await
        .unwrap();
    let errors: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&errors);
    let factory = SharedControllerFactory::builder(rig.cluster().client()).build();
    let operator = Operator::new("widgeteer", &factory);
    operator
        .reconciler("things", &factory.for_object::<ServiceAccount>())
        .register(move |cx: Reconcile<ServiceAccount>| {
            let log = Arc::clone(&log);
            async move {
                if cx.key().name() == "b" {
                    let applied = cx.apply(Desired::new().with_dependent(kept("2"))).await;
                    log.lock()
                        .extend(applied.as_ref().err().map(ToString::to_string));
                    applied?;
                }
                Ok(Outcome::done())
            }
        })
        .unwrap();
    operator.start(1).await.unwrap();
    settle().await;
    let errors = errors.lock().clone();
    let expected = "it belongs to a set of demo.dev/v1/Widget default/a, which exists";
    assert!(errors[0].contains(expected), "{errors:?}");
    assert_eq!(data_of(&rig).await, "1");
}

#[tokio::test(start_paused = true)]
async fn owner_of_unserved_kind_is_no_proof_that_it_is_gone() {
    let rig = rig_with(Desired::new().with_dependent(kept("1"))).await;
    rig.bench.api.delete("a", &orphaning()).await.unwrap();
    settle().await;
    let stranger = |owner: &str| {
        json!({"metadata": {"annotations": {"lariat.dev/owner": owner},
            "labels": {"lariat.dev/owner-uid": "7"}}})
    };
    for (owner, expected) in [
        (
            "gone.dev/v1/Thing default/x",
            "it is unknown whether that owner exists",
        ),
        ("nonsense", "whose name is not recorded"),
        ("v1/Pod default/a/b", "whose name is not recorded"),
    ] {
        let patch = Patch::Merge(stranger(owner));
        let (api, params) = (rig.config_maps(), PatchParams::default());
        api.patch("data", &params, &patch).await.unwrap();
        rig.bench.create("a", 1).await;
        settle().await;
        let error = rig.failure();
        assert!(error.contains(expected), "{owner}: {error}");
        assert_eq!(data_of(&rig).await, "1");
        rig.bench.api.delete("a", &orphaning()).await.unwrap();
        settle().await;
    }
    // An owner that is known to be gone, in a version that is no longer served.
    let patch = Patch::Merge(stranger("demo.dev/v0/Widget default/x"));
    let (api, params) = (rig.config_maps(), PatchParams::default());
    api.patch("data", &params, &patch).await.unwrap();
    rig.want_all(Desired::new().with_dependent(kept("2")));
    rig.bench.create("a", 1).await;
    settle().await;
    rig.last().unwrap();
    assert_eq!(data_of(&rig).await, "2");
}

#[tokio::test(start_paused = true)]
async fn object_that_is_taken_over_meanwhile_is_not_taken_again() {
    let rig = rig_with(Desired::new().with_dependent(kept("1"))).await;
    rig.bench.api.delete("a", &orphaning()).await.unwrap();
    settle().await;
    // Between the read of the former owner and the write, another client changes the object.
    let slow = Rule::new(Fault::Delay(SECOND))
        .resource("configmaps")
        .verb("patch");
    let slow = rig.cluster().faults().add(slow.times(1));
    rig.want_all(Desired::new().with_dependent(kept("2")));
    rig.bench.create("a", 1).await;
    time::sleep(SECOND / 2).await;
    rig.cluster().faults().remove(slow);
    let theirs = json!({"metadata": {"labels": {"lariat.dev/owner-uid": "7"},
        "annotations": {"lariat.dev/owner": "gone.dev/v1/Thing default/x"}}});
    let (api, params) = (rig.config_maps(), PatchParams::default());
    api.patch("data", &params, &Patch::Merge(theirs))
        .await
        .unwrap();
    time::sleep(5 * SECOND).await;
    assert!(rig.failure().contains("unknown whether that owner exists"));
    assert_eq!(data_of(&rig).await, "1");
}

#[tokio::test(start_paused = true)]
async fn kept_object_of_owner_in_other_shard_is_refused() {
    let bench = Bench::new().await;
    for number in 0..8 {
        bench.create(&format!("w{number}"), 1).await;
    }
    let errors: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut running = Vec::new();
    for name in ["one", "two"] {
        let lease = Lease::new("widgeteer").identity(name);
        let factory = SharedControllerFactory::builder(bench.cluster.client())
            .sharding(lease)
            .build();
        let operator = Operator::new("widgeteer", &factory);
        let log = Arc::clone(&errors);
        operator
            .reconciler("things", &factory.for_object::<Widget>())
            .register(move |cx: Reconcile<Widget>| {
                let log = Arc::clone(&log);
                async move {
                    let kept = kept(cx.key().name());
                    let applied = cx.apply(Desired::new().with_dependent(kept)).await;
                    log.lock()
                        .extend(applied.as_ref().err().map(ToString::to_string));
                    applied?;
                    Ok(Outcome::done())
                }
            })
            .unwrap();
        operator.start(2).await.unwrap();
        time::sleep(60 * SECOND).await;
        running.push(operator);
    }
    let maps: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    let before = maps.get("data").await.unwrap();
    for number in 0..8 {
        bench.resize(&format!("w{number}"), 2).await;
    }
    time::sleep(60 * SECOND).await;
    let now = maps.get("data").await.unwrap();
    assert_eq!(now.resource_version(), before.resource_version());
    let errors = errors.lock().clone();
    let is_refused = |error: &String| error.contains(", which exists; choose another name");
    assert!(
        errors.len() > 7 && errors.iter().all(is_refused),
        "{errors:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn order_label_of_created_only_object_follows_its_step() {
    let password = || Dependent::value(config("data", "1")).create_only();
    let second = Desired::new()
        .step(Step::new("one"))
        .step(Step::new("two").after("one").with_dependent(password()));
    let rig = rig_with(Desired::new().with_dependent(password())).await;
    let order = async || {
        let map = rig.config_map("data").await.expect("there");
        map.labels().get("lariat.dev/order").cloned()
    };
    assert_eq!(order().await, None);
    rig.apply_all(second).await;
    assert_eq!(order().await.as_deref(), Some("1"));
    rig.apply_all(Desired::new().with_dependent(password()))
        .await;
    assert_eq!(order().await, None);
    // Applied as a whole from now on, it loses a label that a merge has set.
    rig.apply_all(Desired::new().with_dependent(password().keep()))
        .await;
    rig.apply_all(Desired::new().with_value(config("data", "2")))
        .await;
    let map = rig.config_map("data").await.expect("there");
    assert_eq!(map.labels().get("lariat.dev/keep"), None);
    assert_eq!(map.owner_references().len(), 1);
    assert_eq!(data_of(&rig).await, "2");
}

#[tokio::test(start_paused = true)]
async fn renamed_operator_removes_fields_of_former_name() {
    let world = World::new().await;
    let mut both = config("data", "1");
    both["data"]["more"] = json!("2");
    let first = Program::new(Desired::new().with_value(both));
    world.run(&first).await.stop().await;
    let stranger = Program {
        operator: "successor",
        ..Program::new(Desired::new().with_value(config("data", "1")))
    };
    let process = world.run(&stranger).await;
    let error = process.error().expect("an error");
    assert!(error.contains("`Operator::renamed_from`"), "{error}");
    process.stop().await;
    let program = Program {
        operator: "successor",
        former_operator: Some("widgeteer"),
        reconciler: "items",
        former_reconciler: Some("things"),
        ..Program::new(Desired::new().with_value(config("data", "1")))
    };
    let process = world.run(&program).await;
    assert_eq!(process.error(), None);
    let map = world.config_maps().get("data").await.unwrap();
    assert_eq!(map.data.as_ref().unwrap().len(), 1);
    let managers = map.metadata.managed_fields.unwrap_or_default();
    let managers = managers.into_iter().filter_map(|each| each.manager);
    let managers: Vec<String> = managers.collect();
    assert_eq!(managers, ["successor"]);
    let widget = world.bench.get("a").await.unwrap();
    let notes = widget.metadata.annotations.unwrap_or_default();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes.keys().all(|key| key.contains("successor.items")),
        "{notes:?}"
    );
    process.want(&Program::new(Desired::new())).await;
    assert!(world.config_maps().get_opt("data").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn object_that_two_sets_want_stays_with_first() {
    let world = World::new().await;
    let wanted = || Options::default().wanted("1");
    let program = Program::new(wanted()).set(Some("later"), None, wanted());
    let process = world.run(&program).await;
    let error = process.error().expect("an error");
    let expected = "the set \"things\" of the same owner wants it too";
    assert!(error.contains(expected), "{error}");
    world.remember().await;
    process.kick().await;
    let before = world.before.lock().clone();
    assert_eq!(world.state().await, before);
}

#[tokio::test(start_paused = true)]
async fn moving_object_survives_failures_between_its_sets() {
    let (options, nothing) = (Options::default(), Desired::new);
    let of = |first: Desired, later: Desired| {
        let middle = nothing().with_value(config("middle", "1"));
        let program = Program::new(first).set(Some("middle"), None, middle);
        program.set(Some("later"), None, later)
    };
    // The later set has had objects before, or is new.
    for former in [
        of(options.wanted("1"), nothing()),
        Program::new(options.wanted("1")),
    ] {
        let world = World::new().await;
        world.release(&former).await;
        let (maps, params) = (world.config_maps(), DeleteParams::default());
        let _ = maps.delete("middle", &params).await;
        // Each call plans and applies.
        let failure = Rule::new(Fault::Reject("not now".to_owned())).name("middle");
        let failure = failure.resource("configmaps").verb("patch").times(4);
        let failure = world.cluster().faults().add(failure);
        let program = of(nothing(), options.wanted("2"));
        let process = world.run(&program).await;
        assert_eq!(world.cluster().faults().hits(failure), 4);
        let before = world.before.lock().clone().expect("remembered");
        let now = world.state().await.expect("there");
        assert_eq!((now.uid(), now.content()), (before.uid(), "2"));
        process.stop().await;
    }
}

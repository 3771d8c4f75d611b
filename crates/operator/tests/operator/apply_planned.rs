//! Tests of plans: they say what the apply does, and why a step waits.

use lariat_operator::{Dependent, Desired, PlannedAction, Step};

use crate::apply_rig::{Rig, config, in_default};
use crate::apply_steps_bench::rig_with;
use crate::protection_bench::{Options, Program, World};

#[tokio::test(start_paused = true)]
async fn plan_is_unchanged_under_elected_leader() {
    let world = World::new().await;
    let program = Program {
        elects: true,
        ..Program::new(Options::default().wanted("1"))
    };
    // The program compares each plan with its apply.
    let process = world.run(&program).await;
    assert_eq!(process.error(), None);
    process.kick().await;
    let changed = Program::new(Options::default().wanted("2"));
    process.want(&changed).await;
    assert_eq!(world.state().await.expect("there").content(), "2");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lease_alone_is_no_planned_change() {
    let world = World::new().await;
    let elected = |content: &str, only_plans: bool| Program {
        elects: true,
        plans: false,
        only_plans,
        ..Program::new(Options::default().wanted(content))
    };
    world.run(&elected("1", false)).await.stop().await;
    let process = world.run(&elected("2", true)).await;
    let planned = process.operator.planned().to_string();
    assert!(planned.contains("data.content"), "{planned}");
    assert!(!planned.contains("lariat.dev/lease"), "{planned}");
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn plan_of_step_waits_for_its_precondition() {
    let rig = Rig::watching().await;
    rig.bench.create("a", 1).await;
    let web = |holds: bool| {
        let step = Step::new("web").only_when(holds, "the license is missing");
        Desired::new().step(step.with_value(config("web", "1")))
    };
    let plan = rig.plan_all(web(false)).await;
    assert_eq!(
        plan.to_string(),
        "wait      step web waits: the license is missing"
    );
    assert_eq!(plan.waiting().len(), 1);
    let plan = rig.plan_all(web(true)).await;
    assert_eq!(plan.count(PlannedAction::Create), 1, "{plan}");
}

#[tokio::test(start_paused = true)]
async fn plan_shows_adoption_of_created_only_object() {
    let rig = Rig::watching().await;
    rig.create(in_default(config("data", "theirs"))).await;
    rig.bench.create("a", 1).await;
    let wanted = || {
        Desired::new().with_dependent(
            Dependent::value(config("data", "1"))
                .create_only()
                .adopts(true),
        )
    };
    let plan = rig.plan_all(wanted()).await;
    let text = plan.to_string();
    assert_eq!(plan.count(PlannedAction::Change), 1, "{text}");
    assert!(
        text.contains("lariat.dev/owner-uid") && !text.contains("data.key"),
        "{text}"
    );
    rig.apply_all(wanted()).await;
    assert_eq!(rig.calls()[0], "1 changed");
}

#[tokio::test(start_paused = true)]
async fn plan_leaves_object_to_sibling_that_wants_it() {
    let rig = rig_with(Desired::new().with_value(config("data", "1"))).await;
    let plan = rig.plan_all(Desired::new()).await;
    assert_eq!(plan.to_string(), "prune     v1 ConfigMap default/data");
    assert!(rig.config_map("data").await.is_some());
}

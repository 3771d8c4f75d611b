//! What may happen to an applied object between two releases, or during one.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::coordination::v1::Lease as LeaseObject;
use kube::api::{Api, Patch, PatchParams, PropagationPolicy};
use lariat_cache::Selection;
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_operator::{Budget, Desired, Guard};
use serde_json::json;
use tokio::sync::watch;
use tokio::time;

use crate::bench::SECOND;
use crate::protection_bench::{Options, Process, Program, World};

fn first(options: Options) -> Program {
    Program::new(options.wanted("1"))
}

fn second(options: Options) -> Program {
    Program::new(options.wanted("2"))
}

/// Runs both releases, and returns the cell.
async fn update(world: &World, options: Options, program: Program) -> String {
    world.release(&first(options)).await;
    let process = world.run(&program).await;
    world.end(process, &program, options).await
}

pub(crate) async fn set_renamed(world: &World, options: Options) -> String {
    let program = Program::new(Desired::new());
    program.sets.lock().clear();
    let program = program.set(Some("new"), options.former("things"), options.wanted("2"));
    update(world, options, program).await
}

pub(crate) async fn operator_renamed(world: &World, options: Options) -> String {
    let program = Program {
        operator: "successor",
        former_operator: options.former("widgeteer"),
        ..second(options)
    };
    update(world, options, program).await
}

pub(crate) async fn reconciler_renamed(world: &World, options: Options) -> String {
    let program = Program {
        reconciler: "items",
        former_reconciler: options.former("things"),
        ..second(options)
    };
    update(world, options, program).await
}

async fn recreated_by(world: &World, options: Options, policy: PropagationPolicy) -> String {
    let process = world.run(&first(options)).await;
    world.remember().await;
    world.delete_owner(policy).await;
    time::sleep(5 * SECOND).await;
    world.bench.create("a", 1).await;
    let program = second(options);
    process.want(&program).await;
    time::sleep(600 * SECOND).await;
    world.end(process, &program, options).await
}

pub(crate) async fn recreated_with_orphans(world: &World, options: Options) -> String {
    recreated_by(world, options, PropagationPolicy::Orphan).await
}

pub(crate) async fn recreated(world: &World, options: Options) -> String {
    recreated_by(world, options, PropagationPolicy::Background).await
}

pub(crate) async fn recreated_while_stopped(world: &World, options: Options) -> String {
    world.release(&first(options)).await;
    world.delete_owner(PropagationPolicy::Orphan).await;
    world.bench.create("a", 1).await;
    let program = second(options);
    let process = world.run(&program).await;
    world.end(process, &program, options).await
}

pub(crate) async fn owner_deleted(world: &World, options: Options) -> String {
    let process = world.run(&first(options)).await;
    world.remember().await;
    world.delete_owner(PropagationPolicy::Background).await;
    time::sleep(60 * SECOND).await;
    let cell = world.cell(&second(options), Options::default()).await;
    process.stop().await;
    cell
}

pub(crate) async fn left_the_set(world: &World, options: Options) -> String {
    let process = world.run(&first(options)).await;
    world.remember().await;
    let program = Program::new(Desired::new());
    process.want(&program).await;
    world.end(process, &program, options).await
}

/// Returns a program with two sets, of which one has the object.
fn two_sets(earlier: Desired, later: Desired) -> Program {
    Program::new(earlier).set(Some("later"), None, later)
}

pub(crate) async fn moved_to_earlier_set(world: &World, options: Options) -> String {
    world
        .release(&two_sets(Desired::new(), options.wanted("1")))
        .await;
    let program = two_sets(options.wanted("2"), Desired::new());
    let process = world.run(&program).await;
    world.end(process, &program, options).await
}

pub(crate) async fn moved_to_later_set(world: &World, options: Options) -> String {
    world.release(&first(options)).await;
    let program = two_sets(Desired::new(), options.wanted("2"));
    let process = world.run(&program).await;
    world.end(process, &program, options).await
}

pub(crate) async fn moved_at_run_time(world: &World, options: Options) -> String {
    let process = world
        .run(&two_sets(Desired::new(), options.wanted("1")))
        .await;
    world.remember().await;
    let uid = world.state().await.map(|state| state.uid().to_owned());
    process
        .want(&two_sets(options.wanted("1"), Desired::new()))
        .await;
    let moved = world.state().await.map(|state| state.uid().to_owned());
    assert_eq!(uid, moved, "the earlier set takes it over");
    let program = two_sets(Desired::new(), options.wanted("2"));
    process.want(&program).await;
    world.end(process, &program, options).await
}

/// Deletes the owner after the second release, and returns the cell.
async fn then_owner_deleted(
    world: &World,
    process: Process,
    program: &Program,
    options: Options,
) -> String {
    let cell = world.cell(program, options).await;
    let sign = if process.error().is_some() { "!" } else { "" };
    let uid = world.state().await.map(|state| state.uid().to_owned());
    process.stop().await;
    world.delete_owner(PropagationPolicy::Background).await;
    time::sleep(60 * SECOND).await;
    match world.state().await {
        Some(state) => {
            assert_eq!(Some(state.uid()), uid.as_deref());
            format!("{cell}{sign}")
        }
        None => "gone".to_owned(),
    }
}

pub(crate) async fn keep_added(world: &World, options: Options) -> String {
    world.release(&first(options.keeping(false))).await;
    let program = second(options);
    let process = world.run(&program).await;
    then_owner_deleted(world, process, &program, options).await
}

pub(crate) async fn keep_dropped(world: &World, options: Options) -> String {
    world.release(&first(options.keeping(true))).await;
    let options = options.keeping(false);
    let program = second(options);
    let process = world.run(&program).await;
    then_owner_deleted(world, process, &program, options).await
}

pub(crate) async fn kept_by_stranger(world: &World, options: Options) -> String {
    world.release(&first(options)).await;
    let label = json!({"metadata": {"labels": {"lariat.dev/keep": "true"}}});
    let patched = world
        .config_maps()
        .patch("data", &PatchParams::default(), &Patch::Merge(label))
        .await;
    patched.expect("patched");
    let process = world.run(&first(options)).await;
    process.want(&Program::new(Desired::new())).await;
    world
        .end(process, &Program::new(Desired::new()), options)
        .await
}

pub(crate) async fn crash_after_record(world: &World, options: Options) -> String {
    let down = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    let rule = Rule::new(down).resource("configmaps").verb("patch");
    let fault = world.cluster().faults().add(rule);
    let program = Program {
        plans: false,
        ..first(options)
    };
    let process = world.run(&program).await;
    assert!(process.error().is_some(), "nothing was created");
    let widget = world.bench.get("a").await.expect("there");
    let notes = widget.metadata.annotations.unwrap_or_default();
    assert!(
        notes
            .keys()
            .any(|name| name.starts_with("applied.lariat.dev/"))
    );
    process.kill().await;
    world.cluster().faults().remove(fault);
    let program = second(options);
    let process = world.run(&program).await;
    world.end(process, &program, options).await
}

pub(crate) async fn crash_after_create(world: &World, options: Options) -> String {
    let rule = Rule::new(Action::NoReply)
        .resource("configmaps")
        .verb("patch");
    let fault = world.cluster().faults().add(rule);
    let program = Program {
        plans: false,
        ..first(options)
    };
    let process = world.run(&program).await;
    process.kill().await;
    world.cluster().faults().remove(fault);
    world.remember().await;
    let program = second(options);
    let process = world.run(&program).await;
    world.end(process, &program, options).await
}

pub(crate) async fn lease_lost(world: &World, options: Options) -> String {
    world.release(&first(options)).await;
    let (open, gate) = watch::channel(false);
    let program = Program {
        elects: true,
        gate: Some(gate),
        plans: false,
        ..second(options)
    };
    let process = world.run(&program).await;
    let leases: Api<LeaseObject> = Api::namespaced(world.cluster().client(), "default");
    let thief = json!({"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 3600}});
    let (params, thief) = (PatchParams::default(), Patch::Merge(thief));
    let stolen = leases.patch("widgeteer", &params, &thief).await;
    stolen.expect("patched");
    time::sleep(30 * SECOND).await;
    open.send_replace(true);
    time::sleep(60 * SECOND).await;
    let cell = world.cell(&program, options).await;
    process.kill().await;
    cell
}

pub(crate) async fn cache_of_namespace(world: &World, options: Options) -> String {
    let program = Program {
        config_maps: Selection::all().in_namespaces(["kube-system"]),
        ..second(options)
    };
    update(world, options, program).await
}

pub(crate) async fn cache_of_selector(world: &World, options: Options) -> String {
    let program = Program {
        config_maps: Selection::all().with_labels("app=other".parse().expect("a selector")),
        ..second(options)
    };
    update(world, options, program).await
}

/// Another owner wants the object, in a process that does not cache the first one.
pub(crate) async fn partial_owners(world: &World, options: Options) -> String {
    world.release(&first(options)).await;
    world.bench.create("b", 1).await;
    let labels = json!({"metadata": {"labels": {"team": "b"}}});
    world.bench.merge("b", labels).await;
    let program = Program {
        owner: "b",
        widgets: Selection::all().with_labels("team=b".parse().expect("a selector")),
        ..second(options)
    };
    let process = world.run(&program).await;
    world.end(process, &program, options).await
}

/// The former owner is gone, but the API server does not say so.
pub(crate) async fn forbidden_owners(world: &World, options: Options) -> String {
    world.release(&first(options)).await;
    world.delete_owner(PropagationPolicy::Orphan).await;
    world.bench.create("a", 1).await;
    let forbidden = Action::Refuse(Refusal::new(StatusCode::FORBIDDEN));
    let rule = Rule::new(forbidden).resource("widgets").verb("get");
    world.cluster().faults().add(rule);
    let program = second(options);
    let process = world.run(&program).await;
    let error = process.error().unwrap_or_default();
    world.cluster().faults().clear();
    let cell = world.cell(&program, options).await;
    let cell = world.failed(process, cell).await;
    let says_so = error.contains("it is unknown whether that owner exists");
    assert!(says_so || !options.adopts, "{error}");
    cell
}

pub(crate) async fn dry_run(world: &World, options: Options) -> String {
    let program = Program {
        only_plans: true,
        ..second(options)
    };
    update(world, options, program).await
}

pub(crate) async fn guard(world: &World, options: Options) -> String {
    world.release(&first(options)).await;
    let guard = Guard::new().writes(Budget::rate(0, Duration::from_secs(3600)));
    let program = Program {
        guard: Some(guard),
        // A plan does not ask guards.
        plans: false,
        ..second(options)
    };
    let process = world.run(&program).await;
    let cell = world.cell(&program, options).await;
    world.failed(process, cell).await
}

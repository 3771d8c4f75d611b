//! When killers start and end.

use lariat::cluster::faults::{Action, Rule};
use serde_json::json;
use tokio::time::sleep;

use super::super::FINALIZER;
use super::bench::{Bench, Program, SECOND};

#[tokio::test(start_paused = true)]
async fn another_spec_is_another_killer_and_the_old_one_kills_no_more() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    sleep(9 * SECOND).await;
    let spec = json!({"periodSeconds": 100, "terminationPercent": 10});
    bench.patch("chaos", json!({"spec": spec})).await;
    sleep(99 * SECOND).await;
    assert_eq!(bench.kills(), 0);
    sleep(2 * SECOND).await;
    assert_eq!(bench.kills(), 1);
}

#[tokio::test(start_paused = true)]
async fn other_changes_do_not_disturb_the_killer() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    sleep(9 * SECOND).await;
    bench
        .patch("chaos", json!({"metadata": {"labels": {"team": "chaos"}}}))
        .await;
    sleep(SECOND).await;
    assert_eq!(bench.kills(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_keeps_the_object_until_its_killer_has_ended() {
    let bench = Bench::new().await.with_pods(10).await;
    let slow = Rule::new(Action::Delay(3 * SECOND))
        .verb("delete")
        .resource("pods");
    bench.terminate("chaos", json!({})).await;
    let terminator = bench.terminators.get("chaos").await.unwrap();
    assert_eq!(
        terminator.metadata.finalizers.unwrap_or_default(),
        [FINALIZER]
    );
    bench.cluster.faults().add(slow);
    sleep(10 * SECOND).await;
    bench.delete("chaos").await;
    sleep(SECOND).await;
    assert!(
        bench.terminators.get_opt("chaos").await.unwrap().is_some(),
        "a pod is being killed"
    );
    sleep(2 * SECOND).await;
    assert!(bench.terminators.get_opt("chaos").await.unwrap().is_none());
    sleep(60 * SECOND).await;
    assert_eq!(bench.kills(), 1, "the other four are spared");
    assert!(bench.program.tasks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_its_finalizer_the_killer_ends_too() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    let forced = json!({"metadata": {"finalizers": null}});
    tokio::join!(bench.delete("chaos"), bench.patch("chaos", forced));
    sleep(60 * SECOND).await;
    assert_eq!(bench.kills(), 0);
    assert!(bench.program.tasks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_the_pod_that_is_being_killed_and_spares_the_others() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    let slow = Rule::new(Action::Delay(3 * SECOND))
        .verb("delete")
        .resource("pods");
    bench.cluster.faults().add(slow);
    sleep(10 * SECOND).await;
    bench.program.stop().await;
    assert_eq!((bench.kills(), bench.alive().await.len()), (1, 9));
    sleep(60 * SECOND).await;
    assert_eq!(bench.kills(), 1);
    assert!(bench.program.tasks.is_empty());
    let terminator = bench.terminators.get("chaos").await.unwrap();
    assert!(
        terminator.metadata.finalizers.is_some(),
        "the next program has to know"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_not_held_up_by_an_api_server_that_never_answers() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    let silent = Rule::new(Action::NoAnswer).verb("delete").resource("pods");
    bench.cluster.faults().add(silent);
    sleep(10 * SECOND).await;
    let stopped = tokio::time::timeout(20 * SECOND, bench.program.stop()).await;
    assert!(stopped.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_program_that_starts_has_a_killer_for_what_exists() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    bench.program.stop().await;
    sleep(60 * SECOND).await;
    assert_eq!(bench.kills(), 0);
    let program = Program::start(&bench.cluster).await;
    sleep(10 * SECOND + SECOND).await;
    assert_eq!(bench.kills(), 5);
    assert_eq!(program.tasks.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_selector_ends_the_killer_with_an_event() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    let selector = json!({"app": "not a label"});
    bench
        .patch("chaos", json!({"spec": {"selector": selector}}))
        .await;
    sleep(10 * SECOND).await;
    let sent = bench.program.operator.events().status().sent;
    assert_eq!(sent, 1, "an Event says why");
    sleep(50 * SECOND).await;
    assert_eq!(bench.kills(), 0);
    assert!(bench.program.tasks.is_empty());
    bench
        .patch("chaos", json!({"spec": {"selector": {"app": "web"}}}))
        .await;
    sleep(11 * SECOND).await;
    assert_eq!(bench.kills(), 5);
}

/// As after the loss of a lease: the start does not reconcile unchanged objects.
#[tokio::test(start_paused = true)]
async fn an_operator_that_is_started_again_has_killers_again() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    bench.program.stop().await;
    assert!(bench.program.tasks.is_empty());
    sleep(60 * SECOND).await;
    bench.program.operator.start(2).await.unwrap();
    sleep(super::super::LOOK + 11 * SECOND).await;
    assert_eq!(bench.program.tasks.len(), 1);
    assert_ne!(bench.kills(), 0);
}

//! How many pods are killed, which, and which never.

use k8s_openapi::api::core::v1::Pod;
use lariat::cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat::cluster::testing::{namespace, pod};
use lariat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::sleep;

use super::super::round::quota;
use super::super::{PodTerminator, PodTerminatorSpec};
use super::bench::{Bench, SECOND, merge};

#[test]
fn the_share_is_rounded_down_and_limited_by_the_minimum() {
    // alive, percent, minimum, killed; the first five are the original's tests.
    for (alive, percent, minimum, expected) in [
        (10, 50, 0, 5),
        (10, 50, 7, 3),
        (0, 50, 0, 0),
        (3, 25, 0, 0),
        (10, 100, 0, 10),
        (10, 100, 1, 9),
        (10, 100, 10, 0),
        (10, 100, 11, 0),
        (10, 0, 0, 0),
        (1, 99, 0, 0),
        (10, 50, 5, 5),
        (10, 50, 6, 4),
        // The schema refuses it, but objects may be older than the schema.
        (10, 250, 0, 10),
        (10, -50, -7, 0),
    ] {
        let spec = PodTerminatorSpec {
            termination_percent: percent,
            minimum_instances: minimum,
            ..PodTerminatorSpec::default()
        };
        assert_eq!(
            quota(alive, &spec),
            expected,
            "{percent} % of {alive}, {minimum} stay"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn half_of_ten_pods_are_killed_after_the_period() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({})).await;
    sleep(9 * SECOND).await;
    assert_eq!(bench.kills(), 0, "the period is not over");
    sleep(SECOND).await;
    assert_eq!((bench.kills(), bench.alive().await.len()), (5, 5));
    sleep(10 * SECOND).await;
    assert_eq!(
        (bench.kills(), bench.alive().await.len()),
        (7, 3),
        "half of five, rounded down"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_kills_no_pod() {
    let bench = Bench::new().await.with_pods(10).await;
    bench.terminate("chaos", json!({"dryRun": true})).await;
    sleep(60 * SECOND).await;
    assert_eq!(bench.kills(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_minimum_stays_alive() {
    let bench = Bench::new().await.with_pods(10).await;
    bench
        .terminate("chaos", json!({"minimumInstances": 7}))
        .await;
    sleep(60 * SECOND).await;
    assert_eq!((bench.kills(), bench.alive().await.len()), (3, 7));
}

#[tokio::test(start_paused = true)]
async fn two_terminators_of_the_same_pods_leave_what_either_must_leave() {
    let bench = Bench::new().await.with_pods(10).await;
    let spec = json!({"minimumInstances": 7, "terminationPercent": 30});
    tokio::join!(
        bench.terminate("one", spec.clone()),
        bench.terminate("two", spec)
    );
    sleep(60 * SECOND).await;
    assert_eq!((bench.kills(), bench.alive().await.len()), (3, 7));
}

#[tokio::test(start_paused = true)]
async fn pods_elsewhere_or_with_other_labels_are_spared() {
    let bench = Bench::new().await.with_pods(4).await;
    let client = bench.cluster.client();
    pod("db").label("app", "db").create(&client).await.unwrap();
    let other = namespace("other");
    other.create(&client).await.unwrap();
    let elsewhere = pod("web-9").namespace("other").label("app", "web");
    elsewhere.create(&client).await.unwrap();
    let spec = json!({"namespace": "default", "terminationPercent": 100});
    bench.terminate("chaos", spec).await;
    sleep(30 * SECOND).await;
    assert_eq!(bench.alive().await, ["db", "web-9"]);
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_being_deleted_or_have_ended_are_not_counted() {
    let bench = Bench::new().await.with_pods(8).await;
    for name in ["going-0", "going-1"] {
        let going = pod(name).label("app", "web").finalizer("demo.dev/hold");
        going.create(&bench.cluster.client()).await.unwrap();
        let pods: Api<Pod> = Api::default_namespaced(bench.cluster.client());
        pods.delete(name, &DeleteParams::default()).await.unwrap();
    }
    let ended = pod("ended").label("app", "web");
    ended.create(&bench.cluster.client()).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(bench.cluster.client());
    let status = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    let params = PatchParams::default();
    pods.patch_status("ended", &params, &status).await.unwrap();
    let before = bench.kills();
    bench.terminate("chaos", json!({})).await;
    sleep(10 * SECOND).await;
    assert_eq!(bench.kills() - before, 4, "half of the eight that live");
}

/// The original ends a round at the first pod it cannot delete.
#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_killed_does_not_save_the_others() {
    let bench = Bench::new().await.with_pods(10).await;
    let refusal = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    bench
        .cluster
        .faults()
        .add(Rule::new(refusal).verb("delete").resource("pods").times(1));
    bench.terminate("chaos", json!({})).await;
    sleep(10 * SECOND).await;
    assert_eq!((bench.kills(), bench.alive().await.len()), (5, 6));
    sleep(10 * SECOND).await;
    assert_eq!(bench.alive().await.len(), 3, "the next round is as any");
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_same_name_is_not_taken_for_the_one_that_was_chosen() {
    let bench = Bench::new().await.with_pods(1).await;
    let recreate = Action::Recreate(String::new());
    bench
        .cluster
        .faults()
        .add(Rule::new(recreate).verb("delete").resource("pods").times(1));
    bench
        .terminate("chaos", json!({"terminationPercent": 100}))
        .await;
    sleep(10 * SECOND).await;
    assert_eq!(bench.alive().await, ["web-0"], "another client replaced it");
}

#[tokio::test(start_paused = true)]
async fn all_killers_see_pods_through_one_watch() {
    let bench = Bench::new().await.with_pods(10).await;
    for name in ["one", "two", "three"] {
        bench.terminate(name, json!({"dryRun": true})).await;
    }
    sleep(60 * SECOND).await;
    let journal = bench.cluster.journal();
    assert_eq!(
        (journal.count("watch", "pods"), bench.program.tasks.len()),
        (1, 3)
    );
    assert!(journal.count("list", "pods") <= 1);
}

#[tokio::test(start_paused = true)]
async fn the_schema_refuses_invalid_values() {
    let bench = Bench::new().await;
    for spec in [
        json!({"terminationPercent": 101}),
        json!({"terminationPercent": -1}),
        json!({"periodSeconds": 0}),
        json!({"minimumInstances": -1}),
        json!({"selector": {}}),
    ] {
        let mut whole = json!({
            "selector": {"app": "web"}, "periodSeconds": 10, "terminationPercent": 50,
        });
        merge(&mut whole, &spec);
        let spec_of = serde_json::from_value(whole).unwrap();
        let refused = PodTerminator::new("chaos", spec_of);
        let created = bench
            .terminators
            .create(&PostParams::default(), &refused)
            .await;
        assert!(created.is_err(), "{spec}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_kills_the_same_pods() {
    let mut left = Vec::new();
    for _ in 0..2 {
        let bench = Bench::new().await.with_pods(10).await;
        bench.terminate("chaos", json!({})).await;
        sleep(10 * SECOND).await;
        left.push(bench.alive().await);
    }
    assert_eq!(left[0], left[1]);
}

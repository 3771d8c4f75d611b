//! Pods in other namespaces than their Autoscaler: where they are created, and that they are deleted with it.

use kube::api::DeleteParams;
use lariat::cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat::cluster::testing::{namespace, wait_until_gone};
use lariat::cluster::{Cluster, Workloads};
use lariat::core::Labels;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::{Bench, SECOND, operator, settle};
use crate::until_printed;

#[tokio::test(start_paused = true)]
async fn autoscalers_of_one_name_share_a_namespace() {
    assert!(
        Labels::check_value("default/web").is_err(),
        "the original's label could not be set"
    );
    let bench = Bench::new().await;
    bench.create_in("default", "web", "blue", 2).await;
    bench.create_in("green", "web", "blue", 2).await;
    assert_eq!(bench.pods().await.len(), 4);
    assert_eq!(
        bench.count("create", "pods"),
        4,
        "names that are taken are not tried"
    );
    bench
        .merge("web", json!({"spec": {"desiredReplicas": 1}}))
        .await;
    assert_eq!(
        bench.pods().await,
        ["blue/web-0", "blue/web-2", "blue/web-3"]
    );
}

#[tokio::test(start_paused = true)]
async fn pods_follow_to_another_namespace() {
    let bench = Bench::new().await;
    bench.create("web", "blue", 2).await;
    bench
        .merge("web", json!({"spec": {"targetNamespace": "green"}}))
        .await;
    assert_eq!(bench.pods().await, ["green/web-0", "green/web-1"]);
    bench
        .pods_in("green")
        .delete("web-0", &DeleteParams::default())
        .await
        .unwrap();
    settle().await;
    assert_eq!(bench.pods().await.len(), 2, "it is watched there");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_does_not_exist_yet_is_waited_for_and_reported_once() {
    let bench = Bench::new().await;
    bench.create("patient", "later", 2).await;
    sleep(60 * SECOND).await;
    assert_eq!(bench.pods().await, [""; 0]);
    assert!(bench.count("create", "pods") > 5);
    let words = ["Autoscaler patient", "not found"];
    until_printed(1, &words).await.unwrap();
    let again = timeout(SECOND, until_printed(2, &words)).await;
    again.expect_err("the reason is the same");
    namespace("later")
        .create(&bench.cluster.client())
        .await
        .unwrap();
    sleep(120 * SECOND).await;
    assert_eq!(bench.pods().await, ["later/patient-0", "later/patient-1"]);
}

#[tokio::test(start_paused = true)]
async fn pods_in_another_namespace_are_deleted_before_their_autoscaler() {
    let bench = Bench::on(
        Cluster::builder()
            .simulate_workloads(Workloads::default().termination(3 * SECOND))
            .for_test()
            .await,
    )
    .await;
    bench.create("web", "blue", 3).await;
    bench.create("other", "blue", 1).await;
    bench
        .autoscalers
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    sleep(SECOND).await;
    assert!(
        bench.autoscalers.get_opt("web").await.unwrap().is_some(),
        "its pods are still there"
    );
    wait_until_gone(&bench.autoscalers, "web").await.unwrap();
    assert_eq!(bench.pods().await, ["blue/other-0"]);
    assert_eq!(bench.count("create", "pods"), 4);
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_deleted_while_the_operator_is_away_leaves_nothing() {
    let bench = Bench::new().await;
    bench.create("web", "blue", 3).await;
    bench.operator.stop().await.unwrap();
    bench
        .autoscalers
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    let refused = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    bench
        .cluster
        .faults()
        .add(Rule::new(refused).verb("delete").resource("pods").nth(2));
    let next = operator(&bench.cluster);
    next.start(2).await.unwrap();
    wait_until_gone(&bench.autoscalers, "web").await.unwrap();
    assert_eq!(bench.pods().await, [""; 0]);
}

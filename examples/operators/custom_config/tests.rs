//! The effects of the options, in numbers.

use std::time::Duration;

use lariat::SharedControllerFactory;
use lariat::cache::KindOptions;
use lariat::cluster::Cluster;
use lariat::cluster::testing::{TestCluster, pod};
use lariat::controller::HandlerStatus;
use tokio::time::sleep;

use super::{Config, TROUBLE};

async fn start(config: Config) -> (TestCluster, SharedControllerFactory) {
    let cluster = Cluster::for_test().await;
    let builder = SharedControllerFactory::builder(cluster.client());
    let factory = config.configure(builder, KindOptions::default()).build();
    config.register(&factory).expect("registered");
    factory.start(5).await.expect("started");
    (cluster, factory)
}

async fn create(cluster: &TestCluster, name: &str, trouble: &str) {
    let pod = pod(name).annotation(TROUBLE, trouble);
    pod.create(&cluster.client()).await.expect("created");
}

fn totals(factory: &SharedControllerFactory) -> HandlerStatus {
    factory.status()[0].handlers[0].clone()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_is_retried_five_times() {
    let (cluster, factory) = start(Config::default()).await;
    create(&cluster, "failing", "fails").await;
    sleep(Duration::from_secs(40)).await;
    let totals = totals(&factory);
    assert_eq!((totals.calls, totals.failures, totals.exhausted), (6, 6, 1));
}

#[tokio::test(start_paused = true)]
async fn pods_are_resynced_every_45_seconds_without_a_request() {
    let (cluster, factory) = start(Config::default()).await;
    for name in ["one", "two"] {
        create(&cluster, name, "none").await;
    }
    sleep(Duration::from_secs(44)).await;
    assert_eq!(totals(&factory).calls, 2);
    let before = cluster.journal().mark();
    sleep(Duration::from_secs(2 * 45)).await;
    assert_eq!(totals(&factory).calls, 6);
    assert_eq!(
        cluster
            .journal()
            .select()
            .since(before)
            .resource("pods")
            .count(),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_is_dropped_and_holds_the_one_worker_no_longer() {
    let config = Config {
        retries: 0,
        ..Config::default()
    };
    let (cluster, factory) = start(config).await;
    assert_eq!(
        factory.status()[0].workers,
        Some(1),
        "the kind counts more than the start"
    );
    create(&cluster, "hanging", "hangs").await;
    create(&cluster, "fine", "none").await;
    sleep(Duration::from_secs(9)).await;
    assert_eq!(totals(&factory).calls, 0);
    sleep(Duration::from_secs(2)).await;
    let totals = totals(&factory);
    assert_eq!((totals.calls, totals.timeouts, totals.exhausted), (2, 1, 1));
}

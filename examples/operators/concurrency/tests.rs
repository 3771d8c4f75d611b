//! The original's numbers, exactly: time is virtual.

use std::time::Duration;

use lariat::SharedControllerFactory;
use lariat::cluster::Cluster;
use lariat::cluster::testing::{TestCluster, pod};
use tokio::time::sleep;

use super::{Config, Counts, Gauge};

const SECOND: Duration = Duration::from_secs(1);

async fn start(config: Config, pods: usize) -> (TestCluster, SharedControllerFactory, Gauge) {
    let cluster = Cluster::for_test().await;
    for number in 0..pods {
        let created = pod(&format!("web-{number}"))
            .create(&cluster.client())
            .await;
        created.expect("created");
    }
    let builder = SharedControllerFactory::builder(cluster.client());
    let factory = config.configure(builder, "default").build();
    let gauge = config.register(&factory).expect("registered");
    factory.start(None).await.expect("started");
    (cluster, factory, gauge)
}

/// Handles this many pods, and returns the counts once nothing is left to do.
async fn handle(config: Config, pods: usize) -> Counts {
    let config = Config {
        interval: None,
        ..config
    };
    let (_cluster, _factory, gauge) = start(config, pods).await;
    sleep(600 * SECOND).await;
    gauge.counts()
}

#[tokio::test(start_paused = true)]
async fn a_hundred_events_take_five_workers_a_fifth_of_the_time() {
    for (concurrency, at_once, took) in [(1, 1, 2500), (5, 5, 500), (100, 100, 25)] {
        let config = Config {
            concurrency,
            ..Config::default()
        };
        let counts = handle(config, 100).await;
        let took = Duration::from_millis(took);
        assert_eq!(
            (counts.calls, counts.at_once, counts.took()),
            (100, at_once, took)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn each_object_is_one_call_and_one_more_for_each_retry() {
    for (pods, retries, fails, calls) in [
        (1, 0, false, 1),
        (50, 3, false, 50),
        (50, 0, true, 50),
        (50, 3, true, 200),
        (7, 5, true, 42),
    ] {
        let config = Config {
            retries,
            fails,
            ..Config::default()
        };
        assert_eq!(
            handle(config, pods).await.calls,
            calls,
            "{pods} pods, {retries} retries"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn pods_are_resynced_at_the_interval_unless_that_is_disabled() {
    for (interval, calls) in [(Some(45 * SECOND), 30), (None, 10)] {
        let config = Config {
            interval,
            ..Config::default()
        };
        let (_cluster, _factory, gauge) = start(config, 10).await;
        sleep(100 * SECOND).await;
        assert_eq!(gauge.counts().calls, calls);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_one_object_are_never_handled_side_by_side() {
    let (cluster, _factory, gauge) = start(Config::default(), 1).await;
    let pods = pod("web-0").api(&cluster.client());
    for number in 0..20 {
        let patch = serde_json::json!({"metadata": {"labels": {"version": number.to_string()}}});
        let patch = lariat::kube::api::Patch::Merge(patch);
        pods.patch("web-0", &Default::default(), &patch)
            .await
            .unwrap();
        sleep(Duration::from_millis(10)).await;
    }
    sleep(SECOND).await;
    let counts = gauge.counts();
    assert_eq!(counts.at_once, 1);
    assert!(
        counts.calls < 15,
        "changes during a call are one more call, not many: {counts:?}"
    );
}

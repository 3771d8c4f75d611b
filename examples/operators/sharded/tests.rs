//! Which replica handles which orders.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat::SharedControllerFactory;
use lariat::cluster::Cluster;
use lariat::cluster::testing::TestCluster;
use lariat::kube::api::{Api, PostParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::sleep;

use super::{APP, HANDLED_BY, RING, factory, lease, orders_of};
use crate::merge;

const SECOND: Duration = Duration::from_secs(1);

/// The orders that were handled, with the replicas.
type Log = Arc<Mutex<Vec<(String, &'static str)>>>;

async fn start(cluster: &TestCluster, name: &'static str, log: &Log) -> SharedControllerFactory {
    let log = Arc::clone(log);
    let log = move |order: &str| log.lock().push((order.to_owned(), name));
    let lease = lease("default", name, 15 * SECOND);
    let factory = factory(cluster.client(), "default", name, lease, log).expect("valid");
    factory.start(2).await.expect("started");
    factory
}

/// Returns the replica that handled each order since the last call; each was handled once.
fn handled(log: &Log) -> BTreeMap<String, &'static str> {
    let calls = std::mem::take(&mut *log.lock());
    let count = calls.len();
    let handled: BTreeMap<_, _> = calls.into_iter().collect();
    assert_eq!(handled.len(), count, "{handled:?}");
    handled
}

async fn cluster() -> TestCluster {
    let cluster = Cluster::for_test().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    for number in 0..20 {
        let name = format!("order-{number}");
        let order = json!({"metadata": {"name": name, "labels": {APP: RING}}});
        let order = serde_json::from_value(order).expect("valid");
        let created = maps.create(&PostParams::default(), &order).await;
        created.expect("created");
    }
    let other = json!({"metadata": {"name": "other"}});
    let other = serde_json::from_value(other).expect("valid");
    let created = maps.create(&PostParams::default(), &other).await;
    created.expect("created");
    cluster
}

#[tokio::test(start_paused = true)]
async fn only_orders_of_a_share_that_changes_are_handled_again() {
    let (cluster, log) = (cluster().await, Log::default());
    let red = start(&cluster, "red", &log).await;
    sleep(SECOND).await;
    assert_eq!(handled(&log).len(), 20, "its own writes are no changes");

    let green = start(&cluster, "green", &log).await;
    sleep(5 * SECOND).await;
    let moved = handled(&log);
    assert!(moved.values().all(|by| *by == "green"), "{moved:?}");
    let share = |factory: &SharedControllerFactory| factory.shards().expect("it has one").share();
    let names: Vec<_> = moved.keys().cloned().collect();
    assert_eq!(orders_of(&green, &share(&green)), names);
    assert_eq!(orders_of(&red, &share(&red)).len(), 20 - names.len());

    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    for number in 0..20 {
        let changed = json!({"data": {"item": "rope"}});
        let changed = merge(&maps, &format!("order-{number}"), changed).await;
        changed.expect("changed");
    }
    sleep(SECOND).await;
    let both = handled(&log);
    assert_eq!(both.len(), 20);
    assert!(
        both.iter()
            .all(|(order, by)| moved.contains_key(order) == (*by == "green"))
    );

    green.stop().await.expect("stopped");
    sleep(SECOND).await;
    let back = handled(&log);
    assert!(back.values().all(|by| *by == "red"), "{back:?}");
    assert_eq!(
        back.keys().collect::<Vec<_>>(),
        moved.keys().collect::<Vec<_>>()
    );
    let other = maps.get("other").await.expect("read");
    assert_eq!(other.metadata.labels, None, "it is no order");
    let order = maps.get("order-0").await.expect("read").metadata.labels;
    assert_eq!(order.expect("some")[HANDLED_BY], "red");
    red.stop().await.expect("stopped");
}

//! Which replica counts.

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

use super::{factory, lease};

const SECOND: Duration = Duration::from_secs(1);

/// A replica, and what it counted to.
struct Replica {
    factory: SharedControllerFactory,
    counts: Arc<Mutex<Vec<u64>>>,
}

impl Replica {
    async fn start(cluster: &TestCluster, name: &str) -> Self {
        let counts: Arc<Mutex<Vec<u64>>> = Arc::default();
        let log = Arc::clone(&counts);
        let log = move |count| log.lock().push(count);
        let lease = lease("default", name, 15 * SECOND);
        let factory = factory(cluster.client(), "default", lease, SECOND, log).expect("valid");
        factory.start(1).await.expect("started");
        Self { factory, counts }
    }
}

async fn cluster() -> TestCluster {
    let cluster = Cluster::for_test().await;
    let maps = [
        json!({"metadata": {"name": "counter"}, "data": {"count": "0"}}),
        json!({"metadata": {"name": "other"}, "data": {"count": "many"}}),
    ];
    for map in maps {
        let map: ConfigMap = serde_json::from_value(map).expect("valid");
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
        maps.create(&PostParams::default(), &map)
            .await
            .expect("created");
    }
    cluster
}

#[tokio::test(start_paused = true)]
async fn one_replica_counts_and_the_next_continues_where_it_stopped() {
    let cluster = cluster().await;
    let red = Replica::start(&cluster, "red").await;
    sleep(SECOND / 2).await;
    let green = Replica::start(&cluster, "green").await;
    sleep(3 * SECOND).await;
    assert_eq!(*red.counts.lock(), [1, 2, 3, 4]);
    assert!(green.counts.lock().is_empty());
    red.factory.stop().await.expect("stopped");
    sleep(SECOND / 2).await;
    assert_eq!(*green.counts.lock(), [5], "at once");
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let data = maps.get("counter").await.expect("read").data.expect("some");
    assert_eq!((&*data["count"], &*data["by"]), ("5", "green"));
    let other = maps.get("other").await.expect("read").data.expect("some");
    assert_eq!(other.get("by"), None, "it is no counter");
}

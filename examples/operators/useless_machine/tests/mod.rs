//! The delays of machines, and their switches.

mod levers;
mod switches;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use lariat::cluster::Cluster;
use lariat::cluster::testing::TestCluster;
use lariat::kube::api::{Api, PostParams};
use lariat::prelude::*;
use tokio::time::{Instant, sleep};

use super::Pace;

/// How long a switch stays up, as in the lecture.
const DELAY: Duration = Duration::from_secs(5);

/// Waits until nothing is due any more.
async fn settle() {
    sleep(Duration::from_millis(50)).await;
}

/// A delay by a wall clock that follows tokio's.
fn pace() -> Pace {
    let begin = Instant::now();
    let clock = move || {
        let passed = SignedDuration::try_from(begin.elapsed()).expect("not for ever");
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 60) + passed
    };
    Pace {
        delay: DELAY,
        clock: Arc::new(clock),
    }
}

/// An operator on a cluster.
fn operator(cluster: &TestCluster) -> Operator {
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    Operator::new("useless-machine", &factory)
}

async fn create<K>(api: &Api<K>, object: &K) -> K
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let created = api.create(&PostParams::default(), object).await;
    created.expect("created")
}

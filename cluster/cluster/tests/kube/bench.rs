//! A cluster with a custom kind.

use std::time::Duration;

use kube::Client;
use kube::api::DynamicObject;
use lariat_cluster::Cluster;
use lariat_cluster::testing::{Fixture, TestCluster, crd, define, object};

/// How long something may take that must happen.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Starts a cluster in which Widgets of group `demo.dev` are defined.
pub(crate) async fn with_widgets() -> (TestCluster, Client) {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let definition = crd("demo.dev", "v1", "Widget");
    define(&client, &definition)
        .await
        .expect("it is established");
    (cluster, client)
}

pub(crate) fn widget(name: &str) -> Fixture {
    object("demo.dev/v1", "Widget", name).set("/spec/size", 1)
}

pub(crate) fn name(object: &DynamicObject) -> String {
    object.metadata.name.clone().unwrap_or_default()
}

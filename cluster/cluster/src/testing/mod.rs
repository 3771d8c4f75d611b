//! Help for tests: clusters, objects to create in them, and waits for objects.
//!
//! Everything but [`TestCluster`] takes a kube [`Client`](kube::Client) or [`Api`](kube::Api), so the
//! same test runs on a genuine cluster. Waits watch, they do not poll: they see every state that the API
//! server sends, and on the embedded cluster they also work under tokio's paused clock, where even a
//! timeout takes no time.
//!
//! ```
//! use kube::Api;
//! use kube::api::DynamicObject;
//! use lariat::cluster::{Cluster, testing::{pod, wait_for, wait_until_gone}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = Cluster::for_test().await;
//! let web = pod("web").label("app", "shop");
//! let pods: Api<DynamicObject> = web.api(&cluster.client());
//!
//! web.create(&cluster.client()).await?;
//! let found = wait_for(&pods, "web", |pod| pod.metadata.uid.is_some()).await?;
//! assert_eq!(found.metadata.labels.unwrap_or_default()["app"], "shop");
//!
//! pods.delete("web", &Default::default()).await?;
//! wait_until_gone(&pods, "web").await?;
//! # Ok(()) }
//! ```
//!
//! With types of `k8s-openapi` it is `Api<Pod>`, and `web.to::<Pod>()` gives the pod as one.

mod cluster;
mod eventually;
mod fixture;
mod report;
mod wait;

pub use cluster::TestCluster;
pub use eventually::{EventuallyError, eventually};
pub use fixture::{
    Fixture, config_map, crd, define, deployment, namespace, node, object, pod, secret,
};
pub use wait::{TIMEOUT, Wait, WaitError, Waitable, wait_for, wait_for_condition, wait_until_gone};

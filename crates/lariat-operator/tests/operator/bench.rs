//! A cluster, an operator, and a kind of our own: Widgets.

use std::fmt::Debug;
use std::time::Duration;

use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::object::HasStatus;
use lariat_cluster::Cluster;
use lariat_cluster::testing::{TestCluster, crd};
use lariat_controller::{SharedController, SharedControllerFactory};
use lariat_core::ObjectKey;
use lariat_operator::Operator;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A cluster with Widgets (`demo.dev/v1`, namespaced, with a status), a factory and an operator named `widgeteer`.
pub(crate) struct Bench {
    pub(crate) cluster: TestCluster,
    pub(crate) factory: SharedControllerFactory,
    pub(crate) operator: Operator,
    pub(crate) widgets: SharedController<Widget>,
    pub(crate) api: Api<Widget>,
}

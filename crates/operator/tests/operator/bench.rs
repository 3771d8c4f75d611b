//! A cluster, an operator, and a custom kind, Widgets.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{CustomResource, CustomResourceExt};
use lariat_cache::KindOptions;
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, After, Rule};
use lariat_cluster::testing::{TestCluster, wait_for_condition};
use lariat_controller::{ControllerOptions, SharedController, SharedControllerFactory};
use lariat_core::{Gvk, ObjectKey};
use lariat_operator::Operator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The spec of a Widget.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "demo.dev", version = "v1", kind = "Widget", namespaced)]
#[kube(status = "WidgetStatus", derive = "Default", derive = "PartialEq")]
pub(crate) struct WidgetSpec {
    #[serde(default)]
    pub(crate) size: i64,
}

/// The status of a Widget.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WidgetStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<Condition>,
}

/// A cluster with the CRD of Widgets, a factory, and an operator named `widgeteer`.
pub(crate) struct Bench {
    pub(crate) cluster: TestCluster,
    pub(crate) factory: SharedControllerFactory,
    pub(crate) operator: Operator,
    pub(crate) widgets: SharedController<Widget>,
    /// A client of the cluster that is not the factory's.
    pub(crate) api: Api<Widget>,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::for_test().await;
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
        let created = definitions
            .create(&PostParams::default(), &Widget::crd())
            .await;
        created.expect("defined");
        let name = "widgets.demo.dev";
        let established = wait_for_condition(&definitions, name, "Established").await;
        established.expect("established");
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        Self {
            operator: Operator::new("widgeteer", &factory),
            widgets: factory.for_object(),
            api: Api::namespaced(cluster.client(), "default"),
            factory,
            cluster,
        }
    }

    /// Continues with a new operator and factory, with other cache options of Widgets.
    pub(crate) fn caching(self, widgets: KindOptions) -> Self {
        let kind: Gvk = "demo.dev/v1/Widget".parse().expect("a kind");
        let options = ControllerOptions::default().cache(widgets);
        let factory = SharedControllerFactory::builder(self.cluster.client())
            .kind_options(kind, options)
            .build();
        Self {
            operator: Operator::new("widgeteer", &factory),
            widgets: factory.for_object(),
            factory,
            ..self
        }
    }

    pub(crate) async fn start(&self) {
        self.operator.start(2).await.expect("started");
    }

    /// Creates a Widget in `default`.
    pub(crate) async fn create(&self, name: &str, size: i64) -> Widget {
        let widget = Widget::new(name, WidgetSpec { size });
        let created = self.api.create(&PostParams::default(), &widget).await;
        created.expect("created")
    }

    /// Merges a patch into a Widget, as another client.
    pub(crate) async fn merge(&self, name: &str, patch: Value) -> Widget {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = self.api.patch(name, &params, &patch);
        patched.await.expect("patched")
    }

    pub(crate) async fn resize(&self, name: &str, size: i64) -> Widget {
        self.merge(name, json!({"spec": {"size": size}})).await
    }

    pub(crate) async fn delete(&self, name: &str) {
        let deleted = self.api.delete(name, &DeleteParams::default()).await;
        deleted.expect("deleted");
    }

    pub(crate) async fn get(&self, name: &str) -> Option<Widget> {
        self.api.get_opt(name).await.expect("read")
    }
}

/// Returns the key of a Widget in `default`.
pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

/// Waits until everything that is due has happened; time is paused.
pub(crate) async fn settle() {
    time::sleep(Duration::from_millis(100)).await;
}

/// Makes watches of a kind send nothing after their first second, so that caches become stale.
pub(crate) fn hang_watches(bench: &Bench, plural: &str) {
    let hang = Action::HangWatch(After::Time(SECOND));
    let rule = Rule::new(hang).resource(plural);
    bench.cluster.faults().add(rule);
}

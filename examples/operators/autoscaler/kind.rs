//! The kind Autoscaler: spec and status.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired pods.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "test.skuber.io",
    version = "v1",
    kind = "Autoscaler",
    namespaced,
    status = "AutoscalerStatus"
)]
// A label value has at most 63 characters.
#[kube(validation = Rule::new("self.metadata.name.size() <= 63")
    .message("the name of an Autoscaler has at most 63 characters, since its pods have it in a label"))]
#[kube(
    printcolumn = r#"{"name": "Target", "type": "string", "jsonPath": ".spec.targetNamespace"}"#
)]
#[kube(
    printcolumn = r#"{"name": "Desired", "type": "integer", "jsonPath": ".spec.desiredReplicas"}"#
)]
#[kube(
    printcolumn = r#"{"name": "Available", "type": "integer", "jsonPath": ".status.availableReplicas"}"#
)]
#[kube(printcolumn = r#"{"name": "Ready", "type": "boolean", "jsonPath": ".status.ready"}"#)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerSpec {
    /// The namespace of the pods. Pods in a namespace that was set before are deleted.
    #[schemars(length(min = 1, max = 63))]
    pub target_namespace: String,
    /// The desired number of pods.
    #[schemars(range(max = 1000))]
    pub desired_replicas: u32,
    /// The image of their only container.
    #[schemars(length(min = 1))]
    pub image: String,
}

/// The observed state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerStatus {
    /// The number of pods that run or are about to run.
    pub available_replicas: u32,
    /// Whether that is the desired number.
    pub ready: bool,
}

//! An Autoscaler that counts the pods of its selector, and computes how many there should be.
//!
//! It does not create pods, and has no metrics: the desired number is the current one within bounds. It is called when
//! a pod that names it in a label changes, and every 30 seconds. The status is applied as the operator's field manager,
//! only if it differs, whatever manager wrote it before.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::{CustomResource, ResourceExt};
use lariat::Query;
use lariat::operator::ReconcilerRegistration;
use lariat::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Paint, print_action};

/// The label of a pod that names the Autoscaler, in the same namespace, to call for its changes.
pub const AUTOSCALER: &str = "scaling.example.com/autoscaler";

/// Bounds for the number of pods.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "scaling.example.com",
    version = "v1",
    kind = "Autoscaler",
    namespaced,
    status = "AutoscalerStatus"
)]
#[kube(printcolumn = r#"{"name": "Min", "type": "integer", "jsonPath": ".spec.minReplicas"}"#)]
#[kube(printcolumn = r#"{"name": "Max", "type": "integer", "jsonPath": ".spec.maxReplicas"}"#)]
#[kube(
    printcolumn = r#"{"name": "Current", "type": "integer", "jsonPath": ".status.currentReplicas"}"#
)]
#[kube(
    printcolumn = r#"{"name": "Desired", "type": "integer", "jsonPath": ".status.desiredReplicas"}"#
)]
#[kube(validation = Rule::new("self.spec.minReplicas <= self.spec.maxReplicas")
    .message("minReplicas is at most maxReplicas"))]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerSpec {
    /// The labels a pod must have to be counted, at least one.
    #[schemars(extend("minProperties" = 1))]
    pub selector: BTreeMap<String, String>,
    /// The minimum number of pods.
    #[serde(default = "one")]
    pub min_replicas: u32,
    /// The maximum number of pods.
    #[serde(default = "ten")]
    pub max_replicas: u32,
    /// The target CPU utilization, in percent. Nothing here measures it.
    #[serde(rename = "targetCPUUtilization", default = "eighty")]
    #[schemars(range(min = 1, max = 100))]
    pub target_cpu_utilization: u32,
}

/// The observed state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerStatus {
    /// The number of pods that run and are ready.
    #[serde(default)]
    pub current_replicas: u32,
    /// The desired number of pods.
    #[serde(default)]
    pub desired_replicas: u32,
}

/// Registers the reconciler of Autoscalers.
///
/// # Errors
///
/// It is registered already.
pub fn register(operator: &Operator) -> Result<ReconcilerRegistration> {
    let pods = operator.factory().for_object::<Pod>();
    let counter = Counter(CachedApi::new(&pods));
    let autoscalers = operator.factory().for_object::<Autoscaler>();
    let registration = operator
        .reconciler("autoscaler", &autoscalers)
        .watches(&pods, Relation::label(AUTOSCALER))
        .options(
            HandlerOptions::default()
                .concurrency(2)
                .only(Predicate::generation_changed()),
        )
        // For `operator.cluster_role()`; reading both kinds is known.
        .writes_status()
        .requeue_after(Duration::from_secs(30))
        .register(move |cx| {
            let counter = counter.clone();
            async move { counter.reconcile(&cx).await }
        })?;
    Ok(registration)
}

/// The state of the reconciler: pods, from the cache.
#[derive(Clone)]
struct Counter(CachedApi<Pod>);

impl Counter {
    async fn reconcile(&self, cx: &Reconcile<Autoscaler>) -> HandlerResult {
        let spec = &cx.object().spec;
        let pods = self
            .0
            .list(&Query::in_namespace(
                cx.key().namespace().unwrap_or_default(),
            ))
            .await?;
        let ready = pods
            .iter()
            .filter(|pod| is_selected(pod, spec) && is_ready(pod));
        let current_replicas = u32::try_from(ready.count()).unwrap_or(u32::MAX);
        let status = AutoscalerStatus {
            current_replicas,
            desired_replicas: desired(spec, current_replicas),
        };
        if cx.object().status.as_ref() != Some(&status) {
            let (current, desired) = (status.current_replicas, status.desired_replicas);
            let (colour, what) = if current == desired {
                (Paint::Green, format!("{current} ready"))
            } else {
                (
                    Paint::Yellow,
                    format!("{current} ready, should be {desired}"),
                )
            };
            print_action("Autoscaler", cx.key().name(), colour, what);
            cx.status().by_force().set(&status).await?;
        }
        Ok(Outcome::done())
    }
}

/// Returns the desired number of pods: the current one within bounds.
fn desired(spec: &AutoscalerSpec, current: u32) -> u32 {
    current.min(spec.max_replicas).max(spec.min_replicas)
}

fn is_selected(pod: &Pod, spec: &AutoscalerSpec) -> bool {
    let labels = pod.labels();
    spec.selector
        .iter()
        .all(|(label, value)| labels.get(label) == Some(value))
}

/// Returns whether a pod runs, with all its containers ready, and is not being deleted.
fn is_ready(pod: &Pod) -> bool {
    let Some(status) = pod
        .status
        .as_ref()
        .filter(|_| pod.metadata.deletion_timestamp.is_none())
    else {
        return false;
    };
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    let all_ready = !containers.is_empty() && containers.iter().all(|container| container.ready);
    status.phase.as_deref() == Some("Running") && all_ready
}

fn one() -> u32 {
    1
}

fn ten() -> u32 {
    10
}

fn eighty() -> u32 {
    80
}

//! A chaos operator: a `PodTerminator` periodically kills a share of the pods it selects.
//!
//! A reconciler's work ends with its call. Background work, here one task per object, needs an owner: `Killers` starts
//! a task for each object, replaces it when the spec changes, and stops it before the finalizer is removed. The tasks
//! belong to the program, which waits for them after the operator has stopped.
//!
//! A guard of the reconciler would not see these deletions, since it counts writes in the reconciler's calls: a killer
//! is limited by its spec.
//!
//! (Periodic work alone would not need a task: `Outcome::requeue_after` is one line. A task is for work with a life of
//! its own, such as a connection or a subscription.)

mod killer;
mod round;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use k8s_openapi::api::core::v1::Pod;
use killer::Killers;
use kube::CustomResource;
use lariat::kube;
use lariat::operator::{Event, Finalizer, Rule};
use lariat::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::task::TaskTracker;

#[cfg(test)]
mod tests;

/// The finalizer that keeps a PodTerminator until its killer has ended.
pub const FINALIZER: &str = "finalizer.chaos.spotahome.com/pod-killer";

/// How often the operator checks that killers still run.
const LOOK: Duration = Duration::from_secs(30);

/// Which pods are killed, how many of them, and how often.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "chaos.spotahome.com",
    version = "v1alpha1",
    kind = "PodTerminator",
    shortname = "pt",
    category = "terminators",
    category = "killers",
    printcolumn = r#"{"name": "Percent", "type": "integer", "jsonPath": ".spec.terminationPercent"}"#,
    printcolumn = r#"{"name": "Minimum", "type": "integer", "jsonPath": ".spec.minimumInstances"}"#,
    printcolumn = r#"{"name": "Period", "type": "integer", "jsonPath": ".spec.periodSeconds"}"#,
    printcolumn = r#"{"name": "DryRun", "type": "boolean", "jsonPath": ".spec.dryRun"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PodTerminatorSpec {
    /// The labels of the pods; at least one, for none would select every pod of the cluster.
    #[schemars(extend("minProperties" = 1))]
    pub selector: BTreeMap<String, String>,
    /// The namespace of the pods; all namespaces without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The period, in seconds.
    #[schemars(range(min = 1))]
    pub period_seconds: i32,
    /// The share of the pods to kill each time, in percent, rounded down to whole pods.
    #[schemars(range(min = 0, max = 100))]
    pub termination_percent: i32,
    /// The minimum number of pods to leave alive.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub minimum_instances: i32,
    /// Whether pods are only chosen and not killed.
    #[serde(default)]
    pub dry_run: bool,
}

/// Adds the reconciler of PodTerminators to an operator.
///
/// Killers run as `tasks`. They end with the operator, or by the finalizer; wait for them after the stop. `random`
/// decides which pods are killed.
///
/// # Errors
///
/// The operator has such a reconciler already.
pub fn register(operator: &Operator, tasks: &TaskTracker, random: Rng) -> Result<()> {
    let terminators = operator.factory().for_object::<PodTerminator>();
    let pods = operator.factory().for_object::<Pod>();
    let killers = Killers::new(operator, tasks, random);
    let (going, gone) = (killers.clone(), killers.clone());
    operator
        .reconciler("pod-killer", &terminators)
        .finalizer(Finalizer::new(FINALIZER), move |cx| stop(going.clone(), cx))
        // The finalizer may have been removed by hand.
        .on_deleted(move |cx| stop(gone.clone(), cx))
        // A stop of the operator ends killers too, and the next start does not reconcile unchanged objects.
        .requeue_after(LOOK)
        .needs(Rule::of(&pods).verbs(["delete"]))
        .needs(Rule::events())
        .register(move |cx| start(killers.clone(), cx))?;
    Ok(())
}

/// Starts a killer with the present spec, unless one is running.
async fn start(killers: Killers, cx: Reconcile<PodTerminator>) -> HandlerResult {
    let started = killers.ensure(&cx).await;
    if let Err(error) = &started {
        cx.event(Event::warning("NoKiller", error.to_string()));
    }
    started.map(|()| Outcome::done())
}

/// Stops the killer; once this returns, no more pods are killed.
async fn stop(killers: Killers, cx: Reconcile<PodTerminator>) -> HandlerResult {
    killers.stop(cx.key()).await;
    Ok(Outcome::done())
}

//! One round: how many pods are killed, which, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use k8s_openapi::api::core::v1::Pod;
use lariat::kube::api::{DeleteParams, Preconditions};
use lariat::operator::ApiError;
use lariat::prelude::*;
use lariat::{CancellationToken, LabelSelector, cache::Query, describe};
use tokio::time::timeout;

use super::PodTerminatorSpec;

/// How long the API server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came of a round.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// How many pods there were.
    pub(super) alive: usize,
    /// How many of them were to be killed.
    pub(super) quota: usize,
    /// Those that were, or would have been.
    pub(super) killed: Vec<Arc<Pod>>,
    /// Those that could not be killed, and why.
    pub(super) failed: Vec<(Arc<Pod>, String)>,
}

/// Returns how many of so many pods are killed: the share, unless that would leave fewer than the minimum.
pub(super) fn quota(alive: usize, spec: &PodTerminatorSpec) -> usize {
    // The schema refuses what is negative or more than all; an object may be older than its schema.
    let percent = usize::try_from(spec.termination_percent).unwrap_or(0);
    let minimum = usize::try_from(spec.minimum_instances).unwrap_or(0);
    let share = alive * percent.min(100) / 100;
    share.min(alive.saturating_sub(minimum))
}

/// Returns which pods a spec is about.
pub(super) fn query(spec: &PodTerminatorSpec) -> Result<Query, HandlerError> {
    if spec.selector.is_empty() {
        let why = "the selector is empty, which would be every pod there is";
        return Err(HandlerError::terminal(why));
    }
    let labels = spec.selector.iter();
    let labels: Vec<String> = labels
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let labels: Result<LabelSelector, _> = labels.join(",").parse();
    let query = match &spec.namespace {
        Some(namespace) => Query::in_namespace(namespace),
        None => Query::all(),
    };
    Ok(query.labels(labels.map_err(HandlerError::terminal)?))
}

/// Kills the share of a spec. One pod that cannot be killed does not save the others; a stop does.
pub(super) async fn play(
    pods: &CachedApi<Pod>,
    spec: &PodTerminatorSpec,
    query: &Query,
    dice: &mut Rng,
    stop: &CancellationToken,
) -> Result<Round, ApiError> {
    // From the cache, which has what the round before deleted.
    let mut alive = pods.list(query).await?;
    alive.retain(|pod| is_alive(pod));
    let quota = quota(alive.len(), spec);
    let mut round = Round {
        alive: alive.len(),
        quota,
        ..Round::default()
    };
    for pod in dice.choose_multiple(alive.iter(), quota) {
        if stop.is_cancelled() {
            break;
        }
        match kill(pods, pod, spec.dry_run).await {
            Ok(true) => round.killed.push(Arc::clone(pod)),
            Ok(false) => {}
            Err(why) => round.failed.push((Arc::clone(pod), why)),
        }
    }
    Ok(round)
}

/// Kills a pod; `false` if it has gone by itself, or another has taken its name.
async fn kill(pods: &CachedApi<Pod>, pod: &Pod, dry_run: bool) -> Result<bool, String> {
    if dry_run {
        return Ok(true);
    }
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: pod.metadata.uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match timeout(PATIENCE, pods.delete(&key_of(pod), &params)).await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(error)) if error.is_not_found() || error.is_conflict() => Ok(false),
        Ok(Err(error)) => Err(describe(&error)),
        Err(_) => Err(format!("no answer within {PATIENCE:?}")),
    }
}

/// Pods that are being deleted, or have ended, are nobody's instances any more.
fn is_alive(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Succeeded" | "Failed"))
}

pub(super) fn key_of(pod: &Pod) -> ObjectKey {
    let meta = &pod.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    ObjectKey::namespaced(namespace, meta.name.as_deref().unwrap_or_default())
}

//! One round: how many pods are killed, which, and the result.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use k8s_openapi::api::core::v1::Pod;
use lariat::cache::Query;
use lariat::core::LabelSelector;
use lariat::kube::api::{DeleteParams, Preconditions};
use lariat::operator::ApiError;
use lariat::prelude::*;
use lariat::{CancellationToken, describe};
use tokio::time::timeout;

use super::PodTerminatorSpec;

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The result of a round.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// The number of pods.
    pub(super) alive: usize,
    /// The number of pods to kill.
    pub(super) quota: usize,
    /// The killed pods; with a dry run the chosen ones.
    pub(super) killed: Vec<Arc<Pod>>,
    /// The pods that could not be killed, with the reason.
    pub(super) failed: Vec<(Arc<Pod>, String)>,
}

/// Returns the number of pods to kill: the share, limited by the minimum.
pub(super) fn quota(alive: usize, spec: &PodTerminatorSpec) -> usize {
    // The schema refuses other values, but an object may be older than its schema.
    let percent = usize::try_from(spec.termination_percent).unwrap_or(0);
    let minimum = usize::try_from(spec.minimum_instances).unwrap_or(0);
    let share = alive * percent.min(100) / 100;
    share.min(alive.saturating_sub(minimum))
}

/// Returns the query for the pods of a spec.
pub(super) fn query(spec: &PodTerminatorSpec) -> Result<Query, HandlerError> {
    if spec.selector.is_empty() {
        let reason = "the selector is empty, which would select every pod";
        return Err(HandlerError::terminal(reason));
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

/// Kills the share of a spec. A failure does not end the round; a stop does.
pub(super) async fn play(
    pods: &CachedApi<Pod>,
    spec: &PodTerminatorSpec,
    query: &Query,
    random: &mut Rng,
    stop: &CancellationToken,
) -> Result<Round, ApiError> {
    // From the cache, which contains the deletions of the round before.
    let mut alive = pods.list(query).await?;
    alive.retain(|pod| is_alive(pod));
    let quota = quota(alive.len(), spec);
    let mut round = Round {
        alive: alive.len(),
        quota,
        ..Round::default()
    };
    for pod in random.choose_multiple(alive.iter(), quota) {
        if stop.is_cancelled() {
            break;
        }
        match kill(pods, pod, spec.dry_run).await {
            Ok(true) => round.killed.push(Arc::clone(pod)),
            Ok(false) => {}
            Err(reason) => round.failed.push((Arc::clone(pod), reason)),
        }
    }
    Ok(round)
}

/// Kills a pod; `false` if it was deleted already, or replaced by another one.
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
    match timeout(TIMEOUT, pods.delete(&key_of(pod), &params)).await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(error)) if error.is_not_found() || error.is_conflict() => Ok(false),
        Ok(Err(error)) => Err(describe(&error)),
        Err(_) => Err(format!("no answer within {TIMEOUT:?}")),
    }
}

/// Returns whether a pod is neither being deleted nor has ended.
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

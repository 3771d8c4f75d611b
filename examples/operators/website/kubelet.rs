//! Pods and Deployments on clusters that have no nodes.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use lariat::kube::api::{Api, ListParams, Patch, PatchParams};
use lariat_operators::{Paint, Stage, paint, say};
use serde_json::json;
use tokio::time::sleep;

/// How often pods are looked at.
const PERIOD: Duration = Duration::from_millis(200);

/// Reports the example's pods as running if the cluster has no nodes, as an API server by itself.
///
/// Nothing runs there, and a story would wait for its pods in vain. If no controller keeps Deployments either, their
/// pods are reported in their status alone.
///
/// # Errors
///
/// Nodes cannot be listed.
pub(crate) async fn ensure_pods_run(stage: &Stage) -> Result<()> {
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let listed = nodes.list(&ListParams::default().limit(1)).await?;
    if !listed.items.is_empty() {
        return Ok(());
    }
    let line = "the cluster has no nodes: the example reports its pods as running";
    say(paint(Paint::Dim, line, 0));
    let (pods, deployments) = (stage.api::<Pod>(), stage.api::<Deployment>());
    let reports = async move {
        let mut behind = Vec::new();
        loop {
            // What fails is tried again: a pod may be deleted meanwhile.
            drop(report(&pods).await);
            drop(complete(&deployments, &mut behind).await);
            sleep(PERIOD).await;
        }
    };
    let reports = stage.ending.clone().run_until_cancelled_owned(reports);
    stage.tasks.spawn(reports);
    Ok(())
}

async fn report(pods: &Api<Pod>) -> Result<()> {
    let is_reported = |pod: &Pod| {
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        phase == Some("Running")
    };
    for pod in pods.list(&ListParams::default()).await? {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        if !is_reported(&pod) {
            let ready = json!([{"type": "Ready", "status": "True"}]);
            let status = json!({"status": {"phase": "Running", "conditions": ready}});
            let (params, patch) = (PatchParams::default(), Patch::Strategic(status));
            pods.patch_status(name, &params, &patch).await?;
        }
    }
    Ok(())
}

/// Completes Deployments that were found unobserved the last time as well, so that no controller keeps them.
async fn complete(
    deployments: &Api<Deployment>,
    behind: &mut Vec<(Option<String>, Option<i64>)>,
) -> Result<()> {
    let listed = deployments.list(&ListParams::default()).await?;
    let last = std::mem::take(behind);
    for deployment in listed {
        let meta = &deployment.metadata;
        let observed = deployment.status.as_ref();
        if observed.and_then(|status| status.observed_generation) == meta.generation {
            continue;
        }
        let state = (meta.uid.clone(), meta.generation);
        let is_unkept = last.contains(&state);
        behind.push(state);
        if is_unkept {
            let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas);
            let status = json!({"status": {
                "observedGeneration": meta.generation, "replicas": replicas, "updatedReplicas": replicas,
                "readyReplicas": replicas, "availableReplicas": replicas,
                "conditions": [{"type": "Available", "status": "True"}],
            }});
            let name = meta.name.as_deref().unwrap_or_default();
            let (params, patch) = (PatchParams::default(), Patch::Strategic(status));
            deployments.patch_status(name, &params, &patch).await?;
        }
    }
    Ok(())
}

//! Pods on clusters that have no nodes.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use lariat::kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::sleep;

use super::{Paint, Stage, paint, say};

/// How often pods are looked at.
const PERIOD: Duration = Duration::from_millis(200);

impl Stage {
    /// Reports the example's pods as running if the cluster has no nodes, as an API server by itself.
    ///
    /// Nothing runs there, and a story would wait for its pods in vain.
    ///
    /// # Errors
    ///
    /// Nodes cannot be listed.
    pub async fn ensure_pods_run(&self) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let listed = nodes.list(&ListParams::default().limit(1)).await?;
        if !listed.items.is_empty() {
            return Ok(());
        }
        let line = "the cluster has no nodes: the example reports its pods as running";
        say(paint(Paint::Dim, line, 0));
        let pods: Api<Pod> = self.api();
        let reports = async move {
            loop {
                // What fails is tried again: a pod may be deleted meanwhile.
                drop(report(&pods).await);
                sleep(PERIOD).await;
            }
        };
        let reports = self.ending.clone().run_until_cancelled_owned(reports);
        self.tasks.spawn(reports);
        Ok(())
    }
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

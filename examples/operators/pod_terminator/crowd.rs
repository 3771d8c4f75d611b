//! The pods of the story, as a user of kubectl sees them.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use lariat::cluster::testing::{TIMEOUT, deployment, eventually};
use lariat::kube::api::ListParams;
use lariat_operators::Stage;

/// Creates a Deployment with ten pods, and waits for them.
pub(crate) async fn ten_pods(stage: &Stage) -> Result<()> {
    let web = deployment("web", 10).namespace(&stage.namespace);
    let image = "/spec/template/spec/containers/0/image";
    web.set(image, "registry.k8s.io/pause:3.10")
        .create(&stage.client)
        .await?;
    all_ready(stage).await
}

/// Waits until ten pods are ready. They are counted, because the Deployment's status may be stale.
pub(crate) async fn all_ready(stage: &Stage) -> Result<()> {
    let look = async || -> Result<()> {
        let ready = alive(stage)
            .await?
            .iter()
            .filter(|pod| is_ready(pod))
            .count();
        ensure!(ready == 10, "{ready} of 10 pods are ready");
        Ok(())
    };
    Ok(eventually(Duration::from_secs(120), look).await?)
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Returns the uids of the pods.
pub(crate) async fn pods(stage: &Stage) -> Result<Vec<Option<String>>> {
    let alive = alive(stage).await?;
    Ok(alive.into_iter().map(|pod| pod.metadata.uid).collect())
}

async fn alive(stage: &Stage) -> Result<Vec<Pod>> {
    let mut pods = stage.api::<Pod>().list(&ListParams::default()).await?.items;
    pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(pods)
}

/// Waits until this many of the pods are deleted.
pub(crate) async fn gone(stage: &Stage, before: &[Option<String>], wanted: usize) -> Result<()> {
    let look = async || -> Result<()> {
        let now = pods(stage).await?;
        let gone = before.iter().filter(|uid| !now.contains(uid)).count();
        ensure!(gone >= wanted, "{gone} of {wanted} pods are deleted");
        Ok(())
    };
    Ok(eventually(TIMEOUT, look).await?)
}

//! The pods of the story, as somebody with kubectl sees them.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use lariat::cluster::testing::{PATIENCE, deployment, eventually, wait_for};
use lariat::kube::api::ListParams;
use lariat_examples::Stage;

/// Has a Deployment make ten pods, and waits for them.
pub(crate) async fn ten_pods(stage: &Stage) -> Result<()> {
    let web = deployment("web", 10).namespace(&stage.namespace);
    let image = "/spec/template/spec/containers/0/image";
    web.set(image, "registry.k8s.io/pause:3.10")
        .create(&stage.client)
        .await?;
    all_ready(stage).await
}

/// Waits until there are ten that are ready.
pub(crate) async fn all_ready(stage: &Stage) -> Result<()> {
    let ready = |web: &Deployment| {
        let status = web.status.as_ref();
        status.and_then(|status| status.ready_replicas) == Some(10)
    };
    wait_for(&stage.api::<Deployment>(), "web", ready).await?;
    Ok(())
}

/// Returns the uids of the pods.
pub(crate) async fn pods(stage: &Stage) -> Result<Vec<Option<String>>> {
    let pods = stage.api::<Pod>().list(&ListParams::default()).await?;
    let alive = pods
        .items
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(alive.map(|pod| pod.metadata.uid).collect())
}

/// Waits until so many of the pods are gone.
pub(crate) async fn gone(stage: &Stage, before: &[Option<String>], wanted: usize) -> Result<()> {
    let look = async || -> Result<()> {
        let now = pods(stage).await?;
        let gone = before.iter().filter(|uid| !now.contains(uid)).count();
        ensure!(gone >= wanted, "{gone} of {wanted} pods are gone");
        Ok(())
    };
    Ok(eventually(PATIENCE, look).await?)
}

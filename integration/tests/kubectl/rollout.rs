//! Waiting for what the cluster does.

use anyhow::ensure;
use k8s_openapi::api::apps::v1::Deployment;
use lariat::kube::api::{Patch, PatchParams};
use lariat_integration::{Env, in_namespace};
use serde_json::json;

use crate::apply::DEPLOYMENT;
use crate::objects::WEB;

/// Says in a Deployment's status that it is rolled out, where nobody else does.
async fn roll_out(env: &Env) -> anyhow::Result<()> {
    if env.is_embedded() {
        let status =
            json!({"status": {"observedGeneration": 1, "replicas": 0, "updatedReplicas": 0}});
        let patch = Patch::Merge(status);
        let deployments = env.api::<Deployment>();
        deployments
            .patch_status("web", &PatchParams::default(), &patch)
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_rollout_is_followed_to_its_end() {
    in_namespace("kubectl-rollout", async |env| {
        let kubectl = env.kubectl()?;
        kubectl.run_with("create -f -", DEPLOYMENT).await?;
        let (status, reported) =
            tokio::join!(kubectl.run("rollout status deployment web"), roll_out(env));
        reported?;
        let status = status?;
        ensure!(
            status.ends_with("deployment \"web\" successfully rolled out\n"),
            "{status}"
        );
        let restarted = kubectl.run("rollout restart deployment web").await?;
        assert_eq!(restarted, "deployment.apps/web restarted\n");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn waits_end_when_the_condition_is_met() {
    in_namespace("kubectl-wait", async |env| {
        let kubectl = env.kubectl()?;
        kubectl.run_with("create -f -", WEB).await?;
        let never = kubectl
            .refused(
                "wait pod/web --for=condition=demo.dev/Ready --timeout=1s",
                "",
            )
            .await?;
        assert_eq!(
            never,
            "error: timed out waiting for the condition on pods/web\n"
        );
        let condition = r#"{"status":{"conditions":[{"type":"demo.dev/Ready","status":"True"}]}}"#;
        let patch = format!("patch pod web --subresource=status --type=merge -p {condition}");
        let waits = kubectl.run("wait pod/web --for=condition=demo.dev/Ready");
        let (met, patched) = tokio::join!(waits, kubectl.run(&patch));
        patched?;
        assert_eq!(met?, "pod/web condition met\n");
        let phase = kubectl
            .run("wait pod/web --for=jsonpath={.status.phase}=Pending")
            .await?;
        assert_eq!(phase, "pod/web condition met\n");
        Ok(())
    })
    .await;
}

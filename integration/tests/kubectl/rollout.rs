//! Waiting for what the cluster does.

use anyhow::ensure;
use lariat_integration::in_namespace;

use crate::apply::DEPLOYMENT;
use crate::objects::WEB;

#[tokio::test]
async fn a_rollout_is_followed_to_its_end() {
    in_namespace("kubectl-rollout", async |env| {
        let kubectl = env.kubectl()?;
        // Its images cannot be pulled, so on a real cluster nothing but a rollout of no Pods ends.
        let replicas = if env.is_embedded() { 3 } else { 0 };
        let manifest = DEPLOYMENT.replace("replicas: 0", &format!("replicas: {replicas}"));
        kubectl.run_with("create -f -", &manifest).await?;
        let status = kubectl.run("rollout status deployment web").await?;
        let end = "deployment \"web\" successfully rolled out\n";
        ensure!(status.ends_with(end), "{status}");
        let scaled = kubectl
            .run(&format!("scale deployment web --replicas={replicas}"))
            .await?;
        assert_eq!(scaled, "deployment.apps/web scaled\n");
        let met = kubectl
            .run("wait deployment/web --for=condition=Available --timeout=60s")
            .await?;
        assert_eq!(met, "deployment.apps/web condition met\n");
        let restarted = kubectl.run("rollout restart deployment web").await?;
        assert_eq!(restarted, "deployment.apps/web restarted\n");
        let status = kubectl.run("rollout status deployment web").await?;
        ensure!(status.ends_with(end), "{status}");
        let history = kubectl.run("rollout history deployment web").await?;
        ensure!(history.contains("\n2 "), "{history}");
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
        let policy = kubectl
            .run("wait pod/web --for=jsonpath={.spec.restartPolicy}=Always")
            .await?;
        assert_eq!(policy, "pod/web condition met\n");
        Ok(())
    })
    .await;
}

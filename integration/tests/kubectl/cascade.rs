//! Deleting what owns, and what is owned.

use anyhow::Context as _;
use k8s_openapi::api::core::v1::ConfigMap;
use lariat_integration::{Kubectl, eventually, in_namespace};
use serde_json::json;

/// Creates an owner, and a ConfigMap that it owns and holds back.
async fn family(kubectl: &Kubectl) -> anyhow::Result<()> {
    let owner = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owner}\n";
    kubectl.run_with("create -f -", owner).await?;
    let uid = kubectl
        .run("get configmap owner -o jsonpath={.metadata.uid}")
        .await?;
    let owned = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "owned", "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": true,
        }]},
    });
    kubectl.run_with("create -f -", &owned.to_string()).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_owned_goes_with_its_owner() {
    for (cascade, name) in [
        ("background", "kubectl-background"),
        ("foreground", "kubectl-foreground"),
    ] {
        in_namespace(name, async |env| {
            let kubectl = env.kubectl()?;
            family(&kubectl).await?;
            let deleted = kubectl
                .run(&format!("delete configmap owner --cascade={cascade}"))
                .await?;
            let expected = format!(
                "configmap \"owner\" deleted from {} namespace\n",
                env.namespace
            );
            assert_eq!(deleted, expected);
            let config_maps = env.api::<ConfigMap>();
            eventually(async || {
                let left = config_maps.get_opt("owned").await?;
                left.is_none().then_some(()).context("owned is there")
            })
            .await;
            Ok(())
        })
        .await;
    }
}

#[tokio::test]
async fn orphans_stay() {
    in_namespace("kubectl-orphan", async |env| {
        let kubectl = env.kubectl()?;
        family(&kubectl).await?;
        kubectl
            .run("delete configmap owner --cascade=orphan")
            .await?;
        let owners = kubectl
            .run("get configmap owned -o jsonpath={.metadata.ownerReferences}")
            .await?;
        assert_eq!(owners, "");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn deleting_waits_for_finalizers() {
    in_namespace("kubectl-finalizer", async |env| {
        let kubectl = env.kubectl()?;
        let held = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [demo.dev/hold]}\n";
        kubectl.run_with("create -f -", held).await?;
        let timed_out = kubectl.refused("delete configmap held --timeout=1s", "").await?;
        assert!(timed_out.contains("timed out waiting for the condition"), "{timed_out}");
        let release = async {
            let deletion = kubectl.run("get configmap held -o jsonpath={.metadata.deletionTimestamp}").await?;
            assert_ne!(deletion, "");
            kubectl.run(r#"patch configmap held --type=merge -p {"metadata":{"finalizers":null}}"#).await
        };
        let (deleted, released) = tokio::join!(kubectl.run("wait --for=delete configmap/held"), release);
        released?;
        // It may be gone before the wait begins, which kubectl says nothing about.
        let deleted = deleted?;
        assert!(deleted.is_empty() || deleted == "configmap/held condition met\n", "{deleted}");
        Ok(())
    })
    .await;
}

//! Plays recordings against the embedded cluster.

use anyhow::{Context, Result};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use lariat_cluster::{Cluster, User};
use serde_json::json;

use crate::answer::Names;
use crate::compare::{Comparison, compare};
use crate::kinds::installed;
use crate::recording::Recording;
use crate::side::{Side, install};

/// Starts an embedded cluster that is configured as the genuine server is.
///
/// # Errors
///
/// It cannot listen.
pub async fn embedded() -> Result<(Cluster, Side)> {
    // A CertificateSigningRequest has its user in it, so this is the genuine server's.
    let user = User::new("admin").uid("admin-uid").group("system:masters");
    // The genuine server runs without the controllers that are switched off here.
    let builder = Cluster::builder()
        .token_of("differential", user)
        .quotas(false)
        .volume_protection(false)
        .role_aggregation(false)
        .listen();
    let cluster = builder.start().await.context("the embedded cluster")?;
    let kubeconfig = cluster.kubeconfig().context("the cluster listens")?;
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok((cluster, Side::new(config)?))
}

/// Plays a recording against a new embedded cluster, and compares the answers.
///
/// # Errors
///
/// The cluster does not start or does not take the CRDs.
pub async fn replay(recording: &Recording) -> Result<Comparison> {
    let (cluster, lariat) = embedded().await?;
    for definition in installed()? {
        install(&lariat, &definition).await?;
    }
    // As long as those of a run: some messages are about lengths.
    let names = Names {
        namespace: "n00000x00000".to_owned(),
        id: "d00000x00001".to_owned(),
    };
    let body =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.namespace}});
    lariat
        .ask("POST", "/api/v1/namespaces", Some(&body))
        .await?;
    let answers = lariat.run(&recording.sequence, &names).await;
    cluster.shutdown().await;
    // What is normalised stays as it is if it is normalised again.
    Ok(compare(
        &recording.sequence,
        &names,
        &recording.answers,
        &answers,
    ))
}

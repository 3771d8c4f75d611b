//! The cluster an example runs on: a given one, or the embedded one.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lariat::cluster::{Cluster, ClusterBuilder, Workloads};
use lariat::kube::Client;

use super::hints::quoted;

/// The cluster an example runs on.
///
/// It is that of `--kubeconfig PATH` or of the environment variable `KUBECONFIG`; without either the embedded cluster
/// is started. `~/.kube/config` is not used: an example should not write to a cluster that was not named.
pub struct ExampleCluster {
    /// The client to use.
    pub client: Client,
    /// The name of the cluster, for messages.
    pub name: String,
    /// The kubectl command line for it.
    pub kubectl: String,
    /// The embedded cluster, if that is where the example runs.
    pub embedded: Option<Cluster>,
}

impl ExampleCluster {
    /// Connects to a cluster or starts one, and checks that it responds.
    ///
    /// # Errors
    ///
    /// The kubeconfig cannot be used, or its cluster does not respond.
    pub async fn find(kubeconfig: Option<PathBuf>) -> Result<Self> {
        Self::or(kubeconfig, Cluster::builder()).await
    }

    /// Connects to a cluster, or starts one that simulates running pods.
    ///
    /// # Errors
    ///
    /// As for [`find`](Self::find).
    pub async fn with_workloads(kubeconfig: Option<PathBuf>) -> Result<Self> {
        let builder = Cluster::builder().simulate_workloads(Workloads::default());
        Self::or(kubeconfig, builder).await
    }

    async fn or(kubeconfig: Option<PathBuf>, builder: ClusterBuilder) -> Result<Self> {
        let given = kubeconfig.or_else(|| env::var_os("KUBECONFIG").map(PathBuf::from));
        let target = match given.filter(|path| !path.as_os_str().is_empty()) {
            Some(path) => Self::given(&path).await?,
            None => Self::embedded(builder).await?,
        };
        let version = target.client.apiserver_version().await;
        let version = version.with_context(|| format!("{} does not answer", target.name))?;
        let name = format!("{} ({})", target.name, version.git_version);
        Ok(Self { name, ..target })
    }

    async fn given(path: &Path) -> Result<Self> {
        let client = lariat::from_kubeconfig(path).await?;
        // For a shell in another folder.
        let file = std::path::absolute(path)?;
        let file = quoted(&file.display().to_string());
        Ok(Self {
            client,
            name: format!("the cluster of {}", path.display()),
            kubectl: format!("KUBECONFIG={file} kubectl"),
            embedded: None,
        })
    }

    async fn embedded(builder: ClusterBuilder) -> Result<Self> {
        let cluster = builder.listen().start().await;
        let cluster = cluster.context("the embedded cluster cannot listen on loopback")?;
        let url = cluster.url().unwrap_or_default();
        Ok(Self {
            client: cluster.client(),
            name: format!("the embedded cluster at {url}"),
            kubectl: format!("kubectl --server {url}"),
            embedded: Some(cluster),
        })
    }

    /// Stops the embedded cluster.
    pub async fn leave(self) {
        if let Some(cluster) = self.embedded {
            cluster.shutdown().await;
        }
    }
}

impl fmt::Debug for ExampleCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExampleCluster")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

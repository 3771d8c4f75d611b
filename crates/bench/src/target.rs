//! The API server that a run reads from.

use std::path::PathBuf;

use anyhow::{Context, Result};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::{Deserialize, Serialize};

/// A server, who asks it, and what is read from it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Target {
    /// Its URL; without one it is the kubeconfig's.
    pub(crate) url: Option<String>,
    /// The user of the requests; anonymous without one.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Whether it is a genuine server, with whatever there is on it.
    pub(crate) is_genuine: bool,
    /// The namespace whose pods are read; without one they are read from all.
    pub(crate) namespace: Option<String>,
}

impl Target {
    /// Returns the embedded server at a URL.
    pub(crate) fn embedded(url: String) -> Self {
        Self {
            url: Some(url),
            ..Self::default()
        }
    }

    /// Reads the configuration of a client.
    pub(crate) async fn config(&self) -> Result<Config> {
        let mut config = match &self.kubeconfig {
            Some(path) => {
                let unusable = || format!("the kubeconfig {} cannot be used", path.display());
                // What its parser says shows lines of the file, which may be secret.
                let file = Kubeconfig::read_from(path).ok().with_context(unusable)?;
                let options = KubeConfigOptions::default();
                let config = Config::from_custom_kubeconfig(file, &options).await;
                config.ok().with_context(unusable)?
            }
            None => Config::new(self.url.as_deref().unwrap_or_default().parse()?),
        };
        if let Some(url) = &self.url {
            config.cluster_url = url.parse()?;
        }
        Ok(config)
    }

    /// Returns whether the names of pods have numbers, as this tool names them.
    pub(crate) fn has_own_pods(&self) -> bool {
        !self.is_genuine || self.namespace.is_some()
    }
}

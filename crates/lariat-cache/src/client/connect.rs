//! Connecting to a cluster.

use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

/// A client that could not be made. Nothing was sent yet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A kubeconfig that is missing, unreadable or malformed.
    #[error("the kubeconfig {path:?} cannot be used")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<KubeconfigError>,
    },
    /// Neither `KUBECONFIG`, nor `~/.kube/config`, nor a service account gives a cluster.
    #[error(
        "no cluster is configured: KUBECONFIG, ~/.kube/config and the service account of a pod were \
         tried"
    )]
    NoCluster {
        /// What each of them said.
        source: Box<kube::config::InferConfigError>,
    },
    /// What the configuration says about TLS or authentication cannot be used.
    #[error("no client can be made from the configuration of {url}")]
    Client {
        /// The API server.
        url: String,
        /// What is wrong.
        source: Box<kube::Error>,
    },
}

/// Makes a client from the environment, as kubectl does, or inside a pod from its service account.
///
/// # Errors
///
/// There is no configuration, or it cannot be used.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
pub async fn connect() -> Result<Client, ConnectError> {
    let config = Config::infer()
        .await
        .map_err(|source| ConnectError::NoCluster {
            source: Box::new(source),
        })?;
    client(config)
}

/// Makes a client from a kubeconfig file, for its current context.
///
/// # Errors
///
/// The file cannot be read, is malformed, or names things that are not in it.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
pub async fn from_kubeconfig(path: impl AsRef<Path>) -> Result<Client, ConnectError> {
    let path = path.as_ref();
    let unusable = |source| ConnectError::Kubeconfig {
        path: path.to_owned(),
        source: Box::new(source),
    };
    let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(unusable)?;
    client(config)
}

fn client(mut config: Config) -> Result<Client, ConnectError> {
    // kube would try a refused request again for minutes without a word; reflectors have a backoff of
    // their own, which can be seen.
    config.default_retry = false;
    let url = config.cluster_url.to_string();
    Client::try_from(config).map_err(|source| ConnectError::Client {
        url,
        source: Box::new(source),
    })
}

//! Connecting to a cluster.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::multiplex::{self, Http2};
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use lariat_core::{debug_as_description, describe, without_values};

/// A client that could not be made. Nothing was sent yet.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A kubeconfig that is missing, unreadable or malformed.
    #[error("the kubeconfig {path:?} cannot be used: {detail}")]
    Kubeconfig {
        /// The file, or the files.
        path: PathBuf,
        /// What is wrong, without the content of the file, which may be secret.
        detail: String,
    },
    /// Neither `KUBECONFIG`, nor `~/.kube/config`, nor a service account gives a cluster.
    #[error(
        "no cluster is configured: KUBECONFIG is not set, there is no ~/.kube/config, and this is no \
         pod with a service account"
    )]
    NoCluster {
        /// What is missing of the service account.
        source: Box<InClusterError>,
    },
    /// What the configuration gives as its server is no URL.
    #[error("the server {url:?} of the configuration is no URL; it begins with https:// as a rule")]
    NoUrl {
        /// What is there.
        url: String,
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

debug_as_description!(ConnectError);

/// Makes a client from the environment: from `KUBECONFIG`, from `~/.kube/config`, or inside a pod from
/// its service account.
///
/// # Errors
///
/// There is no configuration, or it cannot be used.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
pub async fn connect() -> Result<Client, ConnectError> {
    if let Some(paths) = env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty()) {
        return from_kubeconfig(paths).await;
    }
    if let Some(path) = default_kubeconfig().filter(|path| path.is_file()) {
        return from_kubeconfig(path).await;
    }
    let config = Config::incluster().map_err(|source| ConnectError::NoCluster {
        source: Box::new(source),
    })?;
    from_config(config, Http2::default())
}

/// Returns where kubectl keeps its configuration.
fn default_kubeconfig() -> Option<PathBuf> {
    Some(env::home_dir()?.join(".kube").join("config"))
}

/// Makes a client from a kubeconfig file, for its current context.
///
/// Several files, separated as in the environment variable `KUBECONFIG`, are merged as kubectl does; of
/// several, those that are missing are passed over.
///
/// # Errors
///
/// A file cannot be read, is malformed, or names things that are not in it.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
pub async fn from_kubeconfig(paths: impl AsRef<OsStr>) -> Result<Client, ConnectError> {
    let paths = paths.as_ref();
    let files: Vec<PathBuf> = env::split_paths(paths)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    // kubectl passes over what is missing in a list, as long as something is there.
    let is_there = |path: &&PathBuf| files.len() == 1 || path.exists();
    if files.len() > 1 && !files.iter().any(|path| path.exists()) {
        return Err(ConnectError::Kubeconfig {
            path: paths.into(),
            detail: "none of the files exists".to_owned(),
        });
    }
    let mut merged = Kubeconfig::default();
    for path in files.iter().filter(is_there) {
        let next = Kubeconfig::read_from(path).map_err(|error| unusable(path, &error))?;
        merged = merged.merge(next).map_err(|error| unusable(path, &error))?;
    }
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(merged, &options).await;
    let config = config.map_err(|error| unusable(Path::new(paths), &error))?;
    from_config(config, Http2::default())
}

/// Says what is wrong with a kubeconfig. Its parser shows lines of the file; they stay out of this.
fn unusable(path: &Path, error: &KubeconfigError) -> ConnectError {
    let detail = match error {
        // The others name the file, which is named already.
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        KubeconfigError::CurrentContextNotSet => "it has no current context".to_owned(),
        error => describe(error),
    };
    let detail = detail.lines().next().unwrap_or_default();
    ConnectError::Kubeconfig {
        path: path.to_owned(),
        detail: without_values(detail),
    }
}

/// Makes a client from a configuration of kube's.
///
/// Up to a hundred requests share a connection where the API server speaks HTTP/2; a connection on which
/// nothing comes is tested every 30 seconds, and `read_timeout` and `write_timeout` of the configuration are
/// not used. Through a proxy, and for exec, attach and port-forward, HTTP/1.1 is spoken.
///
/// kube's own retries are turned off: they would try a refused request again for minutes without a word, and
/// reflectors have a backoff of their own, which can be seen.
///
/// # Errors
///
/// The server is no URL, or what is said about TLS or authentication cannot be used.
///
/// # Panics
///
/// Outside a tokio runtime.
pub fn from_config(mut config: Config, http2: Http2) -> Result<Client, ConnectError> {
    config.default_retry = false;
    let url = config.cluster_url.to_string();
    // kube would panic.
    if config.cluster_url.scheme().is_none() || config.cluster_url.host().is_none() {
        return Err(ConnectError::NoUrl { url });
    }
    multiplex::client(config, http2).map_err(|source| ConnectError::Client {
        url,
        source: Box::new(source),
    })
}

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
    #[error("no client can be made from the configuration of {url}: {detail}")]
    Client {
        /// The API server.
        url: String,
        /// What is wrong; it names the file or the command of an exec plugin.
        detail: String,
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
    from_config(config, Http2::default()).await
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
    let root_cert_file = root_cert_file(&merged);
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(merged, &options).await;
    let mut config = config.map_err(|error| unusable(Path::new(paths), &error))?;
    config.root_cert_file = root_cert_file;
    from_config(config, Http2::default()).await
}

/// Returns the file of the authorities of the current cluster, if they are in a file. kube forgets it, but it is read
/// again where it is known, as authorities are replaced now and then.
fn root_cert_file(kubeconfig: &Kubeconfig) -> Option<PathBuf> {
    let current = kubeconfig.current_context.as_ref()?;
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts.find(|each| each.name == *current)?;
    let name = &context.context.as_ref()?.cluster;
    let mut clusters = kubeconfig.clusters.iter();
    let cluster = clusters.find(|each| each.name == *name)?;
    let cluster = cluster.cluster.as_ref()?;
    let is_in_file = cluster.certificate_authority_data.is_none();
    let file = cluster.certificate_authority.as_ref();
    file.filter(|_| is_in_file).map(PathBuf::from)
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
/// Where the API server speaks HTTP/2, requests share connections: up to a hundred, or as many as the server takes.
/// Watches leave a tenth of that to others, and when a connection is full another one is opened. A connection on which
/// nothing comes is tested after 30 seconds and given up after 45, over HTTP/2 by pings and otherwise by TCP;
/// `read_timeout` and `write_timeout` of the configuration are not used. For exec, attach and port-forward, HTTP/1.1
/// is spoken.
///
/// Over HTTP/1.1, a proxy or load balancer may keep connections alive on which it passes nothing on. So when an answer
/// is being read, and nothing has come on any HTTP/1.1 connection of the client for 30 seconds, the API server is sent
/// `GET /version`, one request for all that wait. Any answer will do, 401, 403 and 5xx too. Without one within 15
/// seconds, bodies of answers that are being read end with an error, as watches then do, and idle connections are not
/// used again. Bytes on one connection show that the network works, so they put the test off for all: that a
/// particular other connection is dead is left to TCP.
///
/// An exec plugin is run once, and again before its credential expires; if it fails then, the credential is used until
/// it expires, and the plugin run again every five seconds. It does not block the runtime. One that takes longer than a
/// minute is killed, unless it can ask its user for something (`interactiveMode`); dropping the runtime waits for a
/// plugin that runs. Files of tokens and client certificates are read again every minute; connections with an older certificate
/// get no more requests. If the API server answers 401, all of that is done at once, and the request repeated once
/// with what came of it; a plugin is run every five seconds at most for that reason.
///
/// kube's own retries are turned off: they would try a refused request again for minutes without a word, and
/// reflectors have a backoff of their own, which can be seen.
///
/// # Errors
///
/// The server is no URL, or what is said about TLS or authentication cannot be used: a file is missing, an exec plugin
/// fails.
///
/// # Panics
///
/// Outside a tokio runtime.
///
/// # Cancel safety
///
/// Dropping the future loses nothing. An exec plugin that was started runs to its end, or until it is killed.
pub async fn from_config(mut config: Config, http2: Http2) -> Result<Client, ConnectError> {
    config.default_retry = false;
    let url = config.cluster_url.to_string();
    // kube would panic.
    if config.cluster_url.scheme().is_none() || config.cluster_url.host().is_none() {
        return Err(ConnectError::NoUrl { url });
    }
    let client = multiplex::client(config, http2).await;
    client.map_err(|error| ConnectError::Client {
        url,
        detail: describe(&error),
    })
}

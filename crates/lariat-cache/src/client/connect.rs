//! Connecting to a cluster.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::multiplex::{self, Http2};
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use lariat_core::{debug_as_description, describe, without_values};

/// A client that could not be created. Nothing was sent yet.
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
    /// The text of a kubeconfig is malformed, or refers to something outside of it.
    #[error("the kubeconfig cannot be used: {detail}")]
    KubeconfigText {
        /// What is wrong, without the content, which may be secret.
        detail: String,
    },
    /// There is no `KUBECONFIG`, no `~/.kube/config` and no service account.
    #[error(
        "no cluster is configured: KUBECONFIG is not set, there is no ~/.kube/config, and this is no \
         pod with a service account"
    )]
    NoCluster {
        /// What is missing for a service account.
        source: Box<InClusterError>,
    },
    /// The server of the configuration is not a URL.
    #[error(
        "the server {url:?} of the configuration is not a URL; it usually begins with https://"
    )]
    NoUrl {
        /// The server as configured.
        url: String,
    },
    /// The configuration of TLS or authentication cannot be used.
    #[error("cannot create a client from the configuration of {url}: {detail}")]
    Client {
        /// The URL of the API server.
        url: String,
        /// What is wrong; it names the file or the command of an exec plugin.
        detail: String,
    },
}

debug_as_description!(ConnectError);

/// Creates a client from the environment.
///
/// Uses `KUBECONFIG`, else `~/.kube/config`, else, inside a pod, its service account.
///
/// ```no_run
/// # async fn example() -> Result<(), lariat_cache::ConnectError> {
/// let client = lariat_cache::connect().await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
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

/// Returns the default path of kubectl's configuration.
fn default_kubeconfig() -> Option<PathBuf> {
    Some(env::home_dir()?.join(".kube").join("config"))
}

/// Creates a client from a kubeconfig file, for its current context.
///
/// Several files, separated as in the environment variable `KUBECONFIG`, are merged as kubectl does; missing ones among
/// several are skipped.
///
/// ```no_run
/// # async fn example() -> Result<(), lariat_cache::ConnectError> {
/// let client = lariat_cache::from_kubeconfig("/etc/operator/kubeconfig").await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// A file cannot be read, is malformed, or refers to entries that it does not contain.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
pub async fn from_kubeconfig(paths: impl AsRef<OsStr>) -> Result<Client, ConnectError> {
    let paths = paths.as_ref();
    let files: Vec<PathBuf> = env::split_paths(paths)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    // kubectl skips missing files of a list, as long as one exists.
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
    from_files(merged, Path::new(paths)).await
}

/// Creates a client from exactly one kubeconfig file, for its current context.
///
/// Unlike [`from_kubeconfig`] it takes a path with the separator of `KUBECONFIG`, such as a colon, for one file.
///
/// # Errors
///
/// The file cannot be read, is malformed, or refers to entries that it does not contain.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
pub async fn from_kubeconfig_file(path: impl AsRef<Path>) -> Result<Client, ConnectError> {
    let path = path.as_ref();
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| unusable(path, &error))?;
    from_files(kubeconfig, path).await
}

/// Creates a client from what files say; `paths` names them in errors.
async fn from_files(merged: Kubeconfig, paths: &Path) -> Result<Client, ConnectError> {
    let root_cert_file = root_cert_file(&merged);
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(merged, &options)
        .await
        .map_err(|error| unusable(paths, &error))?;
    config.root_cert_file = root_cert_file;
    from_config(config, Http2::default()).await
}

/// Creates a client from the text of a kubeconfig that refers to nothing outside of it, for its current context.
///
/// Use it for kubeconfigs that others may write, such as those in Secrets: one with a command to run, an auth provider,
/// or the path of a file is refused, because it would run or be read here.
///
/// ```no_run
/// # async fn example(secret: k8s_openapi::api::core::v1::Secret) -> Result<(), lariat_cache::ConnectError> {
/// let data = secret.data.unwrap_or_default();
/// let client = lariat_cache::from_kubeconfig_text(&data["value"].0).await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// The text is malformed, refers to entries that it does not contain, or to something outside of it.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
pub async fn from_kubeconfig_text(text: &[u8]) -> Result<Client, ConnectError> {
    let unusable = |detail: String| ConnectError::KubeconfigText { detail };
    let text = std::str::from_utf8(text).map_err(|error| unusable(error.to_string()))?;
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|error| unusable(described(&error)))?;
    if let Some(detail) = refers_outside(&kubeconfig) {
        return Err(unusable(detail));
    }
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let config = config.map_err(|error| unusable(described(&error)))?;
    from_config(config, Http2::default()).await
}

/// Returns what a kubeconfig refers to outside of it, if there is anything.
fn refers_outside(kubeconfig: &Kubeconfig) -> Option<String> {
    let users = kubeconfig.auth_infos.iter();
    let users = users.filter_map(|each| Some((&each.name, each.auth_info.as_ref()?)));
    let of_user = users.into_iter().find_map(|(name, user)| {
        let what = match () {
            () if user.exec.is_some() => "a command to run",
            () if user.auth_provider.is_some() => "an auth provider",
            () if user.token_file.is_some() => "a file with a token",
            () if user.client_certificate.is_some() => "a file with a certificate",
            () if user.client_key.is_some() => "a file with a key",
            () => return None,
        };
        Some(format!("user {name:?} has {what}, which is refused here"))
    });
    let mut clusters = kubeconfig.clusters.iter();
    of_user.or_else(|| {
        let named = clusters.find(|each| {
            let cluster = each.cluster.as_ref();
            cluster.is_some_and(|it| it.certificate_authority.is_some())
        })?;
        let name = &named.name;
        Some(format!(
            "cluster {name:?} has a file with a CA, which is refused here"
        ))
    })
}

/// Returns the CA file of the current cluster, if its certificates are in a file.
///
/// kube drops the path after reading the file. With the path, the file is read again, because CA certificates are
/// replaced now and then.
fn root_cert_file(kubeconfig: &Kubeconfig) -> Option<PathBuf> {
    let current = kubeconfig.current_context.as_ref()?;
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts.find(|each| each.name == *current)?;
    let name = &context.context.as_ref()?.cluster;
    let mut clusters = kubeconfig.clusters.iter();
    let cluster = clusters.find(|each| each.name == *name)?.cluster.as_ref()?;
    let is_in_file = cluster.certificate_authority_data.is_none();
    let file = cluster.certificate_authority.as_ref();
    file.filter(|_| is_in_file).map(PathBuf::from)
}

fn unusable(path: &Path, error: &KubeconfigError) -> ConnectError {
    ConnectError::Kubeconfig {
        path: path.to_owned(),
        detail: described(error),
    }
}

/// Describes an error of a kubeconfig. Its parser quotes lines of the file, which are left out.
fn described(error: &KubeconfigError) -> String {
    let detail = match error {
        // The other errors name the file, which `ConnectError` names already.
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        KubeconfigError::CurrentContextNotSet => "it has no current context".to_owned(),
        error => describe(error),
    };
    let first_line = detail.lines().next().unwrap_or_default();
    without_values(first_line)
}

/// Creates a client from a configuration of kube.
///
/// **Connections.** With HTTP/2, up to a hundred requests share a connection, or as many as the server allows. Watches
/// leave a tenth of that to other requests, and when a connection is full, another one is opened. A silent connection
/// is tested after 30 seconds and closed after 45, by pings over HTTP/2 and otherwise by TCP keepalive; `read_timeout`
/// and `write_timeout` of the configuration are not used. Exec, attach and port-forward use HTTP/1.1.
///
/// **Liveness over HTTP/1.1.** A proxy or load balancer may keep connections alive without passing anything on. So
/// while an answer is being read and nothing has arrived on any HTTP/1.1 connection of the client for 30 seconds, `GET
/// /version` is sent, once for all that wait. Any answer counts, also 401, 403 and 5xx. If none arrives within 15
/// seconds, the bodies of answers that are being read fail, so watches end, and idle connections are not reused. Bytes
/// on one connection show that the network works and postpone the test for all; a single dead connection is left to TCP
/// keepalive.
///
/// **Credentials.** An exec plugin is run once, and again before its credential expires. If it fails then, the
/// credential is used until it expires, and the plugin is run again at most every five seconds. Plugins run on blocking
/// threads. A plugin that takes longer than a minute is killed, unless it may ask its user for something
/// (`interactiveMode`); dropping the runtime waits for a running plugin. Files of tokens and client certificates are
/// read again every minute; connections with an older certificate get no more requests. If the API server answers 401,
/// credentials are renewed immediately and the request is repeated once with the new ones; for this reason a plugin is
/// run every five seconds at most.
///
/// **Retries.** kube's own retries are disabled: they would silently retry a refused request for minutes, and
/// reflectors have a backoff of their own that shows in their status.
///
/// ```no_run
/// use kube::Config;
/// use lariat_cache::Http2;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = Config::new("https://10.0.0.1:6443".parse()?);
/// let client = lariat_cache::from_config(config, Http2::Negotiated).await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// The server is not a URL, or the configuration of TLS or authentication cannot be used: a file is missing, an exec
/// plugin fails.
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
    // kube would panic without a scheme or host.
    if config.cluster_url.scheme().is_none() || config.cluster_url.host().is_none() {
        return Err(ConnectError::NoUrl { url });
    }
    let client = multiplex::client(config, http2).await;
    client.map_err(|error| ConnectError::Client {
        url,
        detail: describe(&error),
    })
}

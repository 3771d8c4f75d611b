//! Connecting to a cluster: from the environment, kubeconfigs or a configuration.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use kube::config::InClusterError;
use kube::{Client, Config};
use lariat_core::{debug_as_description, describe};

use crate::kubeconfig::{Kubeconfig, Origin, Unusable};
use crate::multiplex::{self, Http2};
use crate::url;

/// The error of a client that could not be created; nothing was sent.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A kubeconfig is missing, unreadable or malformed.
    #[error("the kubeconfig {path:?} cannot be used: {detail}")]
    Kubeconfig {
        /// The file, or the files.
        path: PathBuf,
        /// What is wrong; it contains nothing of the file, which may be secret.
        detail: String,
    },
    /// The text of a kubeconfig is malformed, or refers to something outside the text.
    #[error("the kubeconfig cannot be used: {detail}")]
    KubeconfigText {
        /// What is wrong; it contains nothing of the text, which may be secret.
        detail: String,
    },
    /// There is no `KUBECONFIG`, no `~/.kube/config` and no service account.
    #[error(
        "no cluster is configured: KUBECONFIG is not set, there is no ~/.kube/config, and this is not a \
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
/// It uses `KUBECONFIG` if set, else `~/.kube/config`, else the ServiceAccount of the pod. See [`from_config`] for the
/// connections and credentials of the client.
///
/// ```no_run
/// # async fn example() -> Result<(), lariat::cache::ConnectError> {
/// let client = lariat::connect().await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Fails if there is no configuration, or it cannot be used.
///
/// # Cancel safety
///
/// Cancel safe: dropping the future loses nothing.
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
/// Several files, separated as in the environment variable `KUBECONFIG`, are merged as kubectl merges them: the first
/// file that has an entry or a current context wins. Missing files among several are skipped.
///
/// The file means the same as to kubectl:
///
/// - Empty members are missing ones. Entries that the current context does not use may be incomplete.
/// - The file of `tokenFile` is used rather than `token`, as long as it can be read. Data (`client-certificate-data`)
///   takes precedence over a file. An exec plugin is run if there is no other credential.
/// - Without `proxy-url`, the proxy is that of `HTTPS_PROXY` or `HTTP_PROXY`, by the scheme of the server, unless
///   `NO_PROXY` excludes the server or it is on this machine.
/// - Credentials are not sent over `http://`, except to a server on this machine, where kubectl sends none.
///
/// The files are read again when the server refuses the credentials with 401 or TLS fails, at most every ten seconds.
/// This reads the context with which the client was created, whichever context is current then. If the context was
/// removed, or has another server, TLS server name or proxy, a warning is logged and the previous credentials are used.
///
/// ```no_run
/// # async fn example() -> Result<(), lariat::cache::ConnectError> {
/// let client = lariat::from_kubeconfig("/etc/operator/kubeconfig").await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Fails if a file cannot be read, is malformed, or its current context refers to entries that it does not contain.
///
/// # Cancel safety
///
/// Cancel safe: dropping the future loses nothing.
pub async fn from_kubeconfig(paths: impl AsRef<OsStr>) -> Result<Client, ConnectError> {
    let paths = paths.as_ref();
    let files: Vec<PathBuf> = env::split_paths(paths)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    from_files(files, Path::new(paths)).await
}

/// Creates a client from exactly one kubeconfig file, for its current context.
///
/// Unlike [`from_kubeconfig`], it accepts a path that contains the separator of `KUBECONFIG`, such as a colon.
///
/// # Errors
///
/// Fails if the file cannot be read, is malformed, or its current context refers to entries that it does not contain.
///
/// # Cancel safety
///
/// Cancel safe: dropping the future loses nothing.
pub async fn from_kubeconfig_file(path: impl AsRef<Path>) -> Result<Client, ConnectError> {
    let path = path.as_ref();
    from_files(vec![path.to_owned()], path).await
}

/// Creates a client from merged kubeconfigs; `paths` names them in errors.
async fn from_files(files: Vec<PathBuf>, paths: &Path) -> Result<Client, ConnectError> {
    let unusable = |Unusable { path, detail }| ConnectError::Kubeconfig {
        path: path.unwrap_or_else(|| paths.to_owned()),
        detail,
    };
    let (origin, config) = Origin::open(files).map_err(unusable)?;
    create(config, Some(origin), Http2::default()).await
}

/// Creates a client from the text of a self-contained kubeconfig.
///
/// The current context is used. Call this for kubeconfigs that others may write, such as those in Secrets. A kubeconfig
/// with a command to run, an auth provider, or the path of a file is refused, because the command would run, or the
/// file be read, in this process. Otherwise it means the same as in [`from_kubeconfig`].
///
/// ```no_run
/// # async fn example(secret: k8s_openapi::api::core::v1::Secret) -> Result<(), lariat::cache::ConnectError> {
/// let data = secret.data.unwrap_or_default();
/// let client = lariat::cache::from_kubeconfig_text(&data["value"].0).await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Fails if the text is malformed, refers to something outside the text, or its current context refers to entries that
/// it does not contain.
///
/// # Cancel safety
///
/// Cancel safe: dropping the future loses nothing.
pub async fn from_kubeconfig_text(text: &[u8]) -> Result<Client, ConnectError> {
    let kubeconfig = Kubeconfig::parse(text).and_then(Kubeconfig::self_contained);
    let config = kubeconfig.and_then(|kubeconfig| kubeconfig.settle());
    let config = config.map_err(|detail| ConnectError::KubeconfigText { detail })?;
    create(config, None, Http2::default()).await
}

/// Creates a client from a configuration of kube.
///
/// **Connections.** With HTTP/2, up to a hundred requests share a connection, or fewer if the server's limit is lower.
/// Watches leave a tenth of a connection to other requests. When a connection is full, another one is opened. A silent
/// connection is tested after 30 seconds and closed after 45, by pings over HTTP/2 and otherwise by TCP keepalive;
/// `read_timeout` and `write_timeout` of the configuration are not used. Exec, attach and port-forward use HTTP/1.1.
///
/// **Liveness over HTTP/1.1.** A proxy or load balancer may keep connections open without passing anything on. So while
/// an answer is being read and nothing has arrived on any HTTP/1.1 connection of the client for 30 seconds, one `GET
/// /version` is sent for all answers that wait. Any answer counts, also 401, 403 and 5xx. If none arrives within 15
/// seconds, the bodies that are being read fail, so watches end, and idle connections are not reused. Bytes on one
/// connection show that the network works and postpone the test for all; a single dead connection is left to TCP
/// keepalive.
///
/// **Credentials.** An exec plugin is run once, and again in the background before its credential expires; requests
/// wait for it only once the credential has expired. If a run fails, the credential is used until it expires, and the
/// plugin is run again at most every five seconds. Plugins run on blocking threads. A plugin that takes longer than a
/// minute is killed, unless it may ask its user something (`interactiveMode`); dropping the runtime waits for a running
/// plugin. Files of tokens and certificates are read again every minute. Tokens are trimmed. A file that is missing,
/// empty or half-written, and a certificate that does not belong to its key, are not used: the previous content is, and
/// the file is read again after a second. Connections with an older certificate get no more requests. If the API server
/// answers 401, or TLS fails, credentials are read again immediately, and the request is repeated once with the new
/// ones. A plugin is run again at most every five seconds, and at most once a minute while its credentials go on being
/// refused. If TLS fails, it is run again only if it has given a certificate: a token has no part in that.
///
/// **Proxies.** `proxy_url` is used as it is; the environment is not read. A user and password in it are sent to the
/// proxy, and never appear in errors.
///
/// **Retries.** kube's own retries are disabled: they would silently retry a refused request for minutes, and
/// reflectors have their own backoff, which their status shows.
///
/// ```no_run
/// use kube::Config;
/// use lariat::cache::Http2;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = Config::new("https://10.0.0.1:6443".parse()?);
/// let client = lariat::from_config(config, Http2::Negotiated).await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Fails if the server is not a URL, or the configuration of TLS or authentication cannot be used: a file is missing,
/// or an exec plugin fails.
///
/// # Panics
///
/// Panics outside a tokio runtime.
///
/// # Cancel safety
///
/// Cancel safe: dropping the future loses nothing. An exec plugin that was started runs to its end, or until it is
/// killed.
pub async fn from_config(config: Config, http2: Http2) -> Result<Client, ConnectError> {
    create(config, None, http2).await
}

/// Creates a client; its credentials are read again from `origin` when they are refused.
async fn create(
    mut config: Config,
    origin: Option<Origin>,
    http2: Http2,
) -> Result<Client, ConnectError> {
    config.default_retry = false;
    // Users and passwords in URLs would be in errors and logs.
    let (cluster_url, _) = url::split_user(config.cluster_url);
    config.cluster_url = cluster_url;
    let url = config.cluster_url.to_string();
    // kube panics without a scheme or host.
    if config.cluster_url.scheme().is_none() || config.cluster_url.host().is_none() {
        return Err(ConnectError::NoUrl { url });
    }
    let client = multiplex::client(config, origin, http2).await;
    client.map_err(|error| ConnectError::Client {
        url,
        detail: describe(&error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_kubeconfig_without_its_context_names_the_others_and_what_to_do() {
        let none = "contexts: []";
        let two = "contexts: [{name: prod}, {name: kind-test}]";
        for (text, expected) in [
            (
                two,
                "it has no current context; choose one of prod, kind-test with `kubectl config use-context NAME`",
            ),
            (
                &format!("{two}\ncurrent-context: ''"),
                "it has no current context; choose one of prod, kind-test with `kubectl config use-context NAME`",
            ),
            (
                &format!("{two}\ncurrent-context: gone"),
                "it has no context \"gone\", which is the current one; choose one of prod, kind-test with `kubectl \
                 config use-context NAME`",
            ),
            (none, "it has no current context, and no other contexts"),
        ] {
            let error = from_kubeconfig_text(text.as_bytes()).await.map(drop);
            let expected = format!("the kubeconfig cannot be used: {expected}");
            assert_eq!(error.unwrap_err().to_string(), expected, "{text}");
        }
    }
}

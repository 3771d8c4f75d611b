//! Connecting to a cluster: from the environment, kubeconfigs or a configuration.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::multiplex::{self, Http2};
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use lariat_core::{debug_as_description, describe, without_values};

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
/// Several files, separated as in the environment variable `KUBECONFIG`, are merged as kubectl merges them. Missing
/// files among several are skipped.
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
/// Fails if a file cannot be read, is malformed, or refers to entries that it does not contain.
///
/// # Cancel safety
///
/// Cancel safe: dropping the future loses nothing.
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
/// Unlike [`from_kubeconfig`], it accepts a path that contains the separator of `KUBECONFIG`, such as a colon.
///
/// # Errors
///
/// Fails if the file cannot be read, is malformed, or refers to entries that it does not contain.
///
/// # Cancel safety
///
/// Cancel safe: dropping the future loses nothing.
pub async fn from_kubeconfig_file(path: impl AsRef<Path>) -> Result<Client, ConnectError> {
    let path = path.as_ref();
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| unusable(path, &error))?;
    from_files(kubeconfig, path).await
}

/// Creates a client from merged kubeconfigs; `paths` names them in errors.
async fn from_files(merged: Kubeconfig, paths: &Path) -> Result<Client, ConnectError> {
    if let Some(detail) = without_context(&merged) {
        return Err(ConnectError::Kubeconfig {
            path: paths.to_owned(),
            detail,
        });
    }
    let root_cert_file = root_cert_file(&merged);
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(merged, &options)
        .await
        .map_err(|error| unusable(paths, &error))?;
    config.root_cert_file = root_cert_file;
    from_config(config, Http2::default()).await
}

/// Creates a client from the text of a self-contained kubeconfig.
///
/// It uses the current context. Call this for kubeconfigs that others may write, such as those in Secrets. A kubeconfig
/// with a command to run, an auth provider, or the path of a file is refused, because the command would run, or the
/// file be read, in this process.
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
/// Fails if the text is malformed, refers to entries that it does not contain, or to something outside the text.
///
/// # Cancel safety
///
/// Cancel safe: dropping the future loses nothing.
pub async fn from_kubeconfig_text(text: &[u8]) -> Result<Client, ConnectError> {
    let unusable = |detail: String| ConnectError::KubeconfigText { detail };
    let text = std::str::from_utf8(text).map_err(|error| unusable(error.to_string()))?;
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|error| unusable(described(&error)))?;
    if let Some(detail) = refers_outside(&kubeconfig) {
        return Err(unusable(detail));
    }
    if let Some(detail) = without_context(&kubeconfig) {
        return Err(unusable(detail));
    }
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let config = config.map_err(|error| unusable(described(&error)))?;
    from_config(config, Http2::default()).await
}

/// Returns what a kubeconfig refers to outside its text, if anything.
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
        Some(format!(
            "user {name:?} has {what}, which a self-contained kubeconfig must not have"
        ))
    });
    let mut clusters = kubeconfig.clusters.iter();
    of_user.or_else(|| {
        let named = clusters.find(|each| {
            let cluster = each.cluster.as_ref();
            cluster.is_some_and(|it| it.certificate_authority.is_some())
        })?;
        let name = &named.name;
        Some(format!(
            "cluster {name:?} has a file with a CA, which a self-contained kubeconfig must not have"
        ))
    })
}

/// Returns what is wrong with the current context of a kubeconfig, if there is none of its name.
fn without_context(kubeconfig: &Kubeconfig) -> Option<String> {
    let current = kubeconfig.current_context.as_deref().unwrap_or_default();
    let names: Vec<&str> = kubeconfig
        .contexts
        .iter()
        .map(|context| &context.name[..])
        .collect();
    let wrong = match current {
        // kubectl writes an empty name.
        "" => "it has no current context".to_owned(),
        current if names.contains(&current) => return None,
        current => format!("it has no context {current:?}, which is the current one"),
    };
    Some(match names[..] {
        [] => format!("{wrong}, and no other contexts"),
        _ => format!(
            "{wrong}; choose one of {} with `kubectl config use-context NAME`",
            names.join(", ")
        ),
    })
}

/// Returns the CA file of the current cluster, if its certificates are in a file.
///
/// kube drops the path after reading the file. Here the file is read again later, because CA certificates are replaced
/// now and then.
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

/// Describes an error of a kubeconfig, without the lines that its parser quotes.
fn described(error: &KubeconfigError) -> String {
    let detail = match error {
        // The other errors contain the path, as `ConnectError` does.
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        error => describe(error),
    };
    let first_line = detail.lines().next().unwrap_or_default();
    without_values(first_line)
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
/// **Credentials.** An exec plugin is run once, and again before its credential expires. If that run fails, the
/// credential is used until it expires, and the plugin is run again at most every five seconds. Plugins run on blocking
/// threads. A plugin that takes longer than a minute is killed, unless it may ask its user something
/// (`interactiveMode`); dropping the runtime waits for a running plugin. Files of tokens and client certificates are
/// read again every minute; connections with an older certificate get no more requests. If the API server answers 401,
/// credentials are renewed immediately, at most every five seconds for a plugin, and the request is repeated once with
/// the new ones.
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
pub async fn from_config(mut config: Config, http2: Http2) -> Result<Client, ConnectError> {
    config.default_retry = false;
    let url = config.cluster_url.to_string();
    // kube panics without a scheme or host.
    if config.cluster_url.scheme().is_none() || config.cluster_url.host().is_none() {
        return Err(ConnectError::NoUrl { url });
    }
    let client = multiplex::client(config, http2).await;
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

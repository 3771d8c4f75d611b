//! The configuration of the current context.
//!
//! The rules are those of `clientcmd.DirectClientConfig` and `rest.Config` of client-go. In short: empty members are
//! missing; data takes precedence over files; a token or a password over an exec plugin, and a client certificate too.

use http::Uri;
use http::uri::Scheme;
use kube::Config;

use super::entry::Entry;
use super::merged::{Kubeconfig, List};
use super::{plugin, user};
use crate::pem;
use crate::proxy::{self, ProxyVariables};
use crate::url;

impl Kubeconfig {
    /// Returns the configuration of the current context, for the proxies of the environment.
    pub(crate) fn settle(&self) -> Result<Config, String> {
        self.settle_with(&ProxyVariables::from_env())
    }

    /// Returns the configuration of a context, for the proxies of the environment.
    pub(crate) fn settle_context(&self, name: &str) -> Result<Config, String> {
        let context = self.find(List::Contexts, name)?;
        let context = context.ok_or_else(|| format!("it has no context {name:?}"))?;
        self.settled(&context, &ProxyVariables::from_env())
    }

    pub(super) fn settle_with(&self, variables: &ProxyVariables) -> Result<Config, String> {
        self.settled(&self.current()?, variables)
    }

    fn settled(&self, context: &Entry<'_>, variables: &ProxyVariables) -> Result<Config, String> {
        let name = context.text("cluster")?.unwrap_or_default();
        let cluster = self.find(List::Clusters, name)?.ok_or_else(|| {
            context.wrong(format!("names the cluster {name:?}, which is not there"))
        })?;
        // As in client-go, a user that is not there is nobody.
        let name = context.text("user")?.unwrap_or_default();
        let user = self.find(List::Users, name)?;
        let user = user.unwrap_or_else(|| Entry::missing("user", name));
        let mut config = of_cluster(&cluster, variables)?;
        let namespace = context.text("namespace")?;
        config.default_namespace = namespace.unwrap_or("default").to_owned();
        let of_url = config.auth_info;
        config.auth_info = user::auth_info(&user, &cluster)?;
        if !user::has_credentials(&config.auth_info) {
            config.auth_info.username = of_url.username;
            config.auth_info.password = of_url.password;
        }
        // As in client-go, a plugin and a file are refused only where they would be used.
        if url::may_have_credentials(&config.cluster_url) {
            let plugin = user.object("exec")?;
            plugin.map_or(Ok(()), |exec| plugin::check_version(&exec))?;
        } else if user::has_credentials(&config.auth_info) {
            let url = &config.cluster_url;
            tracing::warn!(%url, "the server has no TLS, so no credentials are sent; use an https:// URL");
            config.auth_info = user::without_credentials(config.auth_info);
        }
        if config.auth_info.token_file.is_some() && config.auth_info.username.is_some() {
            return Err(user.wrong(user::TWO_METHODS));
        }
        Ok(config)
    }
}

/// Returns the configuration of a cluster; its user is that of the URL.
fn of_cluster(cluster: &Entry<'_>, variables: &ProxyVariables) -> Result<Config, String> {
    let server = cluster.text("server")?;
    let server = server.ok_or_else(|| cluster.wrong("has no server"))?;
    let (server, user) = url::without_user(server);
    let parsed: Option<Uri> = server.parse().ok();
    let parsed = parsed.ok_or_else(|| cluster.wrong("has a server that is not a URL"))?;
    let mut config = Config::new(parsed);
    if let Some((name, password)) = user {
        config.auth_info.username = Some(name);
        config.auth_info.password = Some(password.into());
    }
    config.accept_invalid_certs = cluster.flag("insecure-skip-tls-verify")?;
    config.disable_compression = cluster.flag("disable-compression")?;
    config.tls_server_name = cluster.text("tls-server-name")?.map(str::to_owned);
    authorities(cluster, &mut config)?;
    config.proxy_url = match cluster.text("proxy-url")? {
        Some(text) => Some(explicit_proxy(text).map_err(|problem| cluster.wrong(problem))?),
        None => variables.proxy_of(&config.cluster_url),
    };
    Ok(config)
}

/// Reads the certificate authorities: data, or else a file. Without TLS they do not matter.
fn authorities(cluster: &Entry<'_>, config: &mut Config) -> Result<(), String> {
    let data = cluster.data("certificate-authority-data")?;
    let file = cluster.file("certificate-authority")?;
    if config.cluster_url.scheme() != Some(&Scheme::HTTPS) {
        return Ok(());
    }
    if config.accept_invalid_certs && (data.is_some() || file.is_some()) {
        let problem =
            "has insecure-skip-tls-verify and a certificate authority; remove one of the two";
        return Err(cluster.wrong(problem));
    }
    let Some(pem) = data else {
        config.root_cert_file = file.map(Into::into);
        return Ok(());
    };
    let wrong = |problem| cluster.wrong(format!("has a certificate-authority-data that {problem}"));
    config.root_cert = Some(pem::certificates(&pem).map_err(wrong)?);
    Ok(())
}

/// Parses a proxy of a cluster, which needs a scheme. The text is not shown, since it may have a password.
fn explicit_proxy(text: &str) -> Result<Uri, String> {
    let proxy: Option<Uri> = text.parse().ok();
    proxy
        .filter(|proxy| proxy::is_supported(proxy) && proxy.host().is_some())
        .ok_or_else(|| {
            "has a proxy-url that is not a URL with the scheme http, https or socks5".to_owned()
        })
}

//! The configuration of the current context.
//!
//! The rules are those of `clientcmd.DirectClientConfig` and `rest.Config` of client-go. In short: empty members are
//! missing; data takes precedence over files; a token or a password over an exec plugin, and a client certificate too.

use std::collections::HashMap;
use std::fs::File;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Uri;
use http::uri::Scheme;
use kube::Config;
use kube::config::{
    AuthInfo, AuthProviderConfig, ExecAuthCluster, ExecConfig, ExecInteractiveMode,
};

use super::entry::Entry;
use super::merged::{Kubeconfig, List};
use crate::client::pem;
use crate::client::proxy::{self, ProxyVariables};
use crate::client::url;

/// The extension of a cluster that is passed to exec plugins.
const EXEC_EXTENSION: &str = "client.authentication.k8s.io/exec";

impl Kubeconfig {
    /// Returns the configuration of the current context, for the proxies of the environment.
    pub(in crate::client) fn settle(&self) -> Result<Config, String> {
        self.settle_with(&ProxyVariables::from_env())
    }

    pub(super) fn settle_with(&self, variables: &ProxyVariables) -> Result<Config, String> {
        let context = self.current()?;
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
        let server_user = config.auth_info;
        config.auth_info = of_user(&user, &cluster)?;
        if !url::may_have_credentials(&config.cluster_url) && has_credentials(&config.auth_info) {
            let url = &config.cluster_url;
            tracing::warn!(%url, "the server has no TLS, so no credentials are sent; use an https:// URL");
            config.auth_info = without_credentials(config.auth_info);
        }
        if !has_credentials(&config.auth_info) {
            config.auth_info.username = server_user.username;
            config.auth_info.password = server_user.password;
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
    let file = file(cluster, "certificate-authority")?;
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

fn of_user(user: &Entry<'_>, cluster: &Entry<'_>) -> Result<AuthInfo, String> {
    let mut auth = AuthInfo {
        token: user
            .text("token")?
            .map(str::trim)
            .filter(|token| !token.is_empty())
            .map(Into::into),
        token_file: user.path("tokenFile")?,
        ..AuthInfo::default()
    };
    let (name, password) = (user.text("username")?, user.text("password")?);
    let has_both = auth.token.is_some() && (name.is_some() || password.is_some());
    if has_both || auth.token_file.is_some() && name.is_some() {
        return Err(user.wrong("has a token and a password; remove one of the two"));
    }
    // A password without a name is not sent, as in client-go.
    if let Some(name) = name {
        auth.username = Some(name.to_owned());
        auth.password = Some(password.unwrap_or_default().into());
    }
    certificate(user, &mut auth)?;
    impersonation(user, &mut auth)?;
    let exec = user.object("exec")?;
    let provider = user.object("auth-provider")?;
    if exec.is_some() && provider.is_some() {
        return Err(user.wrong("has an exec plugin and an auth-provider; remove one of the two"));
    }
    let exec = exec.map(|exec| plugin(&exec, cluster)).transpose()?;
    auth.exec = exec.filter(|_| !has_credentials(&auth));
    auth.auth_provider = provider.map(|entry| auth_provider(&entry)).transpose()?;
    Ok(auth)
}

/// Reads the client certificate and its key: data, or else files.
fn certificate(user: &Entry<'_>, auth: &mut AuthInfo) -> Result<(), String> {
    let certificate = user.data("client-certificate-data")?;
    let key = user.data("client-key-data")?;
    let certificate_file = file(user, "client-certificate")?.filter(|_| certificate.is_none());
    // A key without a certificate is not used, as in client-go.
    if certificate.is_none() && certificate_file.is_none() {
        return Ok(());
    }
    let key_file = file(user, "client-key")?.filter(|_| key.is_none());
    if key.is_none() && key_file.is_none() {
        return Err(user.wrong("has a client certificate without client-key-data or client-key"));
    }
    auth.client_certificate_data = certificate.map(|pem| BASE64.encode(pem));
    auth.client_certificate = certificate_file;
    auth.client_key_data = key.map(|pem| BASE64.encode(pem).into());
    auth.client_key = key_file;
    Ok(())
}

fn impersonation(user: &Entry<'_>, auth: &mut AuthInfo) -> Result<(), String> {
    let list = |texts: Vec<String>| Some(texts).filter(|texts| !texts.is_empty());
    auth.impersonate = user.text("as")?.map(str::to_owned);
    auth.impersonate_uid = user.text("as-uid")?.map(str::to_owned);
    auth.impersonate_groups = list(user.texts("as-groups")?);
    if let Some(extra) = user.object("as-user-extra")? {
        let names = extra.members().map(|(name, _)| name);
        let extra = names.map(|name| Ok((name.clone(), extra.texts(name)?)));
        let extra: HashMap<_, _> = extra.collect::<Result<_, String>>()?;
        auth.impersonate_user_extra = Some(extra).filter(|extra| !extra.is_empty());
    }
    let has_more = auth.impersonate_uid.is_some()
        || auth.impersonate_groups.is_some()
        || auth.impersonate_user_extra.is_some();
    if has_more && auth.impersonate.is_none() {
        return Err(user.wrong("has as-uid, as-groups or as-user-extra without as"));
    }
    Ok(())
}

fn plugin(exec: &Entry<'_>, cluster: &Entry<'_>) -> Result<ExecConfig, String> {
    let command = exec
        .text("command")?
        .ok_or_else(|| exec.wrong("has no command"))?;
    let version = exec.text("apiVersion")?.unwrap_or_default();
    let Some(version) = version.strip_prefix("client.authentication.k8s.io/") else {
        return Err(exec.wrong("needs the apiVersion client.authentication.k8s.io/v1"));
    };
    let mode = match (exec.text("interactiveMode")?, version) {
        (_, version) if !matches!(version, "v1" | "v1beta1") => {
            return Err(exec.wrong("needs the apiVersion client.authentication.k8s.io/v1"));
        }
        (Some("Never"), _) => ExecInteractiveMode::Never,
        (Some("Always"), _) => ExecInteractiveMode::Always,
        (Some("IfAvailable"), _) | (None, "v1beta1") => ExecInteractiveMode::IfAvailable,
        _ => return Err(exec.wrong("needs the interactiveMode Never, IfAvailable or Always")),
    };
    let provides_cluster = exec.flag("provideClusterInfo")?;
    // A name without a folder is looked up in PATH.
    let is_path = command.contains(std::path::MAIN_SEPARATOR);
    Ok(ExecConfig {
        api_version: Some(format!("client.authentication.k8s.io/{version}")),
        command: Some(if is_path {
            exec.absolute(command)
        } else {
            command.to_owned()
        }),
        args: Some(exec.texts("args")?),
        env: Some(environment(exec)?),
        install_hint: exec.text("installHint")?.map(printable),
        interactive_mode: Some(mode),
        provide_cluster_info: provides_cluster,
        cluster: provides_cluster
            .then(|| cluster_of_plugin(cluster))
            .transpose()?,
        ..ExecConfig::default()
    })
}

/// Reads the variables of a plugin. A value that is missing is empty.
fn environment(exec: &Entry<'_>) -> Result<Vec<HashMap<String, String>>, String> {
    let variable = |entry: Entry<'_>| {
        let name = entry
            .text("name")?
            .ok_or_else(|| entry.wrong("has no name"))?;
        let value = entry.text("value")?.unwrap_or_default();
        let members = [("name", name), ("value", value)];
        Ok(members
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into())
    };
    exec.objects("env")?.into_iter().map(variable).collect()
}

/// Removes control characters from a text for a terminal.
fn printable(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_control() || letter.is_whitespace())
        .collect()
}

/// Returns the description of the cluster that a plugin is given.
fn cluster_of_plugin(cluster: &Entry<'_>) -> Result<ExecAuthCluster, String> {
    let authority = match cluster.data("certificate-authority-data")? {
        Some(pem) => Some(pem),
        None => match cluster.path("certificate-authority")? {
            Some(path) => Some(std::fs::read(&path).map_err(|error| {
                cluster.wrong(format!(
                    "has a certificate-authority {path:?} that cannot be read: {error}"
                ))
            })?),
            None => None,
        },
    };
    let extensions = cluster.objects("extensions")?;
    let extension = extensions
        .iter()
        .find(|each| each.text("name") == Ok(Some(EXEC_EXTENSION)));
    Ok(ExecAuthCluster {
        server: cluster.text("server")?.map(str::to_owned),
        insecure_skip_tls_verify: Some(cluster.flag("insecure-skip-tls-verify")?)
            .filter(|flag| *flag),
        certificate_authority_data: authority,
        proxy_url: cluster.text("proxy-url")?.map(str::to_owned),
        tls_server_name: cluster.text("tls-server-name")?.map(str::to_owned),
        config: extension.and_then(|each| each.get("extension")).cloned(),
    })
}

fn auth_provider(entry: &Entry<'_>) -> Result<AuthProviderConfig, String> {
    let config = entry.object("config")?;
    let members = config.iter().flat_map(Entry::members);
    let texts =
        members.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    Ok(AuthProviderConfig {
        name: entry.text("name")?.unwrap_or_default().to_owned(),
        config: texts.collect(),
        other: Default::default(),
    })
}

/// Returns the path of a file that can be read.
fn file(entry: &Entry<'_>, name: &str) -> Result<Option<String>, String> {
    let path = entry.path(name)?;
    if let Some(path) = &path {
        File::open(path).map_err(|error| {
            entry.wrong(format!(
                "has a {name} {path:?} that cannot be read: {error}"
            ))
        })?;
    }
    Ok(path)
}

fn has_credentials(auth: &AuthInfo) -> bool {
    auth.token.is_some()
        || auth.token_file.is_some()
        || auth.username.is_some()
        || auth.client_certificate.is_some()
        || auth.client_certificate_data.is_some()
        || auth.exec.is_some()
        || auth.auth_provider.is_some()
}

/// Keeps the impersonated user only.
fn without_credentials(auth: AuthInfo) -> AuthInfo {
    AuthInfo {
        impersonate: auth.impersonate,
        impersonate_uid: auth.impersonate_uid,
        impersonate_groups: auth.impersonate_groups,
        impersonate_user_extra: auth.impersonate_user_extra,
        ..AuthInfo::default()
    }
}

//! The exec plugin of a user.

use std::collections::HashMap;

use kube::config::{ExecAuthCluster, ExecConfig, ExecInteractiveMode};

use super::entry::Entry;

/// The extension of a cluster that is passed to exec plugins.
const EXEC_EXTENSION: &str = "client.authentication.k8s.io/exec";

/// The API versions of exec plugins that Lariat supports.
const V1: &str = "client.authentication.k8s.io/v1";
const V1BETA1: &str = "client.authentication.k8s.io/v1beta1";
/// An unsupported version, which is valid in a kubeconfig as long as the plugin does not run.
const V1ALPHA1: &str = "client.authentication.k8s.io/v1alpha1";

/// Checks that the API version of a plugin is supported.
pub(super) fn check_version(exec: &Entry<'_>) -> Result<(), String> {
    match exec.text("apiVersion")? {
        Some(V1 | V1BETA1) => Ok(()),
        _ => Err(exec.wrong("needs the apiVersion client.authentication.k8s.io/v1")),
    }
}

/// Returns the configuration of an exec plugin, in any version.
pub(super) fn exec_config(exec: &Entry<'_>, cluster: &Entry<'_>) -> Result<ExecConfig, String> {
    let command = exec
        .text("command")?
        .ok_or_else(|| exec.wrong("has no command"))?;
    let version = exec.text("apiVersion")?;
    let version = version.ok_or_else(|| exec.wrong("has no apiVersion"))?;
    let mode = match (exec.text("interactiveMode")?, version) {
        (Some("Never"), _) => ExecInteractiveMode::Never,
        (Some("Always"), _) => ExecInteractiveMode::Always,
        (Some("IfAvailable"), _) | (None, V1BETA1 | V1ALPHA1) => ExecInteractiveMode::IfAvailable,
        _ => return Err(exec.wrong("needs the interactiveMode Never, IfAvailable or Always")),
    };
    let provides_cluster = exec.flag("provideClusterInfo")?;
    // A name without a folder is looked up in PATH.
    let is_path = command.contains(std::path::MAIN_SEPARATOR);
    Ok(ExecConfig {
        api_version: Some(version.to_owned()),
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

//! Entry points for fuzzers: kubeconfigs without a client.
//!
//! This is not public API: it exists with the feature `fuzzing` only, and may change at any time.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::Config;
use serde_json::{Value, json};

use super::Kubeconfig;

/// A kubeconfig that was read.
#[derive(Debug)]
pub struct KubeconfigText(Kubeconfig);

impl KubeconfigText {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// It is not a kubeconfig.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        Kubeconfig::parse(text).map(Self)
    }

    /// Returns the kubeconfig, if it refers to nothing outside of it.
    ///
    /// # Errors
    ///
    /// It refers to a file or a command.
    pub fn self_contained(self) -> Result<Self, String> {
        self.0.self_contained().map(Self)
    }

    /// Describes the configuration of the current context.
    ///
    /// Files that it refers to are read.
    ///
    /// # Errors
    ///
    /// It cannot be used.
    pub fn current(&self) -> Result<Value, String> {
        self.0.settle().map(|config| described(&config))
    }

    /// Describes the configuration of a context.
    ///
    /// Files that it refers to are read.
    ///
    /// # Errors
    ///
    /// It cannot be used.
    pub fn context(&self, name: &str) -> Result<Value, String> {
        self.0.settle_context(name).map(|config| described(&config))
    }
}

fn described(config: &Config) -> Value {
    let authorities = config.root_cert.iter().flatten();
    json!({
        "server": config.cluster_url.to_string(),
        "namespace": config.default_namespace,
        "authorities": authorities.map(|der| BASE64.encode(der)).collect::<Vec<_>>(),
        "authority-file": config.root_cert_file,
        "insecure": config.accept_invalid_certs,
        "uncompressed": config.disable_compression,
        "tls-server-name": config.tls_server_name,
        "proxy": config.proxy_url.as_ref().map(ToString::to_string),
        "user": serde_json::to_value(&config.auth_info).expect("it is plain data"),
    })
}

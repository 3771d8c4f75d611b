//! The `clientConfig` of a webhook.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The `clientConfig` of a webhook: its URL or its Service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientConfig {
    /// Its URL, if it is not a Service.
    pub url: Option<String>,
    /// The namespace and the name of its Service.
    pub service: Option<(String, String)>,
    /// The port of the Service.
    pub port: u16,
    /// The path at the Service.
    pub path: String,
    /// The authorities to trust, in PEM; empty for those of the machine.
    pub authorities: Vec<u8>,
}

impl ClientConfig {
    /// Reads a `clientConfig`; parts of a wrong type count as absent.
    ///
    /// ```
    /// use lariat_apimachinery::client_config::ClientConfig;
    /// use serde_json::json;
    ///
    /// let config = ClientConfig::read(&json!({"service": {"namespace": "shop", "name": "hook", "path": "/check"}}));
    /// assert_eq!(config.service, Some(("shop".to_owned(), "hook".to_owned())));
    /// assert_eq!((config.port, &*config.path), (443, "/check"));
    /// ```
    #[must_use]
    pub fn read(config: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let service = &config["service"];
        let bundle = config["caBundle"].as_str().unwrap_or_default();
        Self {
            url: config["url"].as_str().map(str::to_owned),
            service: service
                .is_object()
                .then(|| (text(&service["namespace"]), text(&service["name"]))),
            port: service["port"]
                .as_u64()
                .and_then(|port| u16::try_from(port).ok())
                .unwrap_or(443),
            path: text(&service["path"]),
            // Validation has refused bundles that are not base64; one that is older leads to a failed handshake.
            authorities: STANDARD.decode(bundle).unwrap_or_default(),
        }
    }
}

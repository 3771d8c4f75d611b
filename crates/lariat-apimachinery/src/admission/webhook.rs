//! One webhook of a configuration.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::conditions::Conditions;
use super::review::ReviewVersion;
use super::rules::Rules;
use crate::object::{Object, metadata_text};

/// One webhook of a configuration, compiled.
#[derive(Debug)]
pub struct Webhook {
    /// Its name.
    pub name: String,
    /// The name of its configuration.
    pub configuration: String,
    /// Where it is.
    pub client: ClientConfig,
    /// What it applies to.
    pub rules: Rules,
    /// Whether it applies to requests for other versions of what its rules name.
    pub matches_equivalent: bool,
    /// The labels a namespace must have, as a `LabelSelector`.
    pub namespace_selector: Value,
    /// The labels an object must have, as a `LabelSelector`.
    pub object_selector: Value,
    /// What has to hold of a request.
    pub conditions: Conditions,
    /// What becomes of a request when it cannot be called.
    pub failure_policy: FailurePolicy,
    /// Whether it may be called for a dry run.
    pub takes_dry_runs: bool,
    /// How long a call may take.
    pub timeout: Duration,
    /// The form of what it is asked; `None` if it knows none that there is.
    pub review: Option<ReviewVersion>,
    /// Whether it is called again when another one has changed the object.
    pub reinvocation: Reinvocation,
}

/// What becomes of a request when a webhook cannot be called, or a policy not be evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It is refused.
    Fail,
    /// It is carried out.
    Ignore,
}

impl FailurePolicy {
    /// Reads a policy, which is `Fail` unless it says otherwise.
    #[must_use]
    pub fn read(policy: &Value) -> Self {
        match policy.as_str() {
            Some("Ignore") => Self::Ignore,
            _ => Self::Fail,
        }
    }
}

/// Whether a mutating webhook or policy is asked a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reinvocation {
    /// It is asked once.
    Never,
    /// It is asked again when the object was changed behind it.
    IfNeeded,
}

impl Reinvocation {
    /// Reads a policy, which is `Never` unless it says otherwise.
    #[must_use]
    pub fn read(policy: &Value) -> Self {
        match policy.as_str() {
            Some("IfNeeded") => Self::IfNeeded,
            _ => Self::Never,
        }
    }
}

/// Where a webhook is.
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
            authorities: STANDARD.decode(bundle).unwrap_or_default(),
        }
    }
}

impl Webhook {
    /// Reads the webhooks of a configuration, in their order.
    #[must_use]
    pub fn read_all(configuration: &Object) -> Vec<Self> {
        let name = metadata_text(configuration, "name");
        let webhooks = configuration.get("webhooks").and_then(Value::as_array);
        let webhooks = webhooks.into_iter().flatten();
        webhooks.map(|webhook| Self::read(name, webhook)).collect()
    }

    fn read(configuration: &str, webhook: &Value) -> Self {
        let policy = FailurePolicy::read(&webhook["failurePolicy"]);
        let versions = webhook["admissionReviewVersions"].as_array();
        let mut versions = versions.into_iter().flatten();
        let side_effects = webhook["sideEffects"].as_str();
        Self {
            name: webhook["name"].as_str().unwrap_or_default().to_owned(),
            configuration: configuration.to_owned(),
            client: ClientConfig::read(&webhook["clientConfig"]),
            rules: Rules::read(&webhook["rules"]),
            matches_equivalent: webhook["matchPolicy"] == "Equivalent",
            namespace_selector: webhook["namespaceSelector"].clone(),
            object_selector: webhook["objectSelector"].clone(),
            conditions: Conditions::read(&webhook["matchConditions"]),
            failure_policy: policy,
            takes_dry_runs: matches!(side_effects, Some("None" | "NoneOnDryRun")),
            timeout: Duration::from_secs(webhook["timeoutSeconds"].as_u64().unwrap_or(10)),
            review: versions.find_map(ReviewVersion::read),
            reinvocation: Reinvocation::read(&webhook["reinvocationPolicy"]),
        }
    }
}

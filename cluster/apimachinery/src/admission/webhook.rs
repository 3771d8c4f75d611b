//! One webhook of a configuration.

use std::time::Duration;

use serde_json::Value;

use super::conditions::Conditions;
use super::matching::Matching;
use super::review::ReviewVersion;
use crate::client_config::ClientConfig;
use crate::object::{Object, metadata_text};

/// One webhook of a configuration, compiled.
#[derive(Debug)]
pub struct Webhook {
    /// Its name.
    pub name: String,
    /// The name of its configuration.
    pub configuration: String,
    /// Its URL or Service.
    pub client: ClientConfig,
    /// The requests to which it applies.
    pub matching: Matching,
    /// Its match conditions.
    pub conditions: Conditions,
    /// Whether a request is refused when the call fails.
    pub failure_policy: FailurePolicy,
    /// Whether it may be called for a dry run.
    pub takes_dry_runs: bool,
    /// The time limit of a call.
    pub timeout: Duration,
    /// The version of its reviews; `None` if it supports no known one.
    pub review: Option<ReviewVersion>,
    /// Whether it is called again when another one has changed the object.
    pub reinvocation: Reinvocation,
}

/// Whether a failed webhook call or policy evaluation rejects the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request is refused.
    Fail,
    /// The failure is ignored.
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
    /// It is called once.
    Never,
    /// It is called again when the object has changed after its call.
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

impl Webhook {
    /// Reads the webhooks of a configuration, in their order.
    ///
    /// ```
    /// use lariat_apimachinery::admission::{FailurePolicy, Webhook};
    /// use serde_json::json;
    ///
    /// let configuration = json!({"metadata": {"name": "shop"}, "webhooks": [{
    ///     "name": "pods.shop.dev", "clientConfig": {"url": "https://shop.dev/pods"}, "failurePolicy": "Ignore",
    ///     "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
    ///     "admissionReviewVersions": ["v1"], "sideEffects": "None",
    /// }]});
    /// let webhooks = Webhook::read_all(configuration.as_object().expect("an object"));
    /// assert_eq!(webhooks[0].failure_policy, FailurePolicy::Ignore);
    /// assert!(webhooks[0].takes_dry_runs);
    /// ```
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
            matching: Matching::of_webhook(webhook),
            conditions: Conditions::read(&webhook["matchConditions"]),
            failure_policy: policy,
            // `Some` and `Unknown` of v1beta1 configurations refuse dry runs.
            takes_dry_runs: matches!(side_effects, Some("None" | "NoneOnDryRun")),
            // The default of the API, in case that the object was stored without it.
            timeout: Duration::from_secs(webhook["timeoutSeconds"].as_u64().unwrap_or(10)),
            // The first one in the webhook's order that is known here.
            review: versions.find_map(ReviewVersion::read),
            reinvocation: Reinvocation::read(&webhook["reinvocationPolicy"]),
        }
    }
}

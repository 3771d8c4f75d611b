//! The configurations of a program's webhooks, and the permissions to apply them.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lariat_core::ObjectKey;
use lariat_operator::Rule;
use serde_json::{Value, json};

use super::label::{LABEL, label};
use super::webhook::{mutating, validating};
use crate::endpoint::Endpoint;
use crate::hook::HookSettings;
use crate::policy::Policy;
use crate::rules::Role;

/// The configurations of a program's webhooks, as they are applied.
///
/// They can also be printed as manifests, for clusters where another program installs them.
///
/// ```no_run
/// # use lariat::webhook::{WebhookError, Webhooks};
/// # fn example(webhooks: Webhooks, authority: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let configurations = webhooks.configurations(Some(authority))?;
/// if let Some(validating) = &configurations.validating {
///     print!("{}", lariat::operator::yaml(validating)?);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Configurations {
    /// The configuration of validating webhooks, if there are any.
    pub validating: Option<ValidatingWebhookConfiguration>,
    /// The configuration of mutating webhooks, if there are any.
    pub mutating: Option<MutatingWebhookConfiguration>,
    /// The Service, if it is applied.
    pub service: Option<Service>,
    /// The conversion part of each CRD, by the name of the CRD.
    pub conversions: BTreeMap<String, Value>,
    /// The admission policies, each with its binding.
    pub policies: Vec<(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)>,
}

/// Everything that the configurations are generated from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) hooks: Vec<(Role, HookSettings)>,
    /// The names of the CRDs that are converted.
    pub(crate) definitions: Vec<String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) policies: Vec<Policy>,
}

impl Described {
    /// Returns the full name of a webhook.
    pub(crate) fn full_name(&self, name: &str) -> String {
        format!("{name}.{}", self.name)
    }

    /// Returns the path of the conversion of a CRD.
    pub(crate) fn conversion_path(definition: &str) -> String {
        format!("/convert/{definition}")
    }

    /// Generates the configurations.
    pub(crate) fn configurations(
        &self,
        endpoint: &Endpoint,
        authority: Option<&str>,
        port: u16,
    ) -> Configurations {
        let of = |wanted| self.hooks.iter().filter(move |(role, _)| *role == wanted);
        let client = |role: Role, hook: &HookSettings| {
            endpoint.client_config(&role.path(&hook.name), authority)
        };
        let validating: Vec<_> = of(Role::Validating)
            .map(|(role, hook)| validating(hook, self.full_name(&hook.name), client(*role, hook)))
            .collect();
        let mutating: Vec<_> = of(Role::Mutating)
            .map(|(role, hook)| mutating(hook, self.full_name(&hook.name), client(*role, hook)))
            .collect();
        let conversions = self.definitions.iter().map(|definition| {
            let config = endpoint.client_config(&Self::conversion_path(definition), authority);
            let conversion = json!({
                "strategy": "Webhook",
                // `wire` reads no other version.
                "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]},
            });
            let mut partial = json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": definition},
                "spec": {"conversion": conversion},
            });
            if !self.annotations.is_empty() {
                partial["metadata"]["annotations"] = json!(self.annotations);
            }
            (definition.clone(), partial)
        });
        let policies = self.policies.iter().map(|policy| {
            let name = self.full_name(policy.name());
            let (mut definition, mut binding) = (policy.definition(&name), policy.binding(&name));
            definition.metadata.labels = Some(self.labels());
            binding.metadata.labels = Some(self.labels());
            (definition, binding)
        });
        Configurations {
            validating: (!validating.is_empty()).then(|| ValidatingWebhookConfiguration {
                metadata: self.metadata(),
                webhooks: Some(validating),
            }),
            mutating: (!mutating.is_empty()).then(|| MutatingWebhookConfiguration {
                metadata: self.metadata(),
                webhooks: Some(mutating),
            }),
            service: endpoint.service_to_apply(port),
            conversions: conversions.collect(),
            policies: policies.collect(),
        }
    }

    /// Returns the names of the policies.
    pub(crate) fn policy_names(&self) -> impl Iterator<Item = String> {
        let policies = self.policies.iter();
        policies.map(|policy| self.full_name(policy.name()))
    }

    /// Returns the labels by which unwanted configurations are found later.
    fn labels(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(LABEL.to_owned(), label(&self.name).to_owned())])
    }

    fn metadata(&self) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name.clone()),
            labels: Some(self.labels()),
            annotations: Some(self.annotations.clone()).filter(|all| !all.is_empty()),
            ..ObjectMeta::default()
        }
    }
}

/// Returns the permissions for applying the configurations, and for the Secret.
pub(crate) fn needs(
    described: &Described,
    endpoint: Option<&Endpoint>,
    secret: Option<&ObjectKey>,
) -> Vec<Rule> {
    const GROUP: &str = "admissionregistration.k8s.io";
    let because = |rule: Rule| rule.because("the webhooks it serves");
    // An apply creates a missing object. Kubernetes cannot restrict creations by name.
    let applied = |group: &str, plural: &str, name: &str| {
        let rule = || because(Rule::on(group, plural));
        [
            rule().named([name]).verbs(["get", "patch"]),
            rule().verbs(["create"]),
        ]
    };
    let mut rules = Vec::new();
    if let Some(endpoint) = endpoint {
        let has = |wanted| described.hooks.iter().any(|(role, _)| *role == wanted);
        for (role, plural) in [
            (Role::Validating, "validatingwebhookconfigurations"),
            (Role::Mutating, "mutatingwebhookconfigurations"),
        ] {
            if has(role) {
                rules.extend(applied(GROUP, plural, &described.name));
            }
            // Needed to remove the configuration of an earlier release.
            let rule = || because(Rule::on(GROUP, plural));
            rules.push(rule().verbs(["list"]));
            rules.push(rule().named([&*described.name]).verbs(["delete"]));
        }
        if !described.definitions.is_empty() {
            // No permission to create: the CRD is installed by another part of the program.
            let rule = Rule::on("apiextensions.k8s.io", "customresourcedefinitions");
            let names = described.definitions.iter().cloned();
            rules.push(because(rule.named(names).verbs(["get", "patch"])));
        }
        for plural in [
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        ] {
            for name in described.policy_names() {
                rules.extend(applied(GROUP, plural, &name));
            }
            // The names of an earlier release's policies are unknown.
            rules.push(because(Rule::on(GROUP, plural).verbs(["list", "delete"])));
        }
        if let Some(service) = endpoint.applied_service() {
            let namespace = service.namespace().unwrap_or("default");
            let of_service = applied("", "services", service.name());
            rules.extend(of_service.map(|rule| rule.in_namespaces([namespace])));
        }
    }
    if let Some(secret) = secret {
        let namespace = secret.namespace().unwrap_or("default");
        let rule = || because(Rule::on("", "secrets")).in_namespaces([namespace]);
        rules.push(rule().named([secret.name()]).verbs(["get", "update"]));
        rules.push(rule().verbs(["create"]));
    }
    rules
}

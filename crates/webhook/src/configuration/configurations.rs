//! The configurations of a program's webhooks.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
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
    /// The names of policies that an earlier release had.
    pub(crate) removed: Vec<String>,
}

impl Configurations {
    /// Returns the names of the policies.
    pub(super) fn policy_names(&self) -> impl Iterator<Item = &str> {
        let policies = self.policies.iter();
        policies.filter_map(|(policy, _)| policy.metadata.name.as_deref())
    }
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

    /// Returns the names of the policies that an earlier release had.
    pub(crate) fn removed_policies(&self) -> impl Iterator<Item = String> {
        self.removed.iter().map(|name| self.full_name(name))
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

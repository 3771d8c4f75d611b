//! Applies the configurations by server-side apply.

use std::fmt::Debug;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::configurations::{Configurations, Described};
use super::record::{Record, Unwanted};
use crate::error::WebhookError;

/// Applies the configurations, and returns what an earlier release has applied and is no longer wanted.
///
/// The Service comes first, so that the webhooks can be called as soon as the API server knows them. Fields that others
/// set are kept, except those that webhooks need. Applying the same configurations again changes nothing.
pub(crate) async fn apply(
    client: &Client,
    described: &Described,
    mut configurations: Configurations,
) -> Result<Unwanted, WebhookError> {
    let manager = &described.name;
    let record = Record::read(client, manager, &configurations).await;
    let record = record.map_err(|source| WebhookError::Apply {
        kind: "the configuration of webhooks",
        name: manager.clone(),
        source: Box::new(source),
    })?;
    record.annotate(&mut configurations);
    let configurations = &configurations;
    if let Some(service) = &configurations.service {
        let namespace = service.metadata.namespace.as_deref().unwrap_or("default");
        let api = Api::namespaced(client.clone(), namespace);
        object("Service", &api, manager, service).await?;
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for (name, partial) in &configurations.conversions {
        // Only the conversion is applied: the rest of the CRD belongs to the program that installs it.
        let kind = "the conversion of CustomResourceDefinition";
        send(kind, &definitions, manager, name, partial).await?;
    }
    if let Some(validating) = &configurations.validating {
        let kind = "ValidatingWebhookConfiguration";
        object(kind, &Api::all(client.clone()), manager, validating).await?;
    }
    if let Some(mutating) = &configurations.mutating {
        let kind = "MutatingWebhookConfiguration";
        object(kind, &Api::all(client.clone()), manager, mutating).await?;
    }
    for (policy, binding) in &configurations.policies {
        let kind = "ValidatingAdmissionPolicy";
        object(kind, &Api::all(client.clone()), manager, policy).await?;
        let kind = "ValidatingAdmissionPolicyBinding";
        object(kind, &Api::all(client.clone()), manager, binding).await?;
    }
    Ok(record.unwanted(described.removed_policies(), configurations))
}

async fn object<K>(
    kind: &'static str,
    api: &Api<K>,
    manager: &str,
    object: &K,
) -> Result<(), WebhookError>
where
    K: Resource + Serialize + DeserializeOwned + Clone + Debug,
{
    let name = object.meta().name.clone().unwrap_or_default();
    send(kind, api, manager, &name, object).await
}

/// Applies one object, and takes over the fields of other managers.
async fn send<K>(
    kind: &'static str,
    api: &Api<K>,
    manager: &str,
    name: &str,
    object: &(impl Serialize + Debug),
) -> Result<(), WebhookError>
where
    K: DeserializeOwned + Clone + Debug,
{
    let params = PatchParams::apply(manager).force();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.map(drop).map_err(|source| WebhookError::Apply {
        kind,
        name: name.to_owned(),
        source: Box::new(source),
    })
}

//! Applies configurations, as a field manager.

use std::fmt::Debug;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::configurations::Configurations;
use super::prune::prune;
use crate::error::WebhookError;

/// Applies configurations: first the Service, so that what refers to it can be called.
///
/// What others set in them stays, except what webhooks need. Applying the same again changes nothing. What was applied
/// before and is no longer among them is removed.
pub(crate) async fn apply(
    client: &Client,
    manager: &str,
    configurations: &Configurations,
) -> Result<(), WebhookError> {
    if let Some(service) = &configurations.service {
        let namespace = service.metadata.namespace.as_deref().unwrap_or("default");
        let api = Api::namespaced(client.clone(), namespace);
        object("Service", &api, manager, service).await?;
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for (name, partial) in &configurations.conversions {
        // The rest of the definition belongs to whoever installs it.
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
    prune(client, manager, configurations).await
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

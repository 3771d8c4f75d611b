//! CRDs that are installed for an example, and stay while another run uses them.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::kube::Client;
use lariat::kube::api::{Api, ApiResource, DynamicObject, ListParams};
use tokio::time::sleep;

use super::{delete, ensure, say};

/// The label of objects that an example creates outside of its namespace; its value is the namespace.
pub const RUN: &str = "lariat.dev/run";
/// The label of the namespaces of an example; its value is the example.
pub(super) const EXAMPLE: &str = "lariat.dev/example";

/// Installs a CRD for a run of an example, unless it exists. `run` is the run's first namespace.
///
/// # Errors
///
/// The API server refuses it.
pub(super) async fn ensure_crd(
    client: &Client,
    mut definition: CustomResourceDefinition,
    run: &str,
) -> Result<()> {
    let labels = definition.metadata.labels.get_or_insert_default();
    labels.insert(RUN.to_owned(), run.to_owned());
    let name = definition.metadata.name.clone().unwrap_or_default();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    loop {
        let defined = ensure(&definitions, &definition).await;
        if defined.with_context(|| format!("cannot install {name}"))? {
            return Ok(());
        }
        // One that an earlier run is deleting must be deleted first.
        let found = definitions.get_opt(&name).await?;
        if found.is_some_and(|found| found.metadata.deletion_timestamp.is_none()) {
            return Ok(());
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Deletes a CRD that this or an earlier run of an example has installed, unless it is used.
///
/// # Errors
///
/// The API server refuses it.
pub(super) async fn remove_crd(
    client: &Client,
    resource: &ApiResource,
    example: &str,
    namespaces: &[String],
) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = format!("{}.{}", resource.plural, resource.group);
    let Some(found) = definitions.get_opt(&name).await? else {
        return Ok(());
    };
    let labels = found.metadata.labels.unwrap_or_default();
    if !labels.contains_key(RUN) || found.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    match user_of(client, resource, example, namespaces).await? {
        Some(user) => say(format_args!("{name} stays installed, since {user}")),
        None => delete(&definitions, &name).await?,
    }
    Ok(())
}

/// Returns why a CRD must stay: objects of other users, or another run that may be about to create some.
async fn user_of(
    client: &Client,
    resource: &ApiResource,
    example: &str,
    ours: &[String],
) -> Result<Option<String>> {
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let listed = objects.list(&ListParams::default().limit(1)).await?;
    if !listed.items.is_empty() {
        return Ok(Some("there are objects of it".to_owned()));
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let of_the_example = ListParams::default().labels(&format!("{EXAMPLE}={example}"));
    let mut others = namespaces.list(&of_the_example).await?.items.into_iter();
    let is_another_run = |namespace: &Namespace| {
        let meta = &namespace.metadata;
        meta.deletion_timestamp.is_none()
            && meta.name.as_ref().is_some_and(|name| !ours.contains(name))
    };
    let other = others
        .find(is_another_run)
        .and_then(|other| other.metadata.name);
    Ok(other.map(|name| format!("the run of {name} may use it")))
}

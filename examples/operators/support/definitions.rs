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

/// Deletes a CRD that this or an earlier run of an example has installed, unless it is used: there are objects of it,
/// or another run may be about to create some.
///
/// # Errors
///
/// The API server refuses it.
pub(super) async fn remove_crd(
    client: &Client,
    resource: &ApiResource,
    example: &str,
    ours: &[String],
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
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let objects = objects.list(&ListParams::default().limit(1)).await?;
    let runs: Api<Namespace> = Api::all(client.clone());
    let of_the_example = ListParams::default().labels(&format!("{EXAMPLE}={example}"));
    let mut runs = runs.list(&of_the_example).await?.items.into_iter();
    let is_used = !objects.items.is_empty()
        || runs.any(|run| {
            let is_ours = run.metadata.name.is_some_and(|name| ours.contains(&name));
            !is_ours && run.metadata.deletion_timestamp.is_none()
        });
    if is_used {
        say(format_args!("{name} stays installed, since others use it"));
        return Ok(());
    }
    delete(&definitions, &name).await
}

//! Creating and deleting objects of the examples.

use std::collections::BTreeMap;
use std::fmt::Debug;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use lariat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat::kube::{Client, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Creates an object unless it exists; returns whether it was created.
///
/// # Errors
///
/// The API server refuses it for another reason than that it exists.
pub async fn ensure<K>(api: &Api<K>, object: &K) -> Result<bool>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(true),
        Err(Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error).context("the API server refuses an object of the example"),
    }
}

/// Creates a namespace with labels, in which pods can be created immediately.
///
/// # Errors
///
/// The API server refuses it.
pub(super) async fn ensure_namespace(
    client: &Client,
    name: &str,
    labels: &[(&str, &str)],
) -> Result<()> {
    let labels: BTreeMap<_, _> = labels.iter().copied().collect();
    let namespace = json!({"metadata": {"name": name, "labels": labels}});
    let namespace: Namespace = serde_json::from_value(namespace)?;
    ensure(&Api::all(client.clone()), &namespace).await?;
    // A real cluster refuses pods until its controllers have created this ServiceAccount.
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "default"}}))?;
    ensure(&Api::namespaced(client.clone(), name), &account).await?;
    Ok(())
}

/// Deletes an object in the background, without grace period; a missing one is no error.
///
/// # Errors
///
/// The API server refuses.
pub async fn delete<K: Clone + Debug + DeserializeOwned>(api: &Api<K>, name: &str) -> Result<()> {
    match api
        .delete(name, &DeleteParams::default().grace_period(0))
        .await
    {
        Err(Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot delete {name}")),
        Ok(_) => Ok(()),
    }
}

/// Merges a patch into an object, as a user of kubectl would.
///
/// # Errors
///
/// The API server refuses.
pub async fn merge<K>(api: &Api<K>, name: &str, patch: Value) -> Result<K>
where
    K: Clone + Debug + DeserializeOwned,
{
    let patched = api
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched.with_context(|| format!("cannot change {name}"))
}

/// Creates a unique name for a run of an example.
#[must_use]
pub(super) fn unique(name: &str) -> String {
    format!("{name}-{:08x}", fastrand::u32(..))
}

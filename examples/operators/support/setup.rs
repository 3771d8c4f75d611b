//! Creating and deleting objects of the examples.

use std::fmt::Debug;

use anyhow::{Context, Result};
use lariat::cluster::testing::{namespace, object};
use lariat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat::kube::{Client, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::EXAMPLE;

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

/// Creates a namespace of an example, in which pods can be created immediately.
///
/// # Errors
///
/// The API server refuses it.
pub(super) async fn ensure_namespace(client: &Client, name: &str, example: &str) -> Result<()> {
    let created = namespace(name).label(EXAMPLE, example).create(client).await;
    created.context("the API server refuses a namespace for the example")?;
    // A real cluster refuses pods until its controllers have created this ServiceAccount.
    let account = object("v1", "ServiceAccount", "default").namespace(name);
    ensure(&account.api(client), &account.to()).await.map(drop)
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

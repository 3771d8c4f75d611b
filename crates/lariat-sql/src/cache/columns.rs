//! Reading the printer columns of kinds when a cache starts.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;
use lariat_cache::SharedClientFactory;
use lariat_core::describe;
use tokio::time;

use super::error::SqlError;
use crate::schema::Schema;

/// Adds the printer columns of a kind to its schema, if a CustomResourceDefinition defines it.
pub(super) async fn add(
    schema: Schema,
    clients: &SharedClientFactory,
    patience: Duration,
) -> Result<Schema, SqlError> {
    let kind = schema.gvk().clone();
    let failed = |why: String| SqlError::Columns {
        kind: kind.clone(),
        why,
    };
    let read = async {
        let resource = clients.mapper().kind(&kind).await;
        let resource = resource.map_err(|error| describe(&error))?;
        let name = format!("{}.{}", resource.plural(), kind.group());
        let api: Api<CustomResourceDefinition> = Api::all(clients.client());
        let definition = api.get_opt(&name).await;
        definition.map_err(|error| format!("{name}: {}", describe(&error)))
    };
    // Those of the core group are never defined so.
    if kind.group().is_empty() {
        return Ok(schema);
    }
    let definition = match time::timeout(patience, read).await {
        Ok(read) => read.map_err(failed)?,
        Err(_) => return Err(failed(format!("no answer within {patience:?}"))),
    };
    match definition {
        Some(definition) => {
            let added = schema.with_columns(&definition);
            added.map_err(|error| failed(error.to_string()))
        }
        None => Ok(schema),
    }
}

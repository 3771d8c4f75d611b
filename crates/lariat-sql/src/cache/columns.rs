//! Reading the printer columns of kinds when a cache starts.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;
use lariat_cache::SharedClientFactory;
use lariat_core::{Gvk, describe};
use tokio::time;

use super::error::SqlError;
use crate::schema::Schema;

/// How long the API server may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Adds the printer columns of a kind's CustomResourceDefinition.
///
/// The schema stays as it is if there is none, or it may not be read.
pub(super) async fn add(schema: Schema, clients: &SharedClientFactory) -> Result<Schema, SqlError> {
    let kind = schema.gvk().clone();
    let failed = |why: String| SqlError::Columns {
        kind: kind.clone(),
        why,
    };
    // The group of a definition has a dot.
    if !schema.reads_columns() || !kind.group().contains('.') {
        return Ok(schema);
    }
    let definition = match time::timeout(ANSWER, read(&kind, clients)).await {
        Ok(read) => read.map_err(failed)?,
        Err(_) => return Err(failed(format!("no answer within {ANSWER:?}"))),
    };
    match definition {
        Found::Definition(definition) => {
            let added = schema.with_columns(&definition);
            added.map_err(|error| failed(error.to_string()))
        }
        Found::None => Ok(schema),
        Found::Unreadable(why) => {
            tracing::warn!(
                %kind, why,
                "the printer columns are no fields until the program starts again: name its fields in a Schema without_columns"
            );
            Ok(schema)
        }
    }
}

/// What is found of a kind.
enum Found {
    Definition(Box<CustomResourceDefinition>),
    /// It is built in, or served by an aggregated API server.
    None,
    /// It is not served yet, or the definition may not be read.
    Unreadable(String),
}

async fn read(kind: &Gvk, clients: &SharedClientFactory) -> Result<Found, String> {
    let resource = match clients.mapper().kind(kind).await {
        Ok(resource) => resource,
        Err(error) if error.is_unknown() => return Ok(Found::Unreadable(describe(&error))),
        Err(error) => return Err(describe(&error)),
    };
    let name = format!("{}.{}", resource.plural(), kind.group());
    let api: Api<CustomResourceDefinition> = Api::all(clients.client());
    match api.get_opt(&name).await {
        Ok(Some(definition)) => Ok(Found::Definition(Box::new(definition))),
        Ok(None) => Ok(Found::None),
        Err(kube::Error::Api(status)) if status.is_forbidden() => {
            let why = format!("no permission to get customresourcedefinitions/{name}");
            Ok(Found::Unreadable(why))
        }
        Err(error) => Err(format!("{name}: {}", describe(&error))),
    }
}

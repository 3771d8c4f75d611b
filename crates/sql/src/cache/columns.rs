//! Reading the printer columns of kinds when a cache starts.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;
use lariat_cache::SharedClientFactory;
use lariat_core::{Gvk, describe};
use tokio::time::{self, Instant};

use super::error::SqlError;
use crate::schema::Schema;

/// How long reading a CRD is tried, and the pause after a failure.
const ANSWER: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(500);

/// Groups of kube-apiserver that have no CRDs although they contain a dot.
const BUILT_IN: [&str; 18] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Adds the printer columns of a kind's CRD.
///
/// The schema is returned unchanged if there is no CRD, or it may not be read.
pub(super) async fn add(schema: Schema, clients: &SharedClientFactory) -> Result<Schema, SqlError> {
    let kind = schema.gvk().clone();
    let failed = |reason: String| SqlError::Columns {
        kind: kind.clone(),
        reason,
    };
    // Kinds of the API server have no CustomResourceDefinition: asking for one would cost a request at each start.
    let is_built_in = !kind.group().contains('.') || BUILT_IN.contains(&kind.group());
    if !schema.reads_columns() || is_built_in {
        return Ok(schema);
    }
    // An error here stops the start: a schema without the columns differs from that of the last run, so its tables
    // would be filled again.
    let definition = find(&kind, clients).await.map_err(failed)?;
    match definition {
        Found::Definition(definition) => {
            let added = schema.with_columns(&definition);
            added.map_err(|error| failed(error.to_string()))
        }
        Found::None => Ok(schema),
        Found::NotServed(reason) | Found::Forbidden(reason) => {
            tracing::warn!(
                %kind, reason,
                "the printer columns are not indexed until the program is restarted; to silence this, list the fields in a Schema without_columns"
            );
            Ok(schema)
        }
    }
}

/// The CRD of a kind, or the reason why there is none.
enum Found {
    Definition(Box<CustomResourceDefinition>),
    /// The kind is built in, or served by an aggregated API server.
    None,
    NotServed(String),
    Forbidden(String),
}

/// Reads the CRD of a kind.
///
/// An API server that has just started returns errors, and may not serve custom kinds yet, so this retries for a while.
async fn find(kind: &Gvk, clients: &SharedClientFactory) -> Result<Found, String> {
    let deadline = Instant::now() + ANSWER;
    loop {
        let read = time::timeout_at(deadline, read(kind, clients)).await;
        let found = read.unwrap_or_else(|_| Err(format!("no answer within {ANSWER:?}")));
        // A definition that is not served yet can be on its way: a program is often installed together with it.
        let is_final = matches!(
            found,
            Ok(Found::Definition(_) | Found::None | Found::Forbidden(_))
        );
        if is_final || Instant::now() + PAUSE >= deadline {
            return found;
        }
        time::sleep(PAUSE).await;
    }
}

async fn read(kind: &Gvk, clients: &SharedClientFactory) -> Result<Found, String> {
    let resource = match clients.mapper().kind(kind).await {
        Ok(resource) => resource,
        Err(error) if error.is_unknown() => return Ok(Found::NotServed(describe(&error))),
        Err(error) => return Err(describe(&error)),
    };
    let name = format!("{}.{}", resource.plural(), kind.group());
    let api: Api<CustomResourceDefinition> = Api::all(clients.client());
    match api.get_opt(&name).await {
        Ok(Some(definition)) => Ok(Found::Definition(Box::new(definition))),
        Ok(None) => Ok(Found::None),
        // A missing permission does not get better with time, so it is not tried again.
        Err(kube::Error::Api(status)) if status.is_forbidden() => {
            let reason = format!("no permission to get customresourcedefinitions/{name}");
            Ok(Found::Forbidden(reason))
        }
        Err(error) => Err(format!("{name}: {}", describe(&error))),
    }
}

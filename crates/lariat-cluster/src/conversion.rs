//! Custom resources in other versions than they are stored in, by the webhooks of their CRDs.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/conversion`.

use std::sync::Arc;
use std::time::Duration;

use lariat_apimachinery::crd::{ask_conversion, read_conversion};
use lariat_apimachinery::kinds::{Conversion, Resource};
use lariat_apimachinery::object::{Object, metadata_mut};
use serde_json::Value;

use crate::hooks;
use crate::server::Server;
use crate::status::ApiError;
use crate::store::{Draft, EventType, Stored};
use crate::strategy::{self, view};
use crate::wire::document::Document;

/// How long a webhook may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns a state in the version of a resource.
///
/// # Errors
///
/// It is stored in another version, and the webhook does not convert it.
pub(crate) async fn present(
    server: &Server,
    resource: &Resource,
    stored: &Stored,
) -> Result<Object, ApiError> {
    let mut object = match needed(resource, stored) {
        Some(conversion) => {
            let wanted = resource.api_version();
            let converted = convert(server, conversion, &wanted, vec![whole(stored)]).await;
            let mut converted = converted.map_err(ApiError::internal)?;
            let mut object = converted.pop().unwrap_or_default();
            // A webhook may answer fields that the schema does not have.
            strategy::conform(resource, &mut object);
            let revision = stored.revision().to_string();
            metadata_mut(&mut object).insert("resourceVersion".into(), revision.into());
            object
        }
        None => view::present(resource, stored),
    };
    resource.set_type(&mut object);
    Ok(object)
}

/// Returns a stored state converted to the version of a resource.
///
/// This is what a client sees that reads or writes a single object.
///
/// # Errors
///
/// As for [`present`].
pub(crate) async fn shown(
    server: &Server,
    resource: &Resource,
    stored: Arc<Stored>,
) -> Result<Arc<Stored>, ApiError> {
    if needed(resource, &stored).is_none() {
        return Ok(stored);
    }
    let object = present(server, resource, &stored).await?;
    let shown = stamped(resource, object, stored.revision());
    server.registrations.converted.put(resource, &shown);
    Ok(shown)
}

/// Returns states in the version of a resource, as lists and watches have them.
///
/// What was converted before is not converted again, as a genuine server keeps what is watched in each version.
///
/// # Errors
///
/// As for [`present`].
pub(crate) async fn all_shown(
    server: &Server,
    resource: &Resource,
    states: Vec<Arc<Stored>>,
) -> Result<Vec<Arc<Stored>>, ApiError> {
    let Some(conversion) = &resource.conversion else {
        return Ok(states);
    };
    let converted = &server.registrations.converted;
    let is_missing = |stored: &&Arc<Stored>| {
        needed(resource, stored).is_some() && converted.get(resource, stored).is_none()
    };
    // One review for all that is missing: a webhook call for each object of a list would take longer than any client
    // waits.
    let missing: Vec<Arc<Stored>> = states.iter().filter(is_missing).cloned().collect();
    if !missing.is_empty() {
        let objects = missing.iter().map(|stored| whole(stored)).collect();
        let version = resource.api_version();
        let objects = convert(server, conversion, &version, objects).await;
        let objects = objects.map_err(|reason| {
            let kind = format!("{version}, Kind={}", resource.kind);
            ApiError::initializing(&format!("failed to list {kind}: {reason}"))
        })?;
        for (mut object, stored) in objects.into_iter().zip(&missing) {
            strategy::conform(resource, &mut object);
            converted.put(resource, &stamped(resource, object, stored.revision()));
        }
    }
    // Read from the cache a second time; an object that needs no conversion is not in it and is shown as stored.
    let shown = |stored: Arc<Stored>| converted.get(resource, &stored).unwrap_or(stored);
    Ok(states.into_iter().map(shown).collect())
}

/// Returns an object in the version in which it is stored.
///
/// # Errors
///
/// The webhook does not convert it.
pub(crate) async fn stored(
    server: &Server,
    resource: &Resource,
    mut object: Object,
) -> Result<Object, ApiError> {
    let Some(conversion) = &resource.conversion else {
        return Ok(object);
    };
    resource.set_type(&mut object);
    if resource.api_version() == resource.storage_version {
        return Ok(object);
    }
    let converted = convert(server, conversion, &resource.storage_version, vec![object]).await;
    let mut converted = converted.map_err(ApiError::internal)?;
    let mut object = converted.pop().unwrap_or_default();
    strategy::refine_stored(resource, &mut object);
    Ok(object)
}

/// Returns an object of one version in another.
///
/// # Errors
///
/// The webhook of its CRD does not convert it.
pub(crate) async fn between(
    server: &Server,
    from: &Resource,
    to: &Resource,
    mut object: Object,
) -> Result<Object, ApiError> {
    from.set_type(&mut object);
    let mut object = match &from.conversion {
        Some(conversion) if from.version != to.version => {
            let wanted = to.api_version();
            let converted = convert(server, conversion, &wanted, vec![object]).await;
            let mut converted = converted.map_err(ApiError::internal_error)?;
            let mut object = converted.pop().unwrap_or_default();
            strategy::conform(to, &mut object);
            object
        }
        _ => view::in_version(from, to, object),
    };
    to.set_type(&mut object);
    Ok(object)
}

/// Returns the webhook that has to convert a state, if it is in another version.
fn needed<'a>(resource: &'a Resource, stored: &Stored) -> Option<&'a Conversion> {
    let conversion = resource.conversion.as_deref()?;
    (stored.head() != resource.head().as_bytes()).then_some(conversion)
}

/// Returns a state as webhooks see it, which is without its version.
fn whole(stored: &Stored) -> Object {
    let mut object = stored.object();
    metadata_mut(&mut object).remove("resourceVersion");
    object
}

fn stamped(resource: &Resource, mut object: Object, revision: u64) -> Arc<Stored> {
    resource.set_type(&mut object);
    Arc::new(Draft::new(&object).stamp(revision, EventType::Modified))
}

async fn convert(
    server: &Server,
    conversion: &Conversion,
    wanted: &str,
    objects: Vec<Object>,
) -> Result<Vec<Object>, String> {
    let text = |member: &str| {
        let first = objects.first().and_then(|object| object.get(member));
        first.and_then(Value::as_str).unwrap_or_default()
    };
    let kind = format!("{}, Kind={}", text("apiVersion"), text("kind"));
    let explained = |reason: String| format!("conversion webhook for {kind} {reason}");
    let failed = |reason: String| explained(format!("failed: {reason}"));
    let uid = server.random.uid();
    let review = ask_conversion(&conversion.review, &uid, wanted, &objects);
    let body = review.to_string().into_bytes();
    let answer = hooks::post(server, &conversion.client, TIMEOUT, body).await;
    let answer = answer.map_err(failed)?;
    let answer = Document::yaml(&answer).map_err(failed)?.value;
    read_conversion(&conversion.review, &uid, wanted, &objects, &answer).map_err(explained)
}

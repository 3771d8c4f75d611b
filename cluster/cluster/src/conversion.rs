//! Custom resources in other versions than they are stored in, by the webhooks of their CRDs.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/conversion`.

use std::sync::Arc;
use std::time::Duration;

use lariat_apimachinery::crd::{ask_conversion, read_conversion};
use lariat_apimachinery::kinds::{Conversion, Resource};
use lariat_apimachinery::object::{Object, metadata_mut};
use serde_json::Value;

use crate::registrations::Converted;
use crate::server::Server;
use crate::status::ApiError;
use crate::store::{Draft, EventType, Stored};
use crate::strategy::{self, view};
use crate::webhooks;
use crate::wire::document::Document;

/// The time limit of a conversion webhook.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The largest review of a list, in bytes of stored objects.
///
/// This is a third of what a webhook may answer, since objects may become longer.
const REVIEWED: usize = 1024 * 1024;

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
            strategy::prune(resource, &mut object);
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
/// Converted objects are cached, as a genuine server keeps what is watched in each version.
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
    let cache = &server.registrations.converted;
    let convert_all = |missing: Vec<Arc<Stored>>| async move {
        let mut objects = Vec::with_capacity(missing.len());
        for review in reviews(&missing) {
            let review = review.iter().map(|stored| whole(stored)).collect();
            let converted = convert(server, conversion, &resource.api_version(), review).await;
            objects.extend(converted.map_err(|reason| unlisted(resource, &reason))?);
        }
        Ok(objects)
    };
    completed(cache, resource, states, convert_all).await
}

/// Returns states in the version of a resource: from the cache, and the others from `convert_all`.
async fn completed<F>(
    cache: &Converted,
    resource: &Resource,
    states: Vec<Arc<Stored>>,
    convert_all: impl FnOnce(Vec<Arc<Stored>>) -> F,
) -> Result<Vec<Arc<Stored>>, ApiError>
where
    F: Future<Output = Result<Vec<Object>, ApiError>>,
{
    let look_up = |stored: &Arc<Stored>| match needed(resource, stored) {
        Some(_) => cache.get(resource, stored),
        None => Some(Arc::clone(stored)),
    };
    // Each state is looked up once: the cache may drop any of them while others are put into it.
    let known: Vec<Option<Arc<Stored>>> = states.iter().map(look_up).collect();
    let looked_up = states.into_iter().zip(&known);
    let missing: Vec<Arc<Stored>> = looked_up
        .filter(|(_, known)| known.is_none())
        .map(|(stored, _)| stored)
        .collect();
    if missing.is_empty() {
        return Ok(known.into_iter().flatten().collect());
    }
    let revisions: Vec<u64> = missing.iter().map(|stored| stored.revision()).collect();
    let objects = convert_all(missing).await?;
    let mut converted = objects
        .into_iter()
        .zip(revisions)
        .map(|(mut object, revision)| {
            strategy::prune(resource, &mut object);
            let shown = stamped(resource, object, revision);
            cache.put(resource, &shown);
            shown
        });
    let shown = known
        .into_iter()
        .map(|known| known.or_else(|| converted.next()));
    Ok(shown.flatten().collect())
}

/// Splits states into reviews.
///
/// One webhook call for each object of a list would take longer than any client waits. An answer to all of a long list
/// at once would be longer than one may be.
fn reviews(mut states: &[Arc<Stored>]) -> impl Iterator<Item = &[Arc<Stored>]> {
    std::iter::from_fn(move || {
        let mut size = 0;
        let fits = states.iter().take_while(|stored| {
            size += stored.size();
            size <= REVIEWED
        });
        // An object that is larger has a review of its own.
        let count = fits.count().max(1).min(states.len());
        let (review, rest) = states.split_at(count);
        states = rest;
        (!review.is_empty()).then_some(review)
    })
}

fn unlisted(resource: &Resource, reason: &str) -> ApiError {
    let kind = format!("{}, Kind={}", resource.api_version(), resource.kind);
    ApiError::initializing(&format!("failed to list {kind}: {reason}"))
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
            strategy::prune(to, &mut object);
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
    let answer = webhooks::post(server, &conversion.client, TIMEOUT, body).await;
    let answer = answer.map_err(|error| failed(error.reason()))?;
    let answer = Document::yaml(&answer).map_err(failed)?.value;
    read_conversion(&conversion.review, &uid, wanted, &objects, &answer).map_err(explained)
}

#[cfg(test)]
mod tests {
    use lariat_apimachinery::kinds::{Definition, TableId, resources_of};
    use serde_json::json;

    use super::*;

    /// Returns the second version of a kind that is stored in the first.
    fn second() -> Arc<Resource> {
        let version = |name: &str| {
            let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": any}})
        };
        let definition = json!({"spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [version("v1"), version("v2")],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://localhost"}}},
        }});
        let definition = Definition::read(definition.as_object().unwrap()).unwrap();
        let mut resources = resources_of(&definition, TableId(0), &Arc::default(), 0).unwrap();
        resources.pop().unwrap()
    }

    fn foo(version: &str, number: u64) -> Object {
        let name = format!("foo-{number}");
        let foo = json!({"kind": "Foo", "apiVersion": format!("example.com/{version}"),
            "metadata": {"name": name, "uid": name}});
        foo.as_object().unwrap().clone()
    }

    fn stored(number: u64) -> Arc<Stored> {
        let draft = Draft::new(&foo("v1", number));
        Arc::new(draft.stamp(number, EventType::Added))
    }

    /// Lists `states` in the second version; returns what they are shown as, and how many were converted.
    async fn list(cache: &Converted, states: &[Arc<Stored>]) -> (Vec<(String, u64)>, usize) {
        let resource = second();
        let mut asked = 0;
        let convert = |missing: Vec<Arc<Stored>>| {
            asked = missing.len();
            let numbers = missing.iter().map(|stored| stored.revision());
            let objects = numbers.map(|number| foo("v2", number)).collect();
            std::future::ready(Ok(objects))
        };
        let shown = completed(cache, &resource, states.to_vec(), convert).await;
        let version = |stored: Arc<Stored>| {
            let version = stored.object()["apiVersion"].as_str().unwrap().to_owned();
            (version, stored.revision())
        };
        (shown.unwrap().into_iter().map(version).collect(), asked)
    }

    #[tokio::test]
    async fn a_list_that_is_longer_than_the_cache_is_converted_whole() {
        let states: Vec<_> = (1..=5).map(stored).collect();
        let expected: Vec<_> = (1..=5)
            .map(|number| ("example.com/v2".to_owned(), number))
            .collect();
        let cache = Converted::of(2);
        for _ in 0..2 {
            assert_eq!(list(&cache, &states).await.0, expected);
        }
        let large = Converted::of(10);
        assert_eq!(
            list(&large, &states[1..3]).await,
            (expected[1..3].to_vec(), 2)
        );
        assert_eq!(list(&large, &states).await, (expected, 3));
    }

    #[test]
    fn a_long_list_is_reviewed_in_parts() {
        let long = |number: u64, length: usize| {
            let mut object = foo("v1", number);
            object.insert("spec".into(), json!({"a": "x".repeat(length)}));
            Arc::new(Draft::new(&object).stamp(number, EventType::Added))
        };
        let half = REVIEWED / 2 - 1000;
        let sizes = [half, half, half, 2 * REVIEWED, 1, 1];
        let states: Vec<_> = (1..)
            .zip(sizes)
            .map(|(number, size)| long(number, size))
            .collect();
        let counts: Vec<_> = reviews(&states).map(<[_]>::len).collect();
        assert_eq!(counts, [2, 1, 1, 2]);
        assert_eq!(reviews(&[]).count(), 0);
    }
}

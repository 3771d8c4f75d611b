//! The spans of writes.

use std::borrow::Cow;

use http::{Method, Response};
use lariat_core::{ObjectKey, describe, without_credentials};
use serde::Deserialize;
use tower::BoxError;
use tracing::Span;
use tracing::field::{self, Empty};

use super::write::{Write, WriteObserver};

/// Returns the span of a write; a disabled one for all other requests.
///
/// Its fields never come from bodies or headers, except the name of a created object.
pub(super) fn of(write: Option<&Write>, observer: &dyn WriteObserver) -> Span {
    let Some(write) = write.filter(|write| !write.is_question()) else {
        return Span::none();
    };
    let is_named = !write.name.is_empty();
    tracing::info_span!(
        target: "lariat::write",
        "write",
        method = %write.method,
        kind = %kind(write, observer),
        key = is_named.then(|| field::display(write.key())),
        namespace = write.namespace.as_deref().filter(|_| !is_named),
        subresource = write.subresource.as_deref(),
        dry_run = write.is_dry_run.then_some(true),
        status = Empty,
        error = Empty,
    )
}

/// Records the key of a created object, which its answer contains.
pub(super) fn creates(span: &Span, write: &Write, answer: &[u8]) {
    let is_needed = write.method == Method::POST && write.name.is_empty();
    if span.is_disabled() || !is_needed {
        return;
    }
    let named: Result<Named<'_>, _> = serde_json::from_slice(answer);
    if let Ok(Named { metadata }) = named {
        let namespace = metadata.namespace.unwrap_or_default();
        let key = ObjectKey::namespaced(&namespace, &metadata.name);
        span.record("key", field::display(key));
    }
}

/// Records how a request without an answer ended.
pub(super) fn ended<B>(span: &Span, result: &Result<Response<B>, BoxError>) {
    if span.is_disabled() {
        return;
    }
    match result {
        Ok(response) => {
            let status = response.status().as_u16();
            tracing::trace!(target: "lariat::write", parent: span, status, "answered");
        }
        Err(error) => {
            let error = describe(&**error);
            let error = &*without_credentials(&error);
            span.record("error", error);
            tracing::trace!(target: "lariat::write", parent: span, error, "not answered");
        }
    }
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    metadata: Name<'a>,
}

#[derive(Deserialize)]
struct Name<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
}

/// Returns the kind, or the resource if the kind is not cached.
fn kind(write: &Write, observer: &dyn WriteObserver) -> String {
    let cache = observer.cache_of(write);
    cache.map_or_else(|| write.resource(), |cache| cache.gvk.to_string())
}

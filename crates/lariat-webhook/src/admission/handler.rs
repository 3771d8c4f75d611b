//! Handlers of admission reviews, without their types.

use std::future::Future;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use lariat_controller::SharedControllerFactory;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::admission::Admission;
use super::failure::{Failure, ReviewError, ReviewResult};
use super::mutation::Mutation;
use super::object::{Undecodable, decode};
use super::operation::Operation;
use super::verdict::Verdict;
use crate::patch::patch;
use crate::wire::{AdmissionRequest, AdmissionResponse};

/// A handler that takes requests and makes responses.
pub(crate) type Handler = dyn Fn(
        AdmissionRequest,
        Operation,
        SharedControllerFactory,
        Instant,
    ) -> BoxFuture<'static, Result<AdmissionResponse, Failure>>
    + Send
    + Sync;

/// Returns the handler of a function that validates.
pub(crate) fn validating<K, F, Fut>(function: F) -> Arc<Handler>
where
    K: DeserializeOwned + Send + Sync + 'static,
    F: Fn(Admission<K>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ReviewResult<Verdict>> + Send + 'static,
{
    let function = Arc::new(function);
    Arc::new(move |request, operation, factory, deadline| {
        let function = Arc::clone(&function);
        Box::pin(async move {
            let admission = Admission::<K>::new(request, operation, factory, deadline);
            let verdict = function(admission).await.or_else(denied)?;
            Ok(respond(&verdict, None))
        })
    })
}

/// Returns the handler of a function that mutates.
pub(crate) fn mutating<K, F, Fut>(function: F) -> Arc<Handler>
where
    K: DeserializeOwned + Serialize + Send + Sync + 'static,
    F: Fn(Admission<K>, K) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ReviewResult<Mutation<K>>> + Send + 'static,
{
    let function = Arc::new(function);
    Arc::new(move |request, operation, factory, deadline| {
        let function = Arc::clone(&function);
        Box::pin(async move {
            // A deletion stores no object, and what a connection has is not stored.
            if !matches!(operation, Operation::Create | Operation::Update) {
                return Ok(respond(&Verdict::allow(), None));
            }
            let raw = request.object.clone();
            let admission = Admission::<K>::new(request, operation, factory, deadline);
            let (Some(raw), object) = (raw, admission.object()) else {
                return Ok(respond(&Verdict::allow(), None));
            };
            let object = match object {
                Ok(Some(object)) => Arc::clone(object),
                Ok(None) => return Ok(respond(&Verdict::allow(), None)),
                Err(error) => return Ok(respond(&error.into(), None)),
            };
            // Types need not be `Clone`; a second decode is.
            let own = match decode::<K>(&raw, "object", admission.gvk()) {
                Ok(own) => own,
                Err(error) => return Ok(respond(&error.into(), None)),
            };
            let mutation = function(admission, own).await.or_else(denied)?;
            let patch = match &mutation.object {
                Some(after) if mutation.verdict.is_allowed() => difference(&raw, &*object, after)?,
                _ => None,
            };
            Ok(respond(&mutation.verdict, patch))
        })
    })
}

/// Returns the handler of a function that sets defaults.
pub(crate) fn defaulting<K, F>(function: F) -> Arc<Handler>
where
    K: DeserializeOwned + Serialize + Send + Sync + 'static,
    F: Fn(&mut K) + Send + Sync + 'static,
{
    mutating(move |_: Admission<K>, mut object: K| {
        function(&mut object);
        async move { Ok(Mutation::to(object)) }
    })
}

/// Returns the patch from the typed object to what became of it.
fn difference<K: Serialize>(
    raw: &RawValue,
    before: &K,
    after: &K,
) -> Result<Option<Vec<u8>>, Failure> {
    let raw = serde_json::from_str(raw.get()).map_err(Failure::Unserializable)?;
    patch(&raw, before, after).map_err(Failure::Unserializable)
}

/// Makes a denial of an object that does not fit its type; other errors are failures.
fn denied<T: From<Undecodable>>(error: ReviewError) -> Result<T, Failure> {
    match error.downcast::<Undecodable>() {
        Ok(error) => Ok((*error).into()),
        Err(error) => Err(Failure::Failed(error)),
    }
}

fn respond(verdict: &Verdict, patch: Option<Vec<u8>>) -> AdmissionResponse {
    AdmissionResponse {
        uid: String::new(),
        allowed: verdict.is_allowed(),
        status: verdict.status(),
        patch_type: patch.is_some().then_some("JSONPatch"),
        patch: patch.map(|patch| STANDARD.encode(patch)),
        warnings: verdict.warnings().to_vec(),
        audit_annotations: verdict.annotations().clone(),
    }
}

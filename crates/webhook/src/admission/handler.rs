//! Handlers of admission reviews, with their types erased.
//!
//! A typed function is wrapped into a [`Handler`], which decodes the request, calls the function, and encodes the
//! response. For a mutating function it also computes the JSON patch.

use std::future::Future;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use lariat_controller::SharedControllerFactory;
use lariat_core::Operation;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::admission::Admission;
use super::decision::Decision;
use super::failure::{Failure, ReviewError, ReviewResult};
use super::mutation::Mutation;
use super::object::{Undecodable, decode};
use crate::patch::patch;
use crate::wire::{AdmissionRequest, AdmissionResponse};

/// A handler with its types erased: from a request to a response.
pub(crate) type Handler = dyn Fn(
        AdmissionRequest,
        Operation,
        SharedControllerFactory,
        Instant,
    ) -> BoxFuture<'static, Result<AdmissionResponse, Failure>>
    + Send
    + Sync;

/// Returns the handler of a validating function.
pub(crate) fn validating<K, F, Fut>(function: F) -> Arc<Handler>
where
    K: DeserializeOwned + Send + Sync + 'static,
    F: Fn(Admission<K>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ReviewResult<Decision>> + Send + 'static,
{
    let function = Arc::new(function);
    Arc::new(move |request, operation, factory, deadline| {
        let function = Arc::clone(&function);
        Box::pin(async move {
            let admission = Admission::<K>::new(request, operation, factory, deadline);
            // An object that does not decode is the client's mistake, and denied. Other errors are failures of the
            // webhook.
            let decision = function(admission).await.or_else(denied)?;
            Ok(respond(&decision, None))
        })
    })
}

/// Returns the handler of a mutating function.
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
            // A deletion stores no object, and the options of a connection are not stored either.
            if !matches!(operation, Operation::Create | Operation::Update) {
                return Ok(respond(&Decision::allow(), None));
            }
            // The patch applies to the raw object, which has fields that the type does not know.
            let raw = request.object.clone();
            let admission = Admission::<K>::new(request, operation, factory, deadline);
            let (Some(raw), object) = (raw, admission.object()) else {
                return Ok(respond(&Decision::allow(), None));
            };
            let object = match object {
                Ok(Some(object)) => Arc::clone(object),
                Ok(None) => return Ok(respond(&Decision::allow(), None)),
                Err(error) => return Ok(respond(&error.into(), None)),
            };
            // The patch needs the object before and after the function. Decoding twice avoids a `Clone` bound on the
            // type.
            let own = match decode::<K>(&raw, "object", admission.gvk()) {
                Ok(own) => own,
                Err(error) => return Ok(respond(&error.into(), None)),
            };
            let mutation = function(admission, own).await.or_else(denied)?;
            // A denial has no patch, even if the function has returned an object.
            let patch = match &mutation.object {
                Some(after) if mutation.decision.is_allowed() => difference(&raw, &*object, after)?,
                _ => None,
            };
            Ok(respond(&mutation.decision, patch))
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

/// Returns the JSON patch between two states of a typed object, if they differ.
fn difference<K: Serialize>(
    raw: &RawValue,
    before: &K,
    after: &K,
) -> Result<Option<Vec<u8>>, Failure> {
    let raw = serde_json::from_str(raw.get()).map_err(Failure::Unserializable)?;
    patch(&raw, before, after).map_err(Failure::Unserializable)
}

/// Converts the error of an object that does not decode to a denial.
///
/// Other errors are failures of the call.
fn denied<T: From<Undecodable>>(error: ReviewError) -> Result<T, Failure> {
    match error.downcast::<Undecodable>() {
        Ok(error) => Ok((*error).into()),
        Err(error) => Err(Failure::Failed(error)),
    }
}

/// Returns the response for a decision; the caller sets its uid.
fn respond(decision: &Decision, patch: Option<Vec<u8>>) -> AdmissionResponse {
    AdmissionResponse {
        uid: String::new(),
        allowed: decision.is_allowed(),
        status: decision.status(),
        // The API server rejects a patch without its type, and a type without a patch.
        patch_type: patch.is_some().then_some("JSONPatch"),
        patch: patch.map(|patch| STANDARD.encode(patch)),
        warnings: decision.warnings().to_vec(),
        audit_annotations: decision.annotations().clone(),
    }
}

//! Dispatches a call by its subresource.

use super::{binding, connect, eviction, scale};
use crate::status::ApiError;
use crate::verbs::answer::Answer;
use crate::verbs::call::Call;
use crate::wire::verb::Verb;

const READ_WRITE: &[Verb] = &[Verb::Get, Verb::Update, Verb::Patch];
const UPDATE: &[Verb] = &[Verb::Update];
const CREATE: &[Verb] = &[Verb::Create];

/// Returns the verbs of a subresource of a kind, none if it is not served.
fn verbs(call: &Call, subresource: &str) -> &'static [Verb] {
    let resource = &call.resource;
    match (
        resource.group.as_str(),
        resource.plural.as_str(),
        subresource,
    ) {
        (_, _, "status") if resource.rules.status => READ_WRITE,
        (_, _, "scale") if scale::is_served(resource) => READ_WRITE,
        ("", "namespaces", "finalize") => UPDATE,
        ("", "pods", "ephemeralcontainers" | "resize") => READ_WRITE,
        ("", "pods", "binding" | "eviction") => CREATE,
        ("certificates.k8s.io", "certificatesigningrequests", "approval") => READ_WRITE,
        _ => &[],
    }
}

/// Refuses subresources that are not served.
pub(in crate::verbs) fn check(call: &Call, verb: Verb) -> Result<(), ApiError> {
    let Some(subresource) = &call.target.subresource else {
        return Ok(());
    };
    let verbs = verbs(call, subresource);
    if verbs.contains(&verb) {
        return Ok(());
    }
    if !verbs.is_empty() {
        return Err(if call.resource.rules.custom {
            ApiError::verb_not_supported(verb.as_str(), &call.resource)
        } else {
            ApiError::method_not_allowed()
        });
    }
    if let Some(refusal) = connect::refusal(call, verb, subresource) {
        return Err(refusal);
    }
    // The handler of custom resources looks for the object first, and finds nothing to serve.
    Err(if call.resource.rules.custom {
        call.not_found()
    } else {
        ApiError::unknown_resource()
    })
}

/// Answers a subresource that is not a part of its object; `None` for all others.
// Boxed, as in `Call::carry_out`: every other request would carry the size of these futures.
pub(in crate::verbs) async fn answer(call: &Call, verb: Verb) -> Option<Result<Answer, ApiError>> {
    // What was a resource of its own before there were subresources.
    if call.resource.group.is_empty() && call.resource.plural == "bindings" {
        return Some(Box::pin(binding::bind(call)).await);
    }
    match call.target.subresource.as_deref()? {
        "scale" => Some(Box::pin(scale::answer(call, verb)).await),
        "binding" => Some(Box::pin(binding::bind(call)).await),
        "eviction" => Some(Box::pin(eviction::evict(call)).await),
        _ => None,
    }
}

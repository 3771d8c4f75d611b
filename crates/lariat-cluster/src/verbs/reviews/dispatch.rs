//! Which kind asks what.

use serde_json::json;

use super::question::{created, read};
use super::{access, token};
use crate::status::ApiError;
use crate::verbs::call::Call;
use crate::wire::reply::Reply;
use crate::wire::verb::Verb;

/// Answers what is asked by creating something that is not stored; `None` for all other calls.
pub(in crate::verbs) fn answer(call: &Call, verb: Verb) -> Option<Result<Reply, ApiError>> {
    let resource = &call.resource;
    let of_core = |plural: &str| resource.group.is_empty() && resource.plural == plural;
    if of_core("serviceaccounts") && call.target.subresource.as_deref() == Some("token") {
        return Some(match verb {
            Verb::Create => token::request(call),
            _ => Err(ApiError::method_not_allowed()),
        });
    }
    if !resource.rules.review || of_core("bindings") {
        return None;
    }
    Some(match (verb, resource.kind.as_str()) {
        (Verb::Create, "SelfSubjectReview") => whoami(call),
        (Verb::Create, "TokenReview") => token::review(call),
        (Verb::Create, "SelfSubjectRulesReview") => access::rules(call),
        (Verb::Create, _) => access::review(call),
        _ => Err(ApiError::method_not_allowed()),
    })
}

fn whoami(call: &Call) -> Result<Reply, ApiError> {
    let object = read(call)?;
    Ok(created(object, json!({"userInfo": call.user.info()})))
}

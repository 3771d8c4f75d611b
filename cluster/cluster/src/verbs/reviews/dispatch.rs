//! Selects the review by its kind.

use serde_json::json;

use super::review::read;
use super::{access, token};
use crate::status::ApiError;
use crate::verbs::answer::{Answer, Success};
use crate::verbs::call::Call;
use crate::wire::verb::Verb;

/// Returns whether a call creates something that is answered and not stored.
pub(in crate::verbs) fn is_review(call: &Call) -> bool {
    let resource = &call.resource;
    // A binding is carried out, not answered.
    let is_binding = resource.group.is_empty() && resource.plural == "bindings";
    is_token_request(call) || (resource.rules.review && !is_binding)
}

/// Answers a review.
pub(in crate::verbs) async fn answer(call: &Call, verb: Verb) -> Result<Answer, ApiError> {
    if verb != Verb::Create {
        return Err(ApiError::method_not_allowed());
    }
    if is_token_request(call) {
        return token::request(call).await;
    }
    match call.resource.kind.as_str() {
        "SelfSubjectReview" => whoami(call),
        "TokenReview" => token::review(call),
        "SelfSubjectRulesReview" => access::rules(call),
        _ => access::review(call),
    }
}

fn is_token_request(call: &Call) -> bool {
    let resource = &call.resource;
    let is_account = resource.group.is_empty() && resource.plural == "serviceaccounts";
    is_account && call.target.subresource.as_deref() == Some("token")
}

fn whoami(call: &Call) -> Result<Answer, ApiError> {
    let mut object = read(call)?;
    object.remove("spec");
    let metadata = json!({"creationTimestamp": call.server.clock.now()});
    object.insert("metadata".into(), metadata);
    object.insert("status".into(), json!({"userInfo": call.user.info()}));
    Ok(Answer::Document {
        document: object,
        success: Success::Created,
    })
}

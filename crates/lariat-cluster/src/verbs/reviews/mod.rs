//! Kinds that are asked, not kept: who am I, may I, whose token is this.

mod access;
mod token;

use http::StatusCode;
use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use crate::status::ApiError;
use crate::verbs::call::Call;
use crate::wire::reply::Reply;
use crate::wire::verb::Verb;

/// Answers what is asked by creating something that is not stored; `None` for all other calls.
pub(super) fn answer(call: &Call, verb: Verb) -> Option<Result<Reply, ApiError>> {
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

/// Reads what is asked, after a check of the parameters.
fn read(call: &Call) -> Result<Object, ApiError> {
    call.query.check_write("CreateOptions", false)?;
    call.query.dry_run("CreateOptions")?;
    call.decode()
}

/// Answers the question with a status.
fn created(mut object: Object, status: Value) -> Reply {
    let metadata = object
        .entry("metadata")
        .or_insert_with(|| json!({"creationTimestamp": null}));
    if metadata.is_null() {
        *metadata = json!({"creationTimestamp": null});
    }
    object.entry("spec").or_insert_with(|| json!({}));
    object.insert("status".into(), status);
    Reply::json(StatusCode::CREATED, Value::Object(object).to_string())
}

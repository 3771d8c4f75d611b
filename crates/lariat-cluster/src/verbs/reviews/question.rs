//! What is asked, and the form of its answer.

use http::StatusCode;
use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use crate::status::ApiError;
use crate::verbs::call::Call;
use crate::wire::reply::Reply;

/// Reads what is asked, after a check of the parameters.
pub(super) fn read(call: &Call) -> Result<Object, ApiError> {
    call.query.check_write("CreateOptions", false)?;
    call.query.dry_run("CreateOptions")?;
    call.decode()
}

/// Answers the question with a status.
pub(super) fn created(mut object: Object, status: Value) -> Reply {
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

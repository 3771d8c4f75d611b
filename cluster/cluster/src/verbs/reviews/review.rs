//! Reads reviews, and answers them.

use lariat_apimachinery::object::{Object, metadata_mut};
use serde_json::{Value, json};

use crate::status::ApiError;
use crate::verbs::admit;
use crate::verbs::answer::{Answer, Success};
use crate::verbs::call::Call;
use crate::verbs::creation::Creation;
use crate::verbs::ownership;
use crate::wire::write_options::WriteOptions;

/// Reads the review, after a check of the parameters.
pub(super) fn read(call: &Call) -> Result<Object, ApiError> {
    call.query.check_write(WriteOptions::Create)?;
    let mut object = call.decode()?;
    // `WipeObjectMetaSystemFields`.
    for member in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata_mut(&mut object).remove(member);
    }
    admit::place_new(&Creation::of(call), &mut object)?;
    // Though nothing is stored, the answer has owners.
    ownership::account(call, None, &mut object);
    Ok(object)
}

/// Answers a review with its status.
pub(super) fn created(mut object: Object, status: Value) -> Answer {
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    object.entry("spec").or_insert_with(|| json!({}));
    object.insert("status".into(), status);
    Answer::Document {
        document: object,
        success: Success::Created,
    }
}

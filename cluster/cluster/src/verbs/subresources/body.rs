//! Bodies that are no object of their own.

use lariat_apimachinery::object::Object;
use lariat_apimachinery::schema::{self, Schema};

use crate::status::ApiError;
use crate::verbs::call::Call;
use crate::verbs::decode::Expected;
use crate::verbs::normalize::{self, Origin};

/// Reads a body that is no object of its own, in the form of its type.
pub(in crate::verbs) fn read_body(call: &Call, wanted: Expected<'_>) -> Result<Object, ApiError> {
    let (mut object, duplicates) = call.decode_as(wanted)?;
    // An Eviction has the same members in its older version.
    let types = schema::builtin(wanted.api_version, wanted.kind)
        .or_else(|| schema::builtin("policy/v1", wanted.kind));
    let typed = types.as_ref().map(Schema::root);
    let read = typed.map(|typed| schema::decode(typed, &mut object));
    let refuse = |reason: String| {
        let kind = wanted.kind;
        let version = wanted.api_version.rsplit('/').next().unwrap_or_default();
        ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {reason}"
        ))
    };
    let unknown = match read {
        Some(read) => read.map_err(|error| refuse(error.to_string()))?,
        None => Vec::new(),
    };
    normalize::report(call, Origin::Body, typed, &unknown, &duplicates).map_err(refuse)?;
    Ok(object)
}

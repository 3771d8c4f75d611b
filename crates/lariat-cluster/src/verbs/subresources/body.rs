//! Bodies that are no object of their own.

use lariat_apimachinery::object::Object;
use lariat_apimachinery::schema;

use crate::status::ApiError;
use crate::verbs::call::Call;
use crate::verbs::decode::Expected;

/// Reads a body that is no object of its own, in the form of its type.
pub(super) fn read_body(call: &Call, wanted: Expected<'_>) -> Result<Object, ApiError> {
    let (mut object, _) = call.decode_as(wanted)?;
    let types = schema::builtin(wanted.api_version, wanted.kind);
    let read = types.map(|types| schema::decode(types.root(), &mut object));
    if let Some(Err(reason)) = read {
        let kind = wanted.kind;
        let version = wanted.api_version.rsplit('/').next().unwrap_or_default();
        return Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {reason}"
        )));
    }
    Ok(object)
}

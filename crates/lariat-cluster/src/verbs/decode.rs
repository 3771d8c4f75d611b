//! Reading the object in a request.

use serde_json::Value;

use super::Call;
use crate::api::status::{ApiError, Cause};
use crate::store::Object;

const ACCEPTED: &str = "application/json";

impl Call {
    /// Reads the object of a create or an update, of the kind the path says.
    pub(super) fn decode(&self) -> Result<Object, ApiError> {
        let content_type = self
            .content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim();
        if !content_type.is_empty() && content_type != "application/json" {
            return Err(ApiError::unsupported_media_type(ACCEPTED));
        }
        let mut object = self.parse_object()?;
        self.check_type(&object)?;
        self.resource.set_type(&mut object);
        Ok(object)
    }

    fn parse_object(&self) -> Result<Object, ApiError> {
        let kind = &self.resource.kind;
        let refuse = |detail: &str| {
            let version = &self.resource.version;
            ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {detail}"
            ))
        };
        match serde_json::from_slice(&self.body) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(refuse(
                "json: cannot unmarshal into Go value of type map[string]interface {}",
            )),
            Err(error) => Err(ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; \
                 json parse error: {error}"
            ))),
        }
    }

    /// Checks `kind` and `apiVersion`, which built-in kinds may leave out.
    fn check_type(&self, object: &Object) -> Result<(), ApiError> {
        let resource = &self.resource;
        let text = |member| {
            object
                .get(member)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        let missing = kind.is_empty() || api_version.is_empty();
        if missing && resource.rules.custom {
            let what = if kind.is_empty() {
                "kind"
            } else {
                "apiVersion"
            };
            return Err(ApiError::bad_request(format!(
                "Object '{what}' is missing in the body"
            )));
        }
        if !api_version.is_empty() && api_version != resource.api_version() {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API \
                 version ({})",
                resource.api_version()
            )));
        }
        if kind.is_empty() || kind == resource.kind {
            return Ok(());
        }
        if resource.rules.custom {
            let message = format!("must be {}", resource.kind);
            let cause = Cause::invalid("kind", &kind.into(), &message);
            return Err(ApiError::invalid(resource, self.name(), &[cause]));
        }
        Err(ApiError::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {}: no kind {kind:?} is registered for \
             the resource {:?}",
            resource.version, resource.kind, resource.plural
        )))
    }
}

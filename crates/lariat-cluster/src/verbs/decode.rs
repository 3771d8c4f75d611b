//! Reading the object in a request.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::go_json;
use lariat_apimachinery::object::Object;
use lariat_apimachinery::schema::TypeRef;
use serde_json::Value;

use super::form::{self, Origin};
use crate::status::ApiError;
use crate::verbs::call::Call;
use crate::wire::document::{Document, Duplicates};
use crate::wire::protobuf;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// What a request about some kind sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    pub(super) kind: &'a str,
    pub(super) api_version: &'a str,
    pub(super) custom: bool,
    /// The type of the object, if it is one of a kind that is stored.
    pub(super) typed: Option<TypeRef<'a>>,
}

impl Call {
    /// Reads the object of a create or an update in the form of its kind.
    pub(crate) fn decode(&self) -> Result<Object, ApiError> {
        let api_version = self.resource.api_version();
        let (mut object, duplicates) = self.decode_as(Expected {
            kind: &self.resource.kind,
            api_version: &api_version,
            custom: self.resource.rules.custom,
            typed: (!self.resource.rules.custom).then(|| self.resource.types().root()),
        })?;
        form::normalize(self, &mut object, Origin::Body, &duplicates)?;
        Ok(object)
    }

    /// Returns whether `apiVersion` of the body is the given one.
    pub(super) fn has_version(&self, api_version: &str) -> bool {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body["apiVersion"] == api_version
    }

    /// Reads an object of any kind, and its duplicate members.
    ///
    /// Its type is set.
    pub(super) fn decode_as(&self, wanted: Expected<'_>) -> Result<(Object, Duplicates), ApiError> {
        let document = self.document(wanted)?;
        let mut object = match document.value {
            Value::Object(object) => object,
            Value::Null if wanted.custom => Object::new(),
            other => {
                let error = go_json::type_error(&other, ENVELOPE);
                let error = format!("json parse error: {error}");
                return Err(self.unrecognized(wanted, &error));
            }
        };
        check_type(self, wanted, &object)?;
        object.insert("kind".into(), wanted.kind.into());
        object.insert("apiVersion".into(), wanted.api_version.into());
        Ok((object, document.duplicates))
    }

    /// Reads the body; protobuf is read as the type that it names.
    pub(super) fn document(&self, wanted: Expected<'_>) -> Result<Document, ApiError> {
        let unreadable = |error: String| self.unrecognized(wanted, &error);
        match self.media_type() {
            "" | JSON => self.json(wanted),
            YAML => Document::yaml(&self.body)
                .map_err(|error| unreadable(format!("yaml parse error: {error}"))),
            PROTOBUF if !wanted.custom => {
                protobuf::read(&self.body, wanted.kind, wanted.api_version)
            }
            _ if wanted.custom => {
                let accepted = format!("{JSON}, {YAML}");
                Err(ApiError::unsupported_media_type(&accepted))
            }
            _ => Err(ApiError::unsupported_media_type(protobuf::ACCEPTED)),
        }
    }

    fn json(&self, wanted: Expected<'_>) -> Result<Document, ApiError> {
        let unreadable =
            |error: String| self.unrecognized(wanted, &format!("json parse error: {error}"));
        let Some(typed) = wanted.typed else {
            return Document::json(&self.body).map_err(unreadable);
        };
        match Document::json_of(&self.body, typed).map_err(unreadable)? {
            (document, None) => Ok(document),
            (_, Some(misfit)) => Err(form::refuse_body(&self.resource, &misfit.to_string())),
        }
    }

    /// Refuses a body of which not even the type can be read.
    fn unrecognized(&self, wanted: Expected<'_>, error: &str) -> ApiError {
        let (kind, summary) = (wanted.kind, summary(&self.body));
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get \
             version/kind; {error} ({summary})"
        ))
    }
}

/// What Go reads of a body first.
const ENVELOPE: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
    \"json:\\\"kind,omitempty\\\"\" }";

/// Returns the beginning of a body, in hexadecimal if it does not look like JSON.
fn summary(body: &[u8]) -> String {
    const MOST: usize = 30;
    let beginning = &body[..body.len().min(MOST)];
    let dots = if body.len() > MOST { " ..." } else { "" };
    match beginning {
        [] => "<empty>".to_owned(),
        [b'{', ..] => format!("{}{dots}", String::from_utf8_lossy(beginning)),
        bytes => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            digits + dots
        }
    }
}

/// Checks `kind` and `apiVersion`, which built-in kinds may leave out.
fn check_type(call: &Call, wanted: Expected<'_>, object: &Object) -> Result<(), ApiError> {
    let text = |member| {
        object
            .get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    if wanted.custom && kind.is_empty() {
        let body = String::from_utf8_lossy(&call.body);
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in '{body}' ({})",
            wanted.kind,
            summary(&call.body)
        )));
    }
    if api_version.matches('/').count() > 1 {
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): unexpected GroupVersion string: {api_version} ({})",
            wanted.kind,
            summary(&call.body)
        )));
    }
    let is_left_out = api_version.is_empty() && !wanted.custom;
    if !is_left_out && api_version != wanted.api_version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            wanted.api_version
        )));
    }
    if kind.is_empty() || kind == wanted.kind {
        return Ok(());
    }
    if wanted.custom {
        let message = format!("must be {}", wanted.kind);
        let cause = StatusCause::invalid("kind", &kind.into(), &message);
        return Err(ApiError::invalid(&call.resource, call.name(), &[cause]));
    }
    let package = |api_version: &str| match api_version.split_once('/') {
        Some((group, _)) => group.split('.').next().unwrap_or_default().to_owned(),
        None => "core".to_owned(),
    };
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let wanted_kind = wanted.kind;
    Err(ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {wanted_kind}: converting \
         ({version}.{kind}) to ({}.{wanted_kind}): unknown conversion",
        package(wanted.api_version)
    )))
}

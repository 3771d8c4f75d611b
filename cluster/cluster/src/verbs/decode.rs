//! Reading the object in a request.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::go_json;
use lariat_apimachinery::go_text::quoted;
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_apimachinery::schema;
use serde_json::Value;

use super::normalize::{self, Origin};
use super::schemes::{Scheme, is_meta, package};
use crate::status::ApiError;
use crate::verbs::call::Call;
use crate::wire::document::{Document, Duplicates};
use crate::wire::protobuf;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The kind and version that the body of a request must have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    pub(super) kind: &'a str,
    pub(super) api_version: &'a str,
    pub(super) custom: bool,
}

/// A decoded body.
struct Decoded {
    object: Object,
    duplicates: Duplicates,
    /// Whether a number in it is no integer.
    has_float: bool,
}

impl Call {
    /// Reads the object of a create or an update in the form of its kind.
    pub(crate) fn decode(&self) -> Result<Object, ApiError> {
        let api_version = self.resource.api_version();
        let document = self.decode_document(Expected {
            kind: &self.resource.kind,
            api_version: &api_version,
            custom: self.resource.rules.custom,
        })?;
        let (mut object, duplicates) = (document.object, document.duplicates);
        self.read_again(&mut object, &duplicates)?;
        if document.has_float {
            self.keep_quantity_texts(&mut object);
        }
        normalize::normalize(self, &mut object, Origin::Body, &duplicates)?;
        Ok(object)
    }

    /// Decodes duplicate members as Go's decoder does: each into the value of the one before.
    ///
    /// All values must be of the right type, though only the last one counts.
    fn read_again(&self, object: &mut Object, duplicates: &Duplicates) -> Result<(), ApiError> {
        let has_twice = matches!(duplicates, Duplicates::Worded(_)) && !duplicates.is_empty();
        if self.resource.rules.custom || !has_twice {
            return Ok(());
        }
        let typed = self.resource.types().root();
        let Ok((document, error)) = Document::json_of(&self.body, typed) else {
            return Ok(());
        };
        if let Some(error) = error {
            return Err(normalize::refuse_body(&self.resource, &error.to_string()));
        }
        if let Value::Object(members) = document.value {
            let is_type = |name: &str| name == "kind" || name == "apiVersion";
            // The type was checked and set by then; only the other members are read again.
            object.extend(members.into_iter().filter(|(name, _)| !is_type(name)));
        }
        Ok(())
    }

    /// Restores quantities that are numbers, as the body has them.
    fn keep_quantity_texts(&self, object: &mut Object) {
        if self.resource.rules.custom || self.object_type() == YAML {
            return;
        }
        if let Ok(raw) = serde_json::from_slice(&self.body) {
            let mut value = Value::Object(std::mem::take(object));
            schema::keep_quantity_texts(self.resource.types().root(), &mut value, raw);
            if let Value::Object(spelled) = value {
                *object = spelled;
            }
        }
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
        let decoded = self.decode_document(wanted)?;
        Ok((decoded.object, decoded.duplicates))
    }

    fn decode_document(&self, wanted: Expected<'_>) -> Result<Decoded, ApiError> {
        let document = self.document(wanted)?;
        let mut object = match document.value {
            Value::Object(object) => object,
            // Go reads it as an object without members.
            Value::Null => Object::new(),
            other => return Err(self.unrecognized(wanted, &without_type(&other))),
        };
        check_envelope(&object).map_err(|error| self.unrecognized(wanted, &error))?;
        check_type(self, wanted, &object)?;
        object.insert("kind".into(), wanted.kind.into());
        object.insert("apiVersion".into(), wanted.api_version.into());
        Ok(Decoded {
            object,
            duplicates: document.duplicates,
            has_float: document.has_float,
        })
    }

    /// Reads the body; protobuf is read as the type that it names.
    fn document(&self, wanted: Expected<'_>) -> Result<Document, ApiError> {
        match &*self.object_type() {
            // As NegotiateInputSerializer: without a content type the body is JSON.
            "" | JSON | YAML => self.text_document().map_err(|error| {
                // The type is read without the numbers.
                match go_json::overflow(&self.body).filter(|_| self.object_type() != YAML) {
                    Some(error) => normalize::refuse_body(&self.resource, &error),
                    None => self.unrecognized(wanted, &error),
                }
            }),
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

    /// Reads a body that is a text, JSON or YAML.
    fn text_document(&self) -> Result<Document, String> {
        if self.object_type() == YAML {
            Document::yaml(&self.body)
        } else {
            Document::json(&self.body)
                .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))
        }
    }

    /// Reads the options of a deletion, which may have another type, or none.
    pub(super) fn decode_options(&self, wanted: Expected<'_>) -> Result<Value, ApiError> {
        let document = match &*self.object_type() {
            // As DeleteResource, which passes the decoder's error on as it is.
            "" | JSON | YAML => self.text_document().map_err(ApiError::bad_request)?,
            _ => self.document(wanted)?,
        };
        let options = match document.value {
            Value::Null => Value::Object(Object::new()),
            options @ Value::Object(_) => options,
            other => return Err(ApiError::bad_request(without_type(&other))),
        };
        let version = options["apiVersion"].as_str().unwrap_or_default();
        if version.matches('/').count() > 1 {
            let message = format!("unexpected GroupVersion string: {version}");
            return Err(ApiError::bad_request(message));
        }
        Ok(options)
    }

    /// Refuses a body of which not even the type can be read.
    fn unrecognized(&self, wanted: Expected<'_>, error: &str) -> ApiError {
        let (kind, summary) = (wanted.kind, summary(&self.body));
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {error} ({summary})"
        ))
    }
}

/// Refuses a type that is not given as texts.
fn check_envelope(object: &Object) -> Result<(), String> {
    for member in ["apiVersion", "kind"] {
        let given = object.get(member).filter(|value| !value.is_null());
        if let Some(other) = given.filter(|value| !value.is_string()) {
            let found = go_json::type_name(other);
            return Err(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go struct field \
                 .{member} of type string"
            ));
        }
    }
    Ok(())
}

/// The error of a value that is no object, and so has no type.
fn without_type(value: &Value) -> String {
    let error = go_json::type_error(value, ENVELOPE);
    format!("couldn't get version/kind; json parse error: {error}")
}

/// Refuses a custom resource of another kind; one to replace must exist.
fn wrong_kind(call: &Call, object: &Object, kind: &str) -> ApiError {
    let key = call.resource.key(call.namespace(), call.name());
    let replaces = !call.name().is_empty() && call.target.subresource.is_none();
    // A custom resource that is missing is reported before its kind is looked at.
    if replaces && call.server.store.get(call.resource.table, &key).is_none() {
        return call.not_found();
    }
    let message = format!("must be {}", call.resource.kind);
    let cause = StatusCause::invalid("kind", &kind.into(), &message);
    let name = metadata_text(object, "name");
    ApiError::invalid_as(kind, &call.resource.group, name, &[cause])
}

/// The Go type into which a body is read first.
const ENVELOPE: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
    \"json:\\\"kind,omitempty\\\"\" }";

/// Returns the beginning of a body, in hexadecimal if it does not look like JSON.
fn summary(body: &[u8]) -> String {
    // The length that transformDecodeError gives to summarizeData.
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
    if !wanted.custom {
        return check_builtin(wanted, kind, api_version);
    }
    if api_version != wanted.api_version {
        return Err(other_version(wanted, api_version));
    }
    if kind == wanted.kind {
        return Ok(());
    }
    Err(wrong_kind(call, object, kind))
}

fn other_version(wanted: Expected<'_>, api_version: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the API version in the data ({api_version}) does not match the expected API version ({})",
        wanted.api_version
    ))
}

/// Checks the type that the sent object of a built-in kind names; it may leave out its parts.
///
/// Go's decoder makes an object of that type, and converts it to the wanted one.
fn check_builtin(wanted: Expected<'_>, kind: &str, api_version: &str) -> Result<(), ApiError> {
    let kind = if kind.is_empty() { wanted.kind } else { kind };
    let api_version = match api_version.trim_start_matches('/') {
        "" => wanted.api_version,
        given => given,
    };
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let refuse = |reason: String| {
        let wanted = wanted.kind;
        Err(ApiError::bad_request(format!(
            "{kind} in version {version} cannot be handled as a {wanted}: {reason}",
            version = quoted(version)
        )))
    };
    if kind == wanted.kind && api_version == wanted.api_version {
        return Ok(());
    }
    let scheme = Scheme::of(wanted.api_version);
    if !scheme.has(api_version, kind) {
        let place = scheme.place();
        return refuse(format!(
            "no kind {kind} is registered for version {api_version} in scheme {place}",
            kind = quoted(kind),
            api_version = quoted(api_version),
            place = quoted(place)
        ));
    }
    let package = package(wanted.api_version, wanted.kind);
    if kind == wanted.kind && self::package(api_version, kind) == package {
        return Err(other_version(wanted, api_version));
    }
    let version = if is_meta(kind) { "v1" } else { version };
    refuse(format!(
        "converting ({version}.{kind}) to ({package}.{}): unknown conversion",
        wanted.kind
    ))
}

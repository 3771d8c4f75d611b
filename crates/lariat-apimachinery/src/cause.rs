//! What is wrong with one field.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::go_text;

/// One field that is wrong: a cause in the details of a `Status`.
///
/// It is called `field.Error` in the API server, and has its texts. Serialized it is a `StatusCause`.
#[derive(Debug, Clone, Serialize)]
pub struct StatusCause {
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: Cow<'static, str>,
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
}

impl StatusCause {
    /// Makes a cause of a machine-readable reason, such as `FieldValueInvalid`.
    pub fn new(
        reason: impl Into<Cow<'static, str>>,
        field: &str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            reason: reason.into(),
            field: field.to_owned(),
            message: message.into(),
        }
    }

    /// Returns the machine-readable reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the cause as one sentence.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }

    /// A field that must be there; the message may be empty.
    #[must_use]
    pub fn required(field: &str, message: &str) -> Self {
        let message = match message {
            "" => "Required value".to_owned(),
            message => format!("Required value: {message}"),
        };
        Self::new("FieldValueRequired", field, message)
    }

    /// A field whose value is not allowed; the message may be empty.
    #[must_use]
    pub fn invalid(field: &str, value: &Value, message: &str) -> Self {
        let colon = if message.is_empty() { "" } else { ": " };
        let text = format!("Invalid value: {}{colon}{message}", go_text::shown(value));
        Self::new("FieldValueInvalid", field, text)
    }

    /// A field that must not be there, or must not change.
    #[must_use]
    pub fn forbidden(field: &str, message: &str) -> Self {
        Self::new(
            "FieldValueForbidden",
            field,
            format!("Forbidden: {message}"),
        )
    }

    /// A value that is there twice.
    #[must_use]
    pub fn duplicate(field: &str, value: &str) -> Self {
        Self::new(
            "FieldValueDuplicate",
            field,
            format!("Duplicate value: {}", go_text::quoted(value)),
        )
    }

    /// A name of something that does not exist.
    #[must_use]
    pub fn not_found(field: &str, value: &str) -> Self {
        let message = format!("Not found: {}", go_text::quoted(value));
        Self::new("FieldValueNotFound", field, message)
    }

    /// A value that is none of the supported ones, which are given as one text.
    #[must_use]
    pub fn unsupported(field: &str, value: &str, supported: &str) -> Self {
        let value = go_text::quoted(value);
        let message = format!("Unsupported value: {value}: supported values: {supported}");
        Self::new("FieldValueNotSupported", field, message)
    }
}

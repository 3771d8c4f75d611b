//! Errors about single fields.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::go_text;

/// An error about one field: a cause in the details of a `Status`.
///
/// It corresponds to `field.Error` of the API server and has the same texts. It serializes as a `StatusCause`.
///
/// ```
/// use lariat_apimachinery::cause::StatusCause;
///
/// let cause = StatusCause::required("spec.selector", "");
/// assert_eq!(cause.reason(), "FieldValueRequired");
/// assert_eq!(cause.text(), "spec.selector: Required value");
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct StatusCause {
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: Cow<'static, str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
}

impl StatusCause {
    /// Creates a cause with a machine-readable reason, such as `FieldValueInvalid`.
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

    /// Returns the cause with its field below another one; an empty path is none.
    #[must_use]
    pub(crate) fn below(mut self, path: &str) -> Self {
        if !path.is_empty() {
            self.field = format!("{path}.{}", self.field);
        }
        self
    }

    /// Creates the error of a missing field; the message may be empty.
    #[must_use]
    pub fn required(field: &str, message: &str) -> Self {
        let message = match message {
            "" => "Required value".to_owned(),
            message => format!("Required value: {message}"),
        };
        Self::new("FieldValueRequired", field, message)
    }

    /// Creates the error of an invalid value; the message may be empty.
    ///
    /// ```
    /// use lariat_apimachinery::cause::StatusCause;
    /// use serde_json::json;
    ///
    /// let cause = StatusCause::invalid("spec.replicas", &json!(-1), "must be greater than or equal to 0");
    /// assert_eq!(cause.text(), "spec.replicas: Invalid value: -1: must be greater than or equal to 0");
    /// ```
    #[must_use]
    pub fn invalid(field: &str, value: &Value, message: &str) -> Self {
        let colon = if message.is_empty() { "" } else { ": " };
        let text = format!("Invalid value: {}{colon}{message}", go_text::shown(value));
        Self::new("FieldValueInvalid", field, text)
    }

    /// Creates the error of a field that must be absent, or must not change.
    #[must_use]
    pub fn forbidden(field: &str, message: &str) -> Self {
        Self::new(
            "FieldValueForbidden",
            field,
            format!("Forbidden: {message}"),
        )
    }

    /// Creates the error of a duplicate value.
    #[must_use]
    pub fn duplicate(field: &str, value: &str) -> Self {
        Self::new(
            "FieldValueDuplicate",
            field,
            format!("Duplicate value: {}", go_text::quoted(value)),
        )
    }

    /// Creates the error of a reference to something that does not exist.
    #[must_use]
    pub fn not_found(field: &str, value: &str) -> Self {
        let message = format!("Not found: {}", go_text::quoted(value));
        Self::new("FieldValueNotFound", field, message)
    }

    /// Creates the error of an unsupported value; `supported` lists the allowed ones.
    #[must_use]
    pub fn unsupported(field: &str, value: &str, supported: &str) -> Self {
        let value = go_text::quoted(value);
        let message = format!("Unsupported value: {value}: supported values: {supported}");
        Self::new("FieldValueNotSupported", field, message)
    }
}

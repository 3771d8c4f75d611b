//! What is wrong with one field.

use serde::Serialize;
use serde_json::Value;

/// One field that is wrong.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cause {
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
}

impl Cause {
    pub(crate) fn new(reason: &'static str, field: &str, message: impl Into<String>) -> Self {
        Self {
            reason,
            field: field.to_owned(),
            message: message.into(),
        }
    }

    pub(crate) fn reason(&self) -> &'static str {
        self.reason
    }

    /// Returns the cause as one sentence.
    pub(crate) fn text(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }

    pub(crate) fn required(field: &str, message: &str) -> Self {
        let message = match message {
            "" => "Required value".to_owned(),
            message => format!("Required value: {message}"),
        };
        Self::new("FieldValueRequired", field, message)
    }

    pub(crate) fn invalid(field: &str, value: &Value, message: &str) -> Self {
        Self::new(
            "FieldValueInvalid",
            field,
            format!("Invalid value: {value}: {message}"),
        )
    }

    pub(crate) fn forbidden(field: &str, message: &str) -> Self {
        Self::new(
            "FieldValueForbidden",
            field,
            format!("Forbidden: {message}"),
        )
    }

    pub(crate) fn duplicate(field: &str, value: &str) -> Self {
        Self::new(
            "FieldValueDuplicate",
            field,
            format!("Duplicate value: {value:?}"),
        )
    }

    pub(crate) fn not_found(field: &str, value: &str) -> Self {
        Self::new("FieldValueNotFound", field, format!("Not found: {value:?}"))
    }

    pub(crate) fn unsupported(field: &str, value: &str, supported: &str) -> Self {
        let message = format!("Unsupported value: {value:?}: supported values: {supported}");
        Self::new("FieldValueNotSupported", field, message)
    }
}

//! What is wrong with a value, in the words of the API server.
//!
//! Source: `k8s.io/kube-openapi/pkg/validation/errors` for the texts, and
//! `k8s.io/apiextensions-apiserver/pkg/apiserver/validation` for what becomes of them.

use serde_json::Value;

use crate::cause::StatusCause;
use crate::go_text;

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    /// The field; `None` if the fault is not about one field.
    pub(super) field: Option<String>,
    pub(super) kind: FaultKind,
    /// The sentence about it.
    pub(super) text: String,
}

#[derive(Debug, Clone)]
pub(super) enum FaultKind {
    Required,
    Unsupported(Value, Vec<String>),
    TooLong(i64),
    /// How many there are, and how many there may be.
    TooMany(usize, i64),
    /// The type there is, or the text that has not the wanted format.
    Type(String),
    Invalid(Value),
}

/// How a field is called that is none.
pub(crate) const NO_FIELD: &str = "<nil>";

impl Fault {
    /// Makes a cause of it; all fields are below `prefix`, if there is one.
    pub(super) fn cause(&self, prefix: Option<&str>) -> StatusCause {
        let name = self.field.as_deref().unwrap_or_default();
        // Paths of faults begin with a dot, as the validator of kube-openapi writes them;
        // `kubeOpenAPIResultToFieldErrors` trims it.
        let field = match (prefix, name.trim_start_matches('.')) {
            (None, "") => NO_FIELD.to_owned(),
            (None, name) => name.to_owned(),
            (Some(prefix), "") => prefix.to_owned(),
            (Some(prefix), name) => format!("{prefix}.{name}"),
        };
        let text = &self.text;
        match &self.kind {
            // `kubeOpenAPIResultToFieldErrors` keeps the text of the validator in the last two cases only; the others
            // are worded again from the values.
            FaultKind::Required => StatusCause::required(&field, ""),
            FaultKind::Unsupported(value, choices) => unsupported(&field, value, choices),
            FaultKind::TooLong(most) => {
                let unit = if *most == 1 { "byte" } else { "bytes" };
                let message = format!("Too long: may not be more than {most} {unit}");
                StatusCause::new("FieldValueTooLong", &field, message)
            }
            FaultKind::TooMany(count, most) => too_many(&field, *count, *most),
            // What was found is the name of a type, such as "integer", and is quoted like a value.
            FaultKind::Type(found) => {
                let message = format!("Invalid value: {found:?}: {text}");
                StatusCause::new("FieldValueTypeInvalid", &field, message)
            }
            FaultKind::Invalid(value) => {
                let message = format!("Invalid value: {}: {text}", shown(value));
                StatusCause::new("FieldValueInvalid", &field, message)
            }
        }
    }
}

pub(crate) fn too_many(field: &str, count: usize, most: i64) -> StatusCause {
    let unit = if most == 1 { "item" } else { "items" };
    let message = format!("Too many: {count}: must have at most {most} {unit}");
    StatusCause::new("FieldValueTooMany", field, message)
}

pub(crate) fn duplicate(field: &str, value: &Value) -> StatusCause {
    let message = format!("Duplicate value: {}", shown(value));
    StatusCause::new("FieldValueDuplicate", field, message)
}

fn unsupported(field: &str, value: &Value, choices: &[String]) -> StatusCause {
    let choices: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
    let message = format!(
        "Unsupported value: {}: supported values: {}",
        shown(value),
        choices.join(", ")
    );
    StatusCause::new("FieldValueNotSupported", field, message)
}

/// Returns a value as Go prints the one that is wrong.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        // Go prints floats by `%v`, which differs from JSON for very large and very small ones.
        Value::Number(number) if number.is_f64() => {
            go_text::float(number.as_f64().unwrap_or_default())
        }
        other => other.to_string(),
    }
}

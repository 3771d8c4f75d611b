//! The options of a write, from its parameters.
//!
//! Source: `ValidateCreateOptions`, `ValidateUpdateOptions` and `ValidatePatchOptions` in
//! `k8s.io/apimachinery/pkg/apis/meta/v1/validation`.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::go_text;
use serde_json::json;

use super::query::Query;
use crate::status::ApiError;

/// The longest name of a field manager.
// FieldManagerMaxLength in apimachinery's metav1 validation.
const LONGEST_NAME: usize = 128;

/// The kinds of options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOptions {
    Create,
    Update,
    /// Of a patch that is no apply.
    Patch,
    Apply,
}

impl WriteOptions {
    /// Returns those of a patch.
    pub(crate) fn of_patch(applies: bool) -> Self {
        if applies { Self::Apply } else { Self::Patch }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch | Self::Apply => "PatchOptions",
        }
    }
}

impl Query {
    /// Checks the parameters that every write has; returns whether it is only to be checked.
    ///
    /// # Errors
    ///
    /// All that is wrong, together.
    pub(crate) fn check_write(&self, options: WriteOptions) -> Result<bool, ApiError> {
        let mut causes = Vec::new();
        let manager = self.text("fieldManager");
        match options {
            WriteOptions::Apply if manager.is_none() => {
                causes.push(StatusCause::required(
                    "fieldManager",
                    "is required for apply patch",
                ));
            }
            WriteOptions::Patch if self.has("force") => {
                let reason = "may not be specified for non-apply patch";
                causes.push(StatusCause::forbidden("force", reason));
            }
            _ => {}
        }
        causes.extend(manager.into_iter().flat_map(of_manager));
        let dry_run = self.all("dryRun");
        causes.extend(of_dry_run(dry_run));
        causes.extend(self.text("fieldValidation").and_then(of_validation));
        if causes.is_empty() {
            Ok(!dry_run.is_empty())
        } else {
            Err(ApiError::invalid_as(
                options.kind(),
                "meta.k8s.io",
                "",
                &causes,
            ))
        }
    }
}

/// Finds values of `dryRun` that are none.
// ValidateDryRun.
pub(crate) fn of_dry_run(values: &[String]) -> Option<StatusCause> {
    values.iter().find(|value| *value != "All")?;
    let shown = json!(values);
    let message = format!("Unsupported value: {shown}: supported values: \"All\"");
    Some(StatusCause::new(
        "FieldValueNotSupported",
        "dryRun",
        message,
    ))
}

// ValidateFieldValidation.
fn of_validation(value: &str) -> Option<StatusCause> {
    if matches!(value, "Ignore" | "Warn" | "Strict") {
        return None;
    }
    let supported = r#""", "Ignore", "Strict", "Warn""#;
    Some(StatusCause::unsupported(
        "fieldValidation",
        value,
        supported,
    ))
}

// ValidateFieldManager.
fn of_manager(name: &str) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    if name.len() > LONGEST_NAME {
        let message = format!("Too long: may not be more than {LONGEST_NAME} bytes");
        let cause = StatusCause::new("FieldValueTooLong", "fieldManager", message);
        causes.push(cause);
    }
    // Each odd character is shown with the whole name, so of a name that is far too long none is.
    if name.len() > 2 * LONGEST_NAME || name.chars().all(go_text::is_print) {
        return causes;
    }
    let shown = go_text::quoted(name);
    let odd = name
        .char_indices()
        .filter(|(_, character)| !go_text::is_print(*character));
    causes.extend(odd.map(|(at, character)| {
        let code = u32::from(character);
        let message =
            format!("Invalid value: {shown}: invalid character U+{code:04X} (at position {at})");
        StatusCause::new("FieldValueInvalid", "fieldManager", message)
    }));
    causes
}

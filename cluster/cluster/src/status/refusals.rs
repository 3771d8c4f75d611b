//! Errors that refuse a request without a cause of their own.

use http::StatusCode;
use lariat_apimachinery::admission::Denial;
use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::go_text::quoted;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::patch::PatchError;

use super::error::ApiError;

/// A policy's refusal of a request: the reason and the sentence.
pub(crate) type PolicyCause = (&'static str, String);

impl ApiError {
    /// Credentials that are not known.
    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// Something a user may not do.
    pub(crate) fn denied(message: String) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    /// The error of a request that is refused without a look at its resource.
    pub(crate) fn forbidden_as_a_whole(message: &str) -> Self {
        let message = format!("forbidden: {message}");
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about("", "", "")
    }

    /// A request that a webhook denies, with the status it answers.
    pub(crate) fn denied_by_webhook(denial: &Denial) -> Self {
        // A webhook may answer any number, and one that is no HTTP status would not get onto the wire.
        let code = StatusCode::from_u16(denial.code).unwrap_or(StatusCode::BAD_REQUEST);
        let error = Self::new(code, denial.reason.clone(), denial.message.clone());
        error.with_details(&denial.details)
    }

    /// A request denied by a ValidatingAdmissionPolicy, with the validation's reason.
    pub(crate) fn refused_by_policy(
        resource: &Resource,
        name: &str,
        message: &str,
        reason: &str,
    ) -> Self {
        let reason = if reason.is_empty() { "Invalid" } else { reason };
        let code = match reason {
            "Forbidden" => StatusCode::FORBIDDEN,
            "Unauthorized" => StatusCode::UNAUTHORIZED,
            "RequestEntityTooLarge" => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        let text = format!(
            "{} {name} is forbidden: {message}",
            resource.qualified(),
            name = quoted(name)
        );
        Self::new(code, reason.to_owned(), text)
            .about_object(resource, name)
            .causes(&[StatusCause::new("", "", message)])
    }

    /// A request that MutatingAdmissionPolicies deny.
    pub(crate) fn refused_by_policies(
        resource: &Resource,
        name: &str,
        causes: &[PolicyCause],
    ) -> Self {
        let (reason, message) = causes.first().cloned().unwrap_or_default();
        let causes = causes.iter();
        let causes: Vec<_> = causes
            .map(|(_, message)| StatusCause::new("", "", message.as_str()))
            .collect();
        Self::new(StatusCode::FORBIDDEN, reason, message)
            .about_object(resource, name)
            .causes(&causes)
    }

    /// An object without a name that is wrong, of a kind that is no resource.
    pub(crate) fn invalid_kind(kind: &str, group: &str, causes: &[StatusCause]) -> Self {
        Self::invalid_as(kind, group, "", causes)
    }
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Unreadable(reason) => {
                Self::bad_request(format!("error decoding patch: {reason}"))
            }
            PatchError::TooManyOperations { limit, sent } => Self::too_many_operations(limit, sent),
            PatchError::Malformed(reason) => Self::bad_request(reason),
            PatchError::Unmergeable(reason) => Self::internal(reason),
            _ => Self::rejected_patch(),
        }
    }
}

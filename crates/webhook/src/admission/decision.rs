//! The decision of a validating handler.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::object::Undecodable;

/// The decision of a handler about a request: allowed, or denied for a reason.
///
/// ```
/// use lariat::webhook::Decision;
///
/// let denied = Decision::deny("a widget has a size").cause("spec.size", "must be at least 1");
/// assert!(!denied.is_allowed());
/// let allowed = Decision::allow().warn("spec.colour is deprecated, use spec.color");
/// assert!(allowed.is_allowed());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "a decision counts when the handler returns it"]
pub struct Decision {
    denial: Option<Denial>,
    warnings: Vec<String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Denial {
    message: String,
    code: Option<u16>,
    reason: Option<String>,
    /// Fields, each with what is wrong with it.
    causes: Vec<(String, String)>,
}

impl Decision {
    /// Allows the request.
    pub fn allow() -> Self {
        Self::default()
    }

    /// Denies the request with a message for its user.
    ///
    /// The API server puts the name of the webhook before the message. The status code is 403 (`Forbidden`), unless
    /// there are [causes](Self::cause) or another [code](Self::code).
    pub fn deny(message: impl Into<String>) -> Self {
        Self {
            denial: Some(Denial {
                message: message.into(),
                ..Denial::default()
            }),
            ..Self::default()
        }
    }

    /// Denies the request for an invalid field, such as `spec.size`.
    ///
    /// It can be called several times. The status code becomes 422 (`Invalid`), unless there is another
    /// [code](Self::code). Clients show the causes after the message. Without a message, the causes are the message.
    ///
    /// ```
    /// use lariat::webhook::Decision;
    ///
    /// let decision = Decision::allow().cause("spec.size", "must be at least 1");
    /// assert!(!decision.is_allowed());
    /// assert_eq!(decision.status().unwrap()["code"], 422);
    /// ```
    pub fn cause(mut self, field: impl Into<String>, message: impl Into<String>) -> Self {
        let denial = self.denial.get_or_insert_default();
        denial.causes.push((field.into(), message.into()));
        self
    }

    /// Sets the status code of a denial: 400 to 599; others count as 403.
    pub fn code(mut self, code: u16) -> Self {
        if let Some(denial) = &mut self.denial {
            denial.code = Some(code);
        }
        self
    }

    /// Sets the reason of a denial, such as `Conflict` (default: that of the code).
    ///
    /// It is one word, for programs to match.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        if let Some(denial) = &mut self.denial {
            denial.reason = Some(reason.into());
        }
        self
    }

    /// Adds a warning, which clients print.
    ///
    /// API servers truncate a warning to 256 characters, and all warnings of a response to 4,096.
    ///
    /// ```
    /// use lariat::webhook::Decision;
    ///
    /// let decision = Decision::allow().warn("spec.colour is deprecated, use spec.color");
    /// assert_eq!(decision.warnings().len(), 1);
    /// ```
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Adds an annotation to the audit event.
    ///
    /// The API server puts the name of the webhook before the key.
    pub fn annotate(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Returns whether the request is allowed.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.denial.is_none()
    }

    /// Returns the warnings.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the audit annotations.
    #[must_use]
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        &self.annotations
    }

    /// Returns the Status of a denial, as it is sent to the API server.
    #[must_use]
    pub fn status(&self) -> Option<Value> {
        self.denial.as_ref().map(Denial::status)
    }
}

impl From<Undecodable> for Decision {
    fn from(error: Undecodable) -> Self {
        Self::deny(error.to_string()).cause(error.path(), error.reason())
    }
}

impl Denial {
    /// Returns the Status that is sent to the API server.
    fn status(&self) -> Value {
        // Other codes are not those of errors, so the default is used.
        // A code that was given and is invalid leads to 403, even with causes.
        let given = self.code.filter(|code| (400..600).contains(code));
        let code = given.unwrap_or(match (self.code, self.causes.is_empty()) {
            (None, false) => 422,
            _ => 403,
        });
        let reason = self.reason.as_deref().or_else(|| reason_of(code));
        let causes = self.causes.iter().map(|(field, message)| {
            json!({"reason": "FieldValueInvalid", "field": field, "message": message})
        });
        let causes: Vec<Value> = causes.collect();
        let mut status = json!({"status": "Failure", "code": code, "message": self.message()});
        if let Some(reason) = reason {
            status["reason"] = reason.into();
        }
        if !causes.is_empty() {
            status["details"] = json!({"causes": causes});
        }
        status
    }

    fn message(&self) -> String {
        if !self.message.is_empty() {
            return self.message.clone();
        }
        let causes = self
            .causes
            .iter()
            .map(|(field, message)| format!("{field}: {message}"));
        causes.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the reason that API servers use for a status code.
fn reason_of(code: u16) -> Option<&'static str> {
    Some(match code {
        // As `StatusReason` of apimachinery's `meta/v1`.
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Gone",
        413 => "RequestEntityTooLarge",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(decision: &Decision, expected: &Value) {
        assert_eq!(
            decision.status().unwrap_or_default(),
            *expected,
            "{decision:?}"
        );
    }

    #[test]
    fn a_denial_has_the_status_of_its_code() {
        let mut status =
            json!({"status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"});
        check(&Decision::deny("no"), &status);
        check(&Decision::deny("no").code(200), &status);
        status["code"] = 409.into();
        status["reason"] = "Conflict".into();
        check(&Decision::deny("no").code(409), &status);
        status["reason"] = "Taken".into();
        check(&Decision::deny("no").code(409).reason("Taken"), &status);
        check(&Decision::allow().code(409).reason("Taken"), &Value::Null);
    }

    #[test]
    fn causes_make_a_denial_of_an_invalid_object() {
        let decision = Decision::allow()
            .cause("spec.a", "is missing")
            .cause("spec.b", "is negative");
        assert!(!decision.is_allowed());
        check(
            &decision,
            &json!({
                "status": "Failure", "code": 422, "reason": "Invalid",
                "message": "spec.a: is missing, spec.b: is negative",
                "details": {"causes": [
                    {"reason": "FieldValueInvalid", "field": "spec.a", "message": "is missing"},
                    {"reason": "FieldValueInvalid", "field": "spec.b", "message": "is negative"},
                ]},
            }),
        );
    }
}

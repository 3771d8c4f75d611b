//! `matchConditions`: expressions that limit what a webhook or a policy applies to.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions`.

use serde_json::Value;

use super::expression::{Expression, Scope};
use super::webhook::FailurePolicy;

/// A list of conditions, compiled.
#[derive(Debug, Default)]
pub struct Conditions(Vec<Expression>);

/// The result of match conditions for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchResult {
    /// All hold.
    Yes,
    /// One does not hold, or one failed and the failure policy is `Ignore`.
    No,
    /// One failed and the failure policy is `Fail`: the request is refused.
    Error(String),
}

impl Conditions {
    /// Reads `matchConditions`; parts of a wrong type count as absent.
    #[must_use]
    pub fn read(conditions: &Value) -> Self {
        let conditions = conditions.as_array().into_iter().flatten();
        let texts = conditions.filter_map(|condition| condition["expression"].as_str());
        Self(texts.map(Expression::new).collect())
    }

    /// Returns whether there are no conditions, which hold for every request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Evaluates the conditions; one that is false outweighs errors of others.
    #[must_use]
    pub fn evaluate(&self, scope: &Scope, policy: FailurePolicy) -> MatchResult {
        let mut errors = Vec::new();
        for expression in &self.0 {
            match expression.evaluate(scope) {
                // `matcher.Match`: a false condition ends it at once, also behind one that failed.
                Ok(Value::Bool(false)) => return MatchResult::No,
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
        match (&errors[..], policy) {
            ([], _) => MatchResult::Yes,
            // With `Ignore` the webhook is not called; it is not the case that it applies to everything.
            (_, FailurePolicy::Ignore) => MatchResult::No,
            ([one], FailurePolicy::Fail) => MatchResult::Error(one.clone()),
            // The form of Go's aggregate error, which has brackets for more than one only.
            (many, FailurePolicy::Fail) => MatchResult::Error(format!("[{}]", many.join(", "))),
        }
    }
}

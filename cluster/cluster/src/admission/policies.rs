//! ValidatingAdmissionPolicies.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/validating`.

use std::sync::Arc;

use lariat_apimachinery::admission::{Binding, Evaluation, FailurePolicy, Policy};
use lariat_apimachinery::object::Object;
use serde_json::json;

use super::request::Request;
use super::selection::Invocation;
use crate::status::ApiError;

/// The reason for which a request is refused.
#[derive(Debug)]
struct Refusal {
    message: String,
    reason: String,
}

/// Evaluates all policies with their bindings; the first denial is answered.
pub(super) async fn validate(
    request: &Request<'_>,
    policies: &[Arc<Policy>],
    old: Option<&Object>,
    object: Option<&Object>,
) -> Result<(), ApiError> {
    let registrations = &request.server.registrations;
    let bindings = registrations.validating_bindings.all(&request.server.store);
    let mut refusals = Vec::new();
    for policy in policies {
        // All policies are evaluated even after a denial: their warnings and audit annotations belong to the answer, of
        // which only the first denial is shown.
        let matched = request.match_with(&policy.matching, old, object);
        let invocation = match matched {
            Ok(Some(invocation)) => invocation,
            Ok(None) => continue,
            Err(error) => {
                let reason = format!("failed to configure policy: {}", error.message());
                refusals.extend(misconfigured(policy, None, &reason));
                continue;
            }
        };
        if let Err(reason) = request.check_params(policy) {
            let reason = format!("failed to configure policy: {reason}");
            refusals.extend(misconfigured(policy, None, &reason));
            continue;
        }
        let (old, object) = request.both_seen_by(&invocation, old, object).await?;
        let seen = (old.as_ref(), object.as_ref());
        for binding in bindings.iter().filter(|each| each.policy == policy.name) {
            evaluate(request, (policy, binding), &invocation, seen, &mut refusals);
        }
    }
    match refusals.into_iter().next() {
        None => Ok(()),
        Some(Refusal { message, reason }) => {
            let name = request.shown_name(object);
            Err(ApiError::refused_by_policy(
                request.resource,
                &name,
                &message,
                &reason,
            ))
        }
    }
}

/// Evaluates a policy for one of its bindings, with each of its params.
fn evaluate(
    request: &Request<'_>,
    (policy, binding): (&Policy, &Binding),
    invocation: &Invocation,
    seen: (Option<&Object>, Option<&Object>),
    refusals: &mut Vec<Refusal>,
) {
    let is_matched = request.is_bound(binding, seen);
    let params = is_matched.and_then(|matches| {
        if matches {
            request.params(policy, binding)
        } else {
            Ok(Vec::new())
        }
    });
    let params = match params {
        Ok(params) => params,
        Err(reason) => {
            let reason = format!("failed to configure binding: {reason}");
            refusals.extend(misconfigured(policy, Some(binding), &reason));
            return;
        }
    };
    for param in &params {
        let mut scope = request.scope(invocation, seen, param);
        let evaluation = match policy.applies(&mut scope) {
            Ok(true) => policy.evaluate(&scope),
            Ok(false) => continue,
            Err(reason) => Evaluation::of_error(reason),
        };
        enforce(request, policy, binding, evaluation, refusals);
    }
}

/// Applies the actions of a binding to the violations of its policy.
fn enforce(
    request: &Request<'_>,
    policy: &Policy,
    binding: &Binding,
    evaluation: Evaluation,
    refusals: &mut Vec<Refusal>,
) {
    let (policy_name, binding_name) = (policy.name.as_str(), binding.name.as_str());
    for violation in evaluation.violations {
        for action in &binding.actions {
            let message = &violation.message;
            match action.as_str() {
                "Deny" => refusals.push(Refusal {
                    message: denied(policy_name, binding_name, message),
                    reason: violation.reason.clone(),
                }),
                "Warn" => request.warnings.add(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{policy_name}' with binding '{binding_name}': {message}"
                )),
                "Audit" => {
                    let failure = json!([{
                        "message": message, "policy": policy_name, "binding": binding_name,
                        "expressionIndex": violation.index, "validationActions": binding.actions,
                    }]);
                    let key = "validation.policy.admission.k8s.io/validation_failure";
                    request.annotate(key.to_owned(), failure.to_string());
                }
                _ => {}
            }
        }
    }
    for (key, value) in evaluation.annotations {
        request.annotate(format!("{}/{key}", policy.name), value);
    }
    // The failure policy was applied by then: what is an error here denies the request, whatever the actions are.
    refusals.extend(evaluation.errors.into_iter().map(|message| Refusal {
        message: denied(policy_name, binding_name, &message),
        reason: String::new(),
    }));
}

fn denied(policy: &str, binding: &str, message: &str) -> String {
    format!(
        "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}"
    )
}

/// Refuses a request whose policy failed, unless failures are ignored.
fn misconfigured(policy: &Policy, binding: Option<&Binding>, reason: &str) -> Option<Refusal> {
    let message = match binding {
        Some(binding) => denied(&policy.name, &binding.name, reason),
        None => format!(
            "ValidatingAdmissionPolicy '{}' denied request: {reason}",
            policy.name
        ),
    };
    (policy.failure_policy == FailurePolicy::Fail).then(|| Refusal {
        message,
        reason: String::new(),
    })
}

impl Request<'_> {
    /// Returns whether a binding limits its policy to requests as this one.
    pub(super) fn is_bound(
        &self,
        binding: &Binding,
        (old, object): (Option<&Object>, Option<&Object>),
    ) -> Result<bool, String> {
        let Some(matching) = &binding.matching else {
            return Ok(true);
        };
        let matched = self.match_with(matching, old, object);
        let matched = matched.map_err(|error| error.message().to_owned())?;
        Ok(matched.is_some())
    }
}

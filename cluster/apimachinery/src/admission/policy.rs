//! Admission policies and their bindings.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy`.

use kube_cel::cel::Value as Cel;
use serde_json::Value;

use super::conditions::{Conditions, MatchResult};
use super::expression::{Expression, Scope};
use super::matching::Matching;
use super::webhook::{FailurePolicy, Reinvocation};
use crate::object::{Object, metadata_text};

/// The longest message that a message expression may return.
// `MaxEvaluatedMessageExpressionSizeBytes`.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// The number of bytes of a value that the audit log keeps.
// `maxAuditAnnotationValueLength`.
const LONGEST_ANNOTATION: usize = 10 * 1024;

/// A ValidatingAdmissionPolicy or a MutatingAdmissionPolicy, compiled.
#[derive(Debug)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// The requests to which it applies.
    pub matching: Matching,
    /// The version and the kind of its params, if it has any.
    pub param_kind: Option<(String, String)>,
    /// Whether a request is refused when an expression fails.
    pub failure_policy: FailurePolicy,
    /// Whether it is evaluated again when the object changes after it.
    pub reinvocation: Reinvocation,
    /// The mutations, in order; none for a validating policy.
    pub mutations: Vec<Mutation>,
    conditions: Conditions,
    variables: Vec<(String, Expression)>,
    validations: Vec<Validation>,
    annotations: Vec<(String, Expression)>,
}

/// A binding of a policy.
#[derive(Debug)]
pub struct Binding {
    /// Its name.
    pub name: String,
    /// The name of the policy.
    pub policy: String,
    /// Further restrictions of the requests, if there are any.
    pub matching: Option<Matching>,
    /// The objects that are the params.
    pub param: Option<ParamRef>,
    /// The actions for requests that violate the policy: `Deny`, `Warn`, `Audit`.
    pub actions: Vec<String>,
}

/// The objects that are the params of a binding.
#[derive(Debug, Default)]
pub struct ParamRef {
    /// The name of the object; empty to select by labels.
    pub name: String,
    /// The namespace they are in, empty for that of the request.
    pub namespace: String,
    /// The labels they have, as a `LabelSelector`.
    pub selector: Value,
    /// Whether requests are denied when there is none.
    pub denies_missing: bool,
}

/// One mutation of a policy.
#[derive(Debug)]
pub enum Mutation {
    /// An expression whose value is a JSON patch.
    JsonPatch(Expression),
    /// An expression whose value is applied.
    Apply(Expression),
}

#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: String,
}

/// A failed validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The index of the validation in the policy.
    pub index: usize,
    /// The message for the client.
    pub message: String,
    /// The reason for the client, empty for the usual one.
    pub reason: String,
}

/// The result of a validating policy for a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// The failed validations, in order.
    pub violations: Vec<Violation>,
    /// The audit annotations.
    pub annotations: Vec<(String, String)>,
    /// Errors of audit annotations, for which the request is refused.
    pub errors: Vec<String>,
}

impl Evaluation {
    /// Returns the result of a policy that cannot be evaluated: a rejection.
    #[must_use]
    pub fn of_error(message: String) -> Self {
        let violation = Violation {
            index: 0,
            message,
            reason: String::new(),
        };
        Self {
            violations: vec![violation],
            ..Self::default()
        }
    }
}

impl Policy {
    /// Reads a policy; parts of a wrong type count as absent.
    #[must_use]
    pub fn read(policy: &Object) -> Vec<Self> {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let list = |member: &str| spec[member].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let named =
            |name: &Value, expression: &Value| (text(name), Expression::new(&text(expression)));
        let kind = &spec["paramKind"];
        vec![Self {
            name: metadata_text(policy, "name").to_owned(),
            matching: Matching::read(&spec["matchConstraints"]),
            param_kind: kind
                .is_object()
                .then(|| (text(&kind["apiVersion"]), text(&kind["kind"]))),
            failure_policy: FailurePolicy::read(&spec["failurePolicy"]),
            reinvocation: Reinvocation::read(&spec["reinvocationPolicy"]),
            mutations: list("mutations").filter_map(Mutation::read).collect(),
            conditions: Conditions::read(&spec["matchConditions"]),
            variables: list("variables")
                .map(|each| named(&each["name"], &each["expression"]))
                .collect(),
            validations: list("validations").map(Validation::read).collect(),
            annotations: list("auditAnnotations")
                .map(|each| named(&each["key"], &each["valueExpression"]))
                .collect(),
        }]
    }

    /// Evaluates match conditions and variables; returns whether the policy applies.
    ///
    /// # Errors
    ///
    /// A condition cannot be evaluated, and the policy is to fail.
    pub fn applies(&self, scope: &mut Scope) -> Result<bool, String> {
        // Before the conditions, so that a scope has them once, although conditions may not use variables.
        scope.add_variables(&self.variables);
        match self.conditions.evaluate(scope, self.failure_policy) {
            MatchResult::Yes => Ok(true),
            MatchResult::No => Ok(false),
            MatchResult::Error(reason) => Err(reason),
        }
    }

    /// Evaluates the validations of the policy, which [applies](Self::applies).
    #[must_use]
    pub fn evaluate(&self, scope: &Scope) -> Evaluation {
        let mut evaluation = Evaluation::default();
        let fails = self.failure_policy == FailurePolicy::Fail;
        for (index, validation) in self.validations.iter().enumerate() {
            let violation = |message: String, reason: &str| Violation {
                index,
                message,
                reason: reason.to_owned(),
            };
            match validation.expression.holds(scope) {
                Ok(true) => {}
                Ok(false) => {
                    let message = validation.complaint(scope);
                    let violation = violation(message, &validation.reason);
                    evaluation.violations.push(violation);
                }
                // `policyDecisionActionForError`: an error is a denial without the reason of the validation.
                Err(message) if fails => evaluation.violations.push(violation(message, "")),
                Err(_) => {}
            }
        }
        for (key, expression) in &self.annotations {
            match expression.cel(scope) {
                // An empty text means that there is nothing to publish, as null does.
                Ok(Cel::String(text)) if !text.trim().is_empty() => {
                    let text = text.trim();
                    // Go cuts within a character, too.
                    let end = text.floor_char_boundary(LONGEST_ANNOTATION);
                    let text = text[..end].to_owned();
                    evaluation.annotations.push((key.clone(), text));
                }
                Ok(Cel::String(_) | Cel::Null) => {}
                // Whatever the failure policy is.
                Ok(other) => evaluation.errors.push(format!(
                    "valueExpression '{}' resulted in unsupported return type: {}. Return type must be either string \
                     or null.",
                    expression.text(),
                    type_of(&other)
                )),
                Err(message) if fails => evaluation.errors.push(message),
                Err(_) => {}
            }
        }
        evaluation
    }
}

/// Returns the Go type of a value.
fn type_of(value: &Cel) -> &'static str {
    match value {
        Cel::Null => "null_type",
        Cel::Bool(_) => "bool",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::List(_) => "list(dyn)",
        Cel::Map(_) => "map(dyn, dyn)",
        Cel::Duration(_) => "google.protobuf.Duration",
        Cel::Timestamp(_) => "google.protobuf.Timestamp",
        _ => "dyn",
    }
}

impl Validation {
    fn read(validation: &Value) -> Self {
        let text = |member: &str| validation[member].as_str().unwrap_or_default();
        let message_expression = Some(text("messageExpression")).filter(|text| !text.is_empty());
        Self {
            expression: Expression::new(text("expression")),
            message: text("message").trim().to_owned(),
            message_expression: message_expression.map(Expression::new),
            reason: text("reason").to_owned(),
        }
    }

    fn complaint(&self, scope: &Scope) -> String {
        // The order of fallbacks is that of the Go validator: message expression, message, the expression itself. A
        // bad message is no error.
        let own = self.message_expression.as_ref().and_then(|expression| {
            let Ok(Value::String(text)) = expression.evaluate(scope) else {
                return None;
            };
            let text = text.trim();
            let is_fit = !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n');
            is_fit.then(|| text.to_owned())
        });
        own.unwrap_or_else(|| match self.message.as_str() {
            "" => format!("failed expression: {}", self.expression.text().trim()),
            message => message.to_owned(),
        })
    }
}

impl Mutation {
    fn read(mutation: &Value) -> Option<Self> {
        let expression = |member: &str| mutation[member]["expression"].as_str();
        match mutation["patchType"].as_str()? {
            "JSONPatch" => Some(Self::JsonPatch(Expression::new(expression("jsonPatch")?))),
            "ApplyConfiguration" => Some(Self::Apply(Expression::new(expression(
                "applyConfiguration",
            )?))),
            _ => None,
        }
    }
}

impl Binding {
    /// Reads a binding; parts of a wrong type count as absent.
    #[must_use]
    pub fn read(binding: &Object) -> Vec<Self> {
        let spec = binding.get("spec").unwrap_or(&Value::Null);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (resources, param) = (&spec["matchResources"], &spec["paramRef"]);
        let actions = spec["validationActions"].as_array();
        let actions = actions.into_iter().flatten();
        vec![Self {
            name: metadata_text(binding, "name").to_owned(),
            policy: text(&spec["policyName"]),
            matching: resources.is_object().then(|| Matching::read(resources)),
            param: param.is_object().then(|| ParamRef {
                name: text(&param["name"]),
                namespace: text(&param["namespace"]),
                selector: param["selector"].clone(),
                // `Deny` is the default for a selector too, but the API requires the member.
                denies_missing: param["parameterNotFoundAction"] == "Deny",
            }),
            actions: actions.map(text).collect(),
        }]
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::{Gvk, Operation};
    use serde_json::json;

    use super::super::attributes::{Attributes, ResourceName};
    use super::*;

    /// Evaluates an audit annotation; returns its values and errors.
    fn annotate(expression: &str, failure_policy: &str) -> Evaluation {
        let attributes = Attributes {
            operation: Operation::Create,
            resource: ResourceName::default(),
            subresource: String::new(),
            kind: Gvk::new("", "v1", "ConfigMap"),
            namespace: String::new(),
            name: String::new(),
            options: Value::Null,
            dry_run: false,
            user: json!({}),
        };
        let annotation = json!({"key": "k", "valueExpression": expression});
        let policy =
            json!({"spec": {"failurePolicy": failure_policy, "auditAnnotations": [annotation]}});
        let policies = Policy::read(policy.as_object().unwrap());
        let seen = (&attributes.resource, &attributes.kind);
        policies[0].evaluate(&Scope::new(&attributes, seen, None, None))
    }

    #[test]
    fn audit_annotations_are_texts_or_nothing() {
        for (expression, errors) in [
            ("' v '", 0),
            ("'  '", 0),
            ("null", 0),
            ("dyn(1)", 1),
            ("[]", 1),
        ] {
            let found = annotate(expression, "Ignore");
            assert_eq!(found.errors.len(), errors, "{expression}: {found:?}");
        }
        let found = annotate("dyn(1)", "Fail");
        assert_eq!(
            found.errors,
            [
                "valueExpression 'dyn(1)' resulted in unsupported return type: int. Return type must be either string \
                 or null."
            ]
        );
        let long = annotate(&format!("'a{}'", "é".repeat(6000)), "Fail");
        assert_eq!(long.annotations[0].1.len(), 10 * 1024 - 1);
    }
}

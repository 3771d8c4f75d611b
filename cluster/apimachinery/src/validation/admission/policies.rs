//! ValidatingAdmissionPolicies and MutatingAdmissionPolicies.

use std::collections::HashSet;

use super::conditions::{self, Expression};
use super::matching;
use super::variables::check_variables;
use crate::expressions::{self, Type};
use crate::object::metadata_text;
use crate::validation::causes::Causes;
use crate::validation::conditions::check_conditions;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::formats;

const MOST_ANNOTATIONS: usize = 20;
const MOST_ANNOTATION_BYTES: usize = 5 * 1024;

pub(in crate::validation) fn validating_policy(context: &Context<'_>, causes: &mut Causes) {
    // `ValidateValidatingAdmissionPolicyStatusUpdate`; through the status nothing else can change.
    if context.updates(Part::Status) {
        check_status(&context.get("status"), causes);
        return;
    }
    let spec = context.get("spec");
    let rule = Expression {
        parameters: spec.has("paramKind"),
        ..Expression::default()
    };
    // `validateValidatingAdmissionPolicySpec`.
    check_requests(context, false, causes);
    let variables = check_variables(&spec, rule, causes);
    let has_variables = !spec.get("variables").is_void();
    let rule = Expression {
        variables: has_variables.then_some(&variables),
        ..rule
    };
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.is_void() && annotations.is_void() {
        let detail = "validations or auditAnnotations must contain at least one item";
        // Both members are reported, since either would do.
        causes.required(&validations, detail);
        causes.required(&annotations, detail);
    }
    for validation in validations.items() {
        check_validation(&validation, rule, causes);
    }
    if annotations.list().len() > MOST_ANNOTATIONS {
        let detail = format!("must not have more than {MOST_ANNOTATIONS} auditAnnotations");
        causes.invalid(&annotations, &detail);
    }
    let mut seen = HashSet::new();
    for annotation in annotations.items() {
        let policy = metadata_text(context.object, "name");
        check_annotation(&annotation, policy, rule, causes);
        let key = annotation.get("key");
        causes.check_unique(&key, &mut seen);
    }
}

pub(in crate::validation) fn mutating_policy(context: &Context<'_>, causes: &mut Causes) {
    let spec = context.get("spec");
    check_requests(context, true, causes);
    let rule = Expression {
        parameters: spec.has("paramKind"),
        ..Expression::default()
    };
    let variables = check_variables(&spec, rule, causes);
    let rule = Expression {
        patches: true,
        trimmed: true,
        // In a mutating policy `variables` is declared even if there are none.
        variables: Some(&variables),
        ..rule
    };
    let mutations = spec.get("mutations");
    causes.check_given(&mutations, "mutations must contain at least one item");
    for mutation in mutations.items() {
        check_mutation(&mutation, rule, causes);
    }
    let reinvocation = spec.get("reinvocationPolicy");
    causes.check_one_of(&reinvocation, &["IfNeeded", "Never"]);
}

/// Checks the match constraints and conditions, the failure policy and `paramKind`.
fn check_requests(context: &Context<'_>, mutates: bool, causes: &mut Causes) {
    let (spec, old) = (context.get("spec"), context.old("spec"));
    let failure = spec.get("failurePolicy");
    if failure.is_set() {
        causes.check_supported(&failure, &["Fail", "Ignore"]);
    } else {
        causes.required(&failure, "");
    }
    let parameters = spec.get("paramKind");
    if parameters.is_set() {
        check_parameters(&parameters, causes);
    }
    let constraints = spec.get("matchConstraints");
    if constraints.is_set() {
        matching::check(&constraints, causes);
        causes.check_given(&constraints.get("resourceRules"), "");
        if mutates {
            matching::check_mutable(&constraints, causes);
        }
    } else {
        causes.required(&constraints, "");
    }
    let keeps = |old: &Field<'_>| {
        let keeps = |name| spec.member(name) == old.member(name);
        // `ignoreValidatingAdmissionPolicyMatchConditions`: conditions that did not change compile as they once did,
        // unless what they may refer to has changed.
        keeps("paramKind") && keeps("matchConditions")
    };
    if !old.as_ref().is_some_and(keeps) {
        let conditions = spec.get("matchConditions");
        conditions::check(&conditions, parameters.is_set(), causes);
    }
}

/// Checks `paramKind`.
fn check_parameters(parameters: &Field<'_>, causes: &mut Causes) {
    let version = parameters.get("apiVersion");
    let text = version.text();
    match text.split_once('/') {
        // `validateParamKind`, whose `parseGroupVersion` accepts one slash.
        _ if text.is_empty() => causes.required(&version, ""),
        Some((_, rest)) if rest.contains('/') => {
            let detail = format!("unexpected GroupVersion string: {text}");
            causes.invalid(&version, &detail);
        }
        parts => {
            let (group, name) = parts.unwrap_or(("", text));
            let check = |part: &str, wrong: Vec<String>, causes: &mut Causes| {
                if !wrong.is_empty() {
                    causes.invalid_as(&version, part, &wrong.join(","));
                }
            };
            if !group.is_empty() {
                check(group, formats::dns_subdomain(group), causes);
            }
            if name.is_empty() {
                causes.invalid(&version, "version must be specified");
            } else {
                check(name, formats::dns_1035_label(name), causes);
            }
        }
    }
    let kind = parameters.get("kind");
    // Kinds are written in camel case, and the rule is only for lower case.
    let wrong = formats::dns_1035_label(&kind.text().to_lowercase());
    if causes.check_given(&kind, "") && !wrong.is_empty() {
        let wrong = wrong.join(",");
        let detail = format!("may have mixed case, but should otherwise match: {wrong}");
        causes.invalid(&kind, &detail);
    }
}

fn check_validation(validation: &Field<'_>, rule: Expression<'_>, causes: &mut Causes) {
    let expression = validation.get("expression");
    let missing = "expression is not specified";
    let must_hold = Expression {
        wanted: &[Type::Bool],
        ..rule
    };
    must_hold.check(&expression, missing, causes);
    let empty = "must be non-empty if specified";
    let (message, made) = (
        validation.get("message"),
        validation.get("messageExpression"),
    );
    // The order is that of `validateValidation`: the message expression comes before the message.
    if !made.text().is_empty() {
        if made.text().trim().is_empty() {
            causes.invalid(&made, empty);
        } else {
            let is_text = Expression {
                no_authorizer: true,
                wanted: &[Type::Text],
                ..rule
            };
            is_text.check(&made, "", causes);
        }
    }
    if !message.text().is_empty() && message.text().trim().is_empty() {
        causes.invalid(&message, empty);
    } else if message.text().trim().contains(['\n', '\r']) {
        causes.invalid(&message, "must not contain line breaks");
    }
    let reason = validation.get("reason");
    if reason.is_set() {
        let supported = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
        causes.check_supported(&reason, &supported);
    }
}

fn check_annotation(
    annotation: &Field<'_>,
    policy: &str,
    rule: Expression<'_>,
    causes: &mut Causes,
) {
    let key = annotation.get("key");
    if policy.is_empty() {
        causes.invalid_as(&key, key.text(), "requires metadata.name be non-empty");
    } else {
        // `validateAuditAnnotation`: the key in the audit log has the name of the policy in front, and must be valid
        // as a whole.
        let whole = format!("{policy}/{}", key.text());
        causes.check_format_of(&key, &whole, formats::qualified_name);
    }
    let value = annotation.get("valueExpression");
    if value.text().trim().len() > MOST_ANNOTATION_BYTES {
        let detail = format!("must not exceed {MOST_ANNOTATION_BYTES} bytes in length");
        // A value that is too long is reported as a missing one, as in Go.
        causes.required(&value, &detail);
    } else if value.text().trim().is_empty() {
        causes.required(&value, "valueExpression is not specified");
    } else {
        let rule = Expression {
            wanted: &[Type::Text, Type::Null],
            ..rule
        };
        rule.check_as(&value, value.text().trim(), value.text(), causes);
    }
}

fn check_mutation(mutation: &Field<'_>, rule: Expression<'_>, causes: &mut Causes) {
    const WAYS: [(&str, &str); 2] = [
        ("JSONPatch", "jsonPatch"),
        ("ApplyConfiguration", "applyConfiguration"),
    ];
    let way = mutation.get("patchType");
    if !causes.check_given(&way, "") {
        return;
    }
    let Some(at) = WAYS.iter().position(|(name, _)| *name == way.text()) else {
        causes.unsupported(&way, &["ApplyConfiguration", "JSONPatch"]);
        return;
    };
    // `validateMutation`: the member that belongs to the type must be there, and the other one must not.
    let ((name, used), (_, other)) = (WAYS[at], WAYS[1 - at]);
    let (used, unused) = (mutation.get(used), mutation.get(other));
    if used.is_set() {
        let wanted = [expressions::patch(name)];
        let rule = Expression {
            wanted: &wanted,
            ..rule
        };
        rule.check(&used.get("expression"), "", causes);
    } else {
        let detail = format!("must be specified when patchType is {name}");
        causes.required(&used, &detail);
    }
    if unused.is_set() {
        let detail = format!("must not be specified when patchType is {name}");
        causes.invalid_as(&unused, format!("{{{other}}}"), &detail);
    }
}

fn check_status(status: &Field<'_>, causes: &mut Causes) {
    for warning in status.get("typeChecking").get("expressionWarnings").items() {
        causes.check_given(&warning.get("warning"), "");
        let reference = warning.get("fieldRef");
        if reference.text().trim().is_empty() {
            causes.required(&reference, "");
        }
    }
    check_conditions(&status.get("conditions"), causes);
}

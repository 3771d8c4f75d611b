//! The rules in a schema, before they are ever evaluated.

use serde_json::Value;

use super::costs;
use super::parts::{array, flag, text};
use super::position::Position;
use super::schema::Found;
use super::structure;
use crate::cause::StatusCause;
use crate::go_text;
use crate::structural::{self, field_path};

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// What ends a line in the grammar of CEL.
const LINE_ENDS: [char; 2] = ['\n', '\r'];

/// Checks the rules right at a schema; they are compiled only if `may_compile`.
///
/// What is wrong with compiled rules goes to the causes `of_rules`.
pub(super) fn check_rules(
    schema: &Value,
    place: Position<'_>,
    may_compile: impl Fn(&Found) -> bool,
    found: &mut Found,
) {
    let rules = array(schema, "x-kubernetes-validations");
    for (at, rule) in rules.iter().enumerate() {
        let path = format!("{}.x-kubernetes-validations[{at}]", place.path);
        check_rule(rule, schema, &path, &mut found.of_schema);
    }
    // A rule with a broken surrounding is not compiled, as in Go, where compiling costs most.
    if rules.is_empty() || !may_compile(found) {
        return;
    }
    let is_resource = place.root || flag(schema, "x-kubernetes-embedded-resource");
    let checked = structural::check_rules(schema, is_resource);
    if checked.has_no_type {
        let field = format!("{}.x-kubernetes-validations", place.path);
        let message = "Internal error: internal error: failed to construct type information for \
            x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
        let cause = StatusCause::new("InternalError", &field, message);
        found.of_rules.push(cause);
    }
    let most_values = place.most_values.unwrap_or(checked.most_values);
    for (at, (rule, checked)) in rules.iter().zip(&checked.rules).enumerate() {
        let path = format!("{}.x-kubernetes-validations[{at}]", place.path);
        let cost = checked.cost.saturating_mul(most_values);
        check_cost("rule", &path, cost, place, found);
        check_compiled("rule", &path, rule, checked.fault.as_deref(), found);
        let message = "messageExpression";
        check_compiled(
            message,
            &path,
            rule,
            checked.message_fault.as_deref(),
            found,
        );
        check_cost(message, &path, checked.message_cost, place, found);
        check_old_self(rule, &path, checked.uses_old_self, place, found);
    }
}

fn check_cost(member: &str, path: &str, cost: u64, place: Position<'_>, found: &mut Found) {
    let field = format!("{path}.{member}");
    if !place.tolerated.rule_costs {
        let what = format!("estimated {member} cost");
        found.of_rules.extend(costs::check(&what, &field, cost));
    }
    found.costs.add(&field, cost);
}

fn check_compiled(member: &str, path: &str, rule: &Value, fault: Option<&str>, found: &mut Found) {
    if let Some(fault) = fault {
        let message = format!("Invalid value: {}: {fault}", shown(rule));
        let cause = StatusCause::new("FieldValueInvalid", &format!("{path}.{member}"), message);
        found.of_rules.push(cause);
    }
}

fn check_old_self(
    rule: &Value,
    path: &str,
    uses_old_self: bool,
    place: Position<'_>,
    found: &mut Found,
) {
    let mut invalid = |member: &str, detail: &str| {
        let field = format!("{path}.{member}");
        let cause = StatusCause::invalid(&field, &rule[member], detail);
        found.of_rules.push(cause);
    };
    if !uses_old_self {
        if rule["optionalOldSelf"].is_boolean() {
            let detail = "may not be set if oldSelf is not used in rule";
            invalid("optionalOldSelf", detail);
        }
    // In a list without keys no old item belongs to a new one, so `oldSelf` could never be set.
    } else if let Some(list) = place.uncorrelated {
        let detail = format!(
            "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
        );
        invalid("rule", &detail);
    }
}

/// Shows a rule as Go shows the structure it has for one.
fn shown(rule: &Value) -> String {
    let member = |name: &str| rule.get(name).cloned().unwrap_or_default();
    let text = |name: &str| go_text::json(&text(rule, name).into());
    format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        text("rule"),
        text("message"),
        text("messageExpression"),
        member("reason"),
        text("fieldPath"),
        member("optionalOldSelf"),
    )
}

/// Checks what surrounds the expression of a rule.
fn check_rule(rule: &Value, schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let field = |member: &str| format!("{path}.{member}");
    let [expression, message, message_expression, field_path] =
        ["rule", "message", "messageExpression", "fieldPath"].map(|member| text(rule, member));
    let mut invalid = |member: &str, detail: &str| {
        causes.push(StatusCause::invalid(&field(member), &rule[member], detail));
    };
    // Only the first of these four is reported, the others below are independent.
    if expression.trim().is_empty() {
        causes.push(StatusCause::required(
            &field("rule"),
            "rule is not specified",
        ));
    } else if !message.is_empty() && message.trim().is_empty() {
        invalid("message", "must be non-empty if specified");
    } else if message.trim().contains(LINE_ENDS) {
        invalid("message", "must not contain line breaks");
    } else if expression.trim().contains(LINE_ENDS) && message.trim().is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        causes.push(StatusCause::required(&field("message"), detail));
    }
    if !message_expression.is_empty() && message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        causes.push(StatusCause::required(&field("messageExpression"), detail));
    }
    let reason = text(rule, "reason");
    if rule.get("reason").is_some_and(Value::is_string) && !REASONS.contains(&reason) {
        let supported = REASONS.map(|reason| format!("{reason:?}")).join(", ");
        causes.push(StatusCause::unsupported(
            &field("reason"),
            reason,
            &supported,
        ));
    }
    if field_path.is_empty() {
        return;
    }
    let mut invalid = |detail: &str| {
        let value = &rule["fieldPath"];
        causes.push(StatusCause::invalid(&field("fieldPath"), value, detail));
    };
    if field_path.trim().is_empty() {
        invalid("must be non-empty if specified");
    }
    if field_path.contains(LINE_ENDS) {
        invalid("must not contain line breaks");
    }
    // `pathValid`: of a schema that Go cannot read, nothing is known.
    let is_known = structure::unconverted(schema).is_none();
    if is_known && field_path::resolve(field_path, schema, true).is_err() {
        invalid("must be a valid path");
    }
}

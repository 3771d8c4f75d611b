//! The rules in a schema, before they are ever evaluated.

use serde_json::Value;

use super::parts::{array, text};
use super::position::Position;
use super::schema::Found;
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
    let causes = &mut found.of_rules;
    for fault in structural::check_rules(schema, place.root) {
        let path = format!("{}.x-kubernetes-validations[{}]", place.path, fault.at);
        let field = format!("{path}.{}", fault.member);
        let rule = &rules[fault.at];
        if fault.member == "optionalOldSelf" {
            let value = &rule["optionalOldSelf"];
            causes.push(StatusCause::invalid(&field, value, &fault.detail));
        } else if !fault.detail.is_empty() {
            let message = format!("Invalid value: {}: {}", shown(rule), fault.detail);
            causes.push(StatusCause::new("FieldValueInvalid", &field, message));
        // In a list without keys no old item belongs to a new one, so `oldSelf` could never be set.
        } else if let Some(list) = place.uncorrelated.filter(|_| fault.uses_old_self) {
            let detail = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
            );
            causes.push(StatusCause::invalid(&field, &rule["rule"], &detail));
        }
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
    if field_path::resolve(field_path, schema, true).is_err() {
        invalid("must be a valid path");
    }
}

//! The Pod failure policy of Jobs.

use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::structs::{Members, Shape};

/// The form of a policy in messages.
pub(super) const POLICY: Members = &[(
    "rules",
    "Rules",
    Shape::List(&[
        ("action", "Action", Shape::Text),
        ("onExitCodes", "OnExitCodes", Shape::Struct(EXIT_CODES)),
        (
            "onPodConditions",
            "OnPodConditions",
            Shape::List(CONDITIONS),
        ),
    ]),
)];

const EXIT_CODES: Members = &[
    ("containerName", "ContainerName", Shape::Value),
    ("operator", "Operator", Shape::Text),
    ("values", "Values", Shape::Value),
];

const CONDITIONS: Members = &[
    ("type", "Type", Shape::Text),
    ("status", "Status", Shape::Text),
];

pub(super) fn check(spec: &Field<'_>, causes: &mut Causes) {
    let policy = spec.get("podFailurePolicy");
    if !policy.is_set() {
        return;
    }
    let rules = policy.get("rules");
    // `maxPodFailurePolicyRules`.
    causes.check_count(&rules, 20);
    for rule in rules.items() {
        check_rule(spec, &rule, causes);
    }
}

/// Checks a text that must be there, and says which there are if it is not.
fn check_listed(at: &Field<'_>, supported: &[&str], causes: &mut Causes) {
    if at.is_void() {
        let names: Vec<String> = supported.iter().map(|name| format!("{name:?}")).collect();
        causes.required(at, &format!("valid values: [{}]", names.join(" ")));
    } else {
        causes.check_supported(at, supported);
    }
}

fn check_rule(spec: &Field<'_>, rule: &Field<'_>, causes: &mut Causes) {
    let action = rule.get("action");
    // `validatePodFailurePolicyRule`. It is in the list of supported actions as well, since the list is shown to
    // everyone.
    if action.text() == "FailIndex" {
        if !spec.has("backoffLimitPerIndex") {
            causes.invalid(&action, "requires the backoffLimitPerIndex to be set");
        }
    } else {
        check_listed(
            &action,
            &["Count", "FailIndex", "FailJob", "Ignore"],
            causes,
        );
    }
    let (codes, conditions) = (rule.get("onExitCodes"), rule.get("onPodConditions"));
    if codes.is_set() {
        check_codes(spec, &codes, causes);
    }
    check_conditions(&conditions, causes);
    match (codes.is_set(), !conditions.is_void()) {
        (true, true) => {
            let detail = "specifying both OnExitCodes and OnPodConditions is not supported";
            // Go passes `field.OmitValueType` here, so the rule is not shown.
            causes.invalid_hidden(rule, detail);
        }
        (false, false) => {
            let detail = "specifying one of OnExitCodes and OnPodConditions is required";
            causes.invalid_hidden(rule, detail);
        }
        _ => {}
    }
}

fn check_conditions(conditions: &Field<'_>, causes: &mut Causes) {
    causes.check_count(conditions, 20);
    for condition in conditions.items() {
        causes.check_format(&condition.get("type"), formats::qualified_name);
        check_listed(
            &condition.get("status"),
            &["False", "True", "Unknown"],
            causes,
        );
    }
}

fn check_codes(spec: &Field<'_>, codes: &Field<'_>, causes: &mut Causes) {
    check_listed(&codes.get("operator"), &["In", "NotIn"], causes);
    let name = codes.get("containerName");
    let pod = spec.get("template").get("spec");
    let mut containers = pod
        .get("containers")
        .items()
        .chain(pod.get("initContainers").items());
    if name.is_set() && !containers.any(|container| container.text_of("name") == name.text()) {
        let detail = "must be one of the container or initContainer names in the pod template";
        causes.invalid(&name, detail);
    }
    let values = codes.get("values");
    if values.is_void() {
        causes.invalid(&values, "at least one value is required");
    }
    causes.check_count(&values, 255);
    let mut seen = Vec::new();
    for value in values.items() {
        let code = value.int().unwrap_or(0);
        // Zero is success, which no rule about failures can mean.
        if codes.text_of("operator") == "In" && code == 0 {
            causes.invalid(&value, "must not be 0 for the In operator");
        }
        if seen.contains(&code) {
            causes.duplicate(&value);
        }
        seen.push(code);
    }
    // Ordered values can be searched and compared; duplicates have an error of their own.
    if !seen.is_sorted() {
        causes.invalid(&values, "must be ordered");
    }
}

//! Scheduling of Pods: tolerations, spread, gates.

use std::collections::HashSet;

use super::affinity::check_label_keys;
use super::options::Options;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::labels::{SelectorOptions, check_selector};
use crate::validation::rule::{self, Rule, Rules};
use crate::validation::structs::{Members, Shape};

/// The form of a toleration in messages.
pub(in crate::validation) const TOLERATION: Members = &[
    ("key", "Key", Shape::Text),
    ("operator", "Operator", Shape::Text),
    ("value", "Value", Shape::Text),
    ("effect", "Effect", Shape::Text),
    ("tolerationSeconds", "TolerationSeconds", Shape::Value),
];

pub(super) fn check(spec: &Field<'_>, options: Options, causes: &mut Causes) {
    for gate in spec.get("readinessGates").items() {
        causes.check_format(&gate.get("conditionType"), formats::qualified_name);
    }
    let mut gates = HashSet::new();
    for gate in spec.get("schedulingGates").items() {
        let name = gate.text_of("name");
        causes.check_format_of(&gate, name, formats::qualified_name);
        if !gates.insert(name) {
            causes.duplicate_as(&gate, name);
        }
    }
    check_spread(&spec.get("topologySpreadConstraints"), options, causes);
}

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Checks the effect of a taint.
pub(in crate::validation) fn check_effect(at: &Field<'_>, causes: &mut Causes) {
    causes.check_one_of(at, EFFECTS);
}

pub(in crate::validation) fn check_tolerations(list: &Field<'_>, causes: &mut Causes) {
    for toleration in list.items() {
        check_toleration(&toleration, causes);
    }
}

fn check_toleration(toleration: &Field<'_>, causes: &mut Causes) {
    let (key, operator) = (toleration.get("key"), toleration.get("operator"));
    let (value, effect) = (toleration.text_of("value"), toleration.get("effect"));
    if !key.is_void() {
        causes.check_format(&key, formats::qualified_name);
    // `ValidateTolerations`: an empty key stands for all keys, which cannot have one value.
    } else if operator.text() != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values \
            and all keys\"";
        causes.invalid_as(&operator, operator.text(), detail);
    }
    if toleration.has("tolerationSeconds") && effect.text() != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        causes.invalid_as(&effect, effect.text(), detail);
    }
    match operator.text() {
        "Equal" | "" => {
            let broken = formats::label_value(value);
            if !broken.is_empty() {
                // The value is shown at the path of the operator.
                causes.invalid_as(&operator, value, &broken.join(";"));
            }
        }
        "Exists" if value.is_empty() => {}
        "Exists" => {
            let detail = "value must be empty when `operator` is 'Exists'";
            causes.invalid_as(&operator, value, detail);
        }
        // Behind a feature gate that is off; the message names them nevertheless.
        "Lt" | "Gt" => {
            causes.unsupported(&operator, &["Equal", "Exists", "Lt", "Gt"]);
        }
        _ => causes.unsupported(&operator, &["Equal", "Exists"]),
    }
    if !effect.is_void() {
        causes.check_supported(&effect, EFFECTS);
    }
}

const SPREAD: Rules = &[(
    "whenUnsatisfiable",
    Rule::Supported(&["DoNotSchedule", "ScheduleAnyway"]),
)];

const NODES: Rules = &[(
    "nodeAffinityPolicy nodeTaintsPolicy",
    Rule::SupportedIfSet(&["Honor", "Ignore"]),
)];

fn check_spread(constraints: &Field<'_>, options: Options, causes: &mut Causes) {
    let all: Vec<Field<'_>> = constraints.items().collect();
    for (index, constraint) in all.iter().enumerate() {
        check_above_zero(&constraint.get("maxSkew"), causes);
        causes.check_given(&constraint.get("topologyKey"), "can not be empty");
        rule::check(constraint, SPREAD, causes);
        let (key, action) = (
            constraint.text_of("topologyKey"),
            constraint.text_of("whenUnsatisfiable"),
        );
        let same = |other: &Field<'_>| {
            other.text_of("topologyKey") == key && other.text_of("whenUnsatisfiable") == action
        };
        // Reported at the first of two constraints, not at the second.
        if all[index + 1..].iter().any(same) {
            // The path of the server.
            let at = constraint.get("{topologyKey, whenUnsatisfiable}");
            causes.duplicate_as(&at, format!("{{{key}, {action}}}"));
        }
        let domains = constraint.get("minDomains");
        if domains.is_set() {
            check_above_zero(&domains, causes);
        }
        // Too few domains can only keep a Pod waiting if waiting is allowed.
        if domains.is_set() && action != "DoNotSchedule" {
            let detail =
                format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
            causes.invalid(&domains, &detail);
        }
        rule::check(constraint, NODES, causes);
        check_label_keys(constraint, causes);
        if !options.any_spread_selector {
            let selector = constraint.get("labelSelector");
            check_selector(&selector, SelectorOptions::default(), causes);
        }
    }
}

fn check_above_zero(at: &Field<'_>, causes: &mut Causes) {
    let number = at.int().unwrap_or(0);
    if number <= 0 {
        causes.invalid_as(at, number, "must be greater than zero");
    }
}

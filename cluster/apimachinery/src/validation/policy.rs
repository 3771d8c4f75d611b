//! PodDisruptionBudgets.

use super::apps::check_share;
use super::causes::Causes;
use super::conditions::check_conditions;
use super::context::{Context, Part};
use super::field::Field;
use super::labels::{self, SelectorOptions};
use super::rule::{self, Rule, Rules};
use super::structs::{self, Members, Shape};

const STATUS: Rules = &[(
    "disruptionsAllowed currentHealthy desiredHealthy expectedPods",
    Rule::NotNegative,
)];

pub(super) fn disruption_budget(context: &Context<'_>, causes: &mut Causes) {
    if context.updates(Part::Status) {
        let status = context.get("status");
        check_conditions(&status.get("conditions"), causes);
        rule::check(&status, STATUS, causes);
        return;
    }
    let (spec, old) = (context.get("spec"), context.old("spec"));
    let shares = ["minAvailable", "maxUnavailable"];
    // `ValidatePodDisruptionBudgetSpec`; none of the two is fine.
    if spec.given(&shares).len() == 2 {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        causes.invalid_struct(&spec, &structs::shown(spec.value(), SPEC), detail);
    }
    for share in shares.map(|name| spec.get(name)) {
        if share.is_set() {
            check_share(&share, causes);
        }
    }
    let was_odd = |old: &Field<'_>| labels::has_odd_values(&old.get("selector"));
    let options = SelectorOptions {
        any_values: old.as_ref().is_some_and(was_odd),
    };
    labels::check_selector(&spec.get("selector"), options, causes);
    let eviction = spec.get("unhealthyPodEvictionPolicy");
    if eviction.is_set() {
        causes.check_supported(&eviction, &["AlwaysAllow", "IfHealthyBudget"]);
    }
}

/// The form of a spec in messages.
const SPEC: Members = &[
    ("minAvailable", "MinAvailable", Shape::Value),
    ("selector", "Selector", Shape::Selector),
    ("maxUnavailable", "MaxUnavailable", Shape::Value),
    (
        "unhealthyPodEvictionPolicy",
        "UnhealthyPodEvictionPolicy",
        Shape::Value,
    ),
];

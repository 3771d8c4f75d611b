//! ResourceQuotas.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::resources;
use crate::validation::structs::{self, Members, Shape};

pub(in crate::validation) fn resource_quota(context: &Context<'_>, causes: &mut Causes) {
    let status = context.get("status");
    // `ValidateResourceQuota` checks the status too; an update of the spec keeps the old one.
    if context.is_creation() || context.part == Part::Status {
        check_amounts(&status.get("hard"), causes);
        check_amounts(&status.get("used"), causes);
    }
    if context.updates(Part::Status) {
        return;
    }
    let spec = context.get("spec");
    check_amounts(&spec.get("hard"), causes);
    check_scopes(&spec, causes);
    check_selector(&spec, causes);
    let Some(old) = context.old("spec") else {
        return;
    };
    // The order and duplicates of scopes do not matter.
    let set = |spec: &Field<'_>| -> BTreeSet<String> {
        let scopes = spec.get("scopes");
        let texts = scopes.items().map(|scope| scope.text().to_owned());
        texts.collect()
    };
    if set(&old) != set(&spec) {
        causes.invalid(&spec.get("scopes"), "field is immutable");
    }
}

fn check_amounts(amounts: &Field<'_>, causes: &mut Causes) {
    for (name, at) in amounts.entries() {
        resources::check_quota_name(&at, name, causes);
        resources::check_amount(&at, name, causes);
    }
}

const ONLY_EXISTS: [&str; 5] = [
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "CrossNamespacePodAffinity",
];

fn is_scope(scope: &str) -> bool {
    ONLY_EXISTS.contains(&scope) || matches!(scope, "PriorityClass" | "VolumeAttributesClass")
}

const COMPUTE: [&str; 7] = [
    "pods",
    "cpu",
    "memory",
    "limits.cpu",
    "limits.memory",
    "requests.cpu",
    "requests.memory",
];

/// Returns whether a quota with a scope can be about a resource.
fn covers(scope: &str, resource: &str) -> bool {
    match scope {
        // Such Pods request nothing, so there is nothing else to count.
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        // All other scopes select Pods.
        scope if is_scope(scope) => COMPUTE.contains(&resource),
        _ => true,
    }
}

/// Adds a cause for each limited resource that a scope does not cover.
fn check_covers(spec: &Field<'_>, scope: &str, at: &Field<'_>, shown: &str, causes: &mut Causes) {
    for (resource, _) in spec.get("hard").entries() {
        // Unknown resources, such as devices, pass with any scope.
        if resources::is_quota_resource(resource) && !covers(scope, resource) {
            causes.invalid_struct(at, shown, "unsupported scope applied to resource");
        }
    }
}

// `invalidScopePairs`. The value in the cause is the list of scopes even if the conflict is in the selector.
fn check_pairs(scopes: &[&str], spec: &Field<'_>, at: &Field<'_>, causes: &mut Causes) {
    for pair in [
        ["BestEffort", "NotBestEffort"],
        ["Terminating", "NotTerminating"],
    ] {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            let shown: Value = spec.member("scopes").clone();
            causes.invalid_as(at, shown, "conflicting scopes");
        }
    }
}

fn check_scopes(spec: &Field<'_>, causes: &mut Causes) {
    let at = spec.get("scopes");
    let scopes: Vec<&str> = at.items().map(|scope| scope.text()).collect();
    for scope in &scopes {
        if !is_scope(scope) {
            causes.invalid(&at, "unsupported scope");
        }
        check_covers(spec, scope, &at, &at.value().to_string(), causes);
    }
    check_pairs(&scopes, spec, &at, causes);
}

/// The form of a scope selector in messages.
const SELECTOR: Members = &[(
    "matchExpressions",
    "MatchExpressions",
    Shape::List(&[
        ("scopeName", "ScopeName", Shape::Text),
        ("operator", "Operator", Shape::Text),
        ("values", "Values", Shape::Value),
    ]),
)];

fn check_selector(spec: &Field<'_>, causes: &mut Causes) {
    let selector = spec.get("scopeSelector");
    let at = selector.get("matchExpressions");
    let mut scopes = Vec::new();
    for requirement in at.items() {
        let scope = requirement.text_of("scopeName");
        scopes.push(scope);
        if !is_scope(scope) {
            causes.invalid_as(&at.get("scopeName"), scope, "unsupported scope");
        }
        let shown = structs::shown(selector.value(), SELECTOR);
        check_covers(spec, scope, &at, &shown, causes);
        check_requirement(&at, &requirement, causes);
    }
    check_pairs(&scopes, spec, &at, causes);
}

/// Checks the operator of a requirement; the paths of causes do not have its index.
fn check_requirement(list: &Field<'_>, requirement: &Field<'_>, causes: &mut Causes) {
    let operator = requirement.text_of("operator");
    let at = list.get("operator");
    if ONLY_EXISTS.contains(&requirement.text_of("scopeName")) && operator != "Exists" {
        let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
            ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
            ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
        causes.invalid_as(&at, operator, detail);
    }
    let values = list.get("values").with(requirement.member("values"));
    match operator {
        "In" | "NotIn" => {
            let detail =
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            causes.check_given(&values, detail);
        }
        "Exists" | "DoesNotExist" if values.is_void() => {}
        "Exists" | "DoesNotExist" => {
            let detail =
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            causes.invalid(&values, detail);
        }
        _ => causes.invalid_as(&at, operator, "not a valid selector operator"),
    }
}

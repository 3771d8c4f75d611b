//! Bindings of admission policies: which parameters they have, and for which requests they hold.

use super::rules;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::labels::{self, SelectorOptions};

pub(in crate::validation) fn validating_policy_binding(context: &Context<'_>, causes: &mut Causes) {
    check_binding(context, causes);
    check_actions(&context.get("spec").get("validationActions"), causes);
}

pub(in crate::validation) fn mutating_policy_binding(context: &Context<'_>, causes: &mut Causes) {
    check_binding(context, causes);
    let rules = context
        .get("spec")
        .get("matchResources")
        .get("resourceRules");
    for operation in rules
        .items()
        .flat_map(|rule| rule.get("operations").items())
    {
        // The path of the cause does not have the indexes.
        let at = rules.get("operations").with(operation.value());
        causes.check_supported(&at, &["*", "CREATE", "UPDATE"]);
    }
}

fn check_binding(context: &Context<'_>, causes: &mut Causes) {
    let spec = context.get("spec");
    causes.check_name(&spec.get("policyName"), formats::dns_subdomain);
    check_parameters(&spec.get("paramRef"), causes);
    check_resources(&spec.get("matchResources"), causes);
}

fn check_parameters(reference: &Field<'_>, causes: &mut Causes) {
    if !reference.is_set() {
        return;
    }
    let (name, selector) = (reference.get("name"), reference.get("selector"));
    let exclusive = "name and selector are mutually exclusive";
    if !name.is_void() {
        causes.check_format(&name, formats::path_segment);
        if selector.is_set() {
            causes.forbidden(&name, exclusive);
        }
    }
    if selector.is_set() {
        labels::check_selector(&selector, SelectorOptions::default(), causes);
        if !name.is_void() {
            causes.forbidden(&selector, exclusive);
        }
    } else if name.is_void() {
        causes.required(reference, "one of name or selector must be specified");
    }
    causes.check_one_of(
        &reference.get("parameterNotFoundAction"),
        &["Deny", "Allow"],
    );
}

/// Checks which requests a policy or a binding is about.
fn check_resources(resources: &Field<'_>, causes: &mut Causes) {
    if !resources.is_set() {
        return;
    }
    let policy = resources.get("matchPolicy");
    if policy.is_set() {
        causes.check_supported(&policy, &["Equivalent", "Exact"]);
    } else {
        causes.required(&policy, "");
    }
    for name in ["namespaceSelector", "objectSelector"] {
        let selector = resources.get(name);
        if selector.is_set() {
            labels::check_selector(&selector, SelectorOptions::default(), causes);
        } else {
            causes.required(&selector, "");
        }
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in resources.get(list).items() {
            check_names(&rule.get("resourceNames"), causes);
            rules::check(&rule, causes);
        }
    }
}

fn check_names(names: &Field<'_>, causes: &mut Causes) {
    let mut seen = Vec::new();
    for name in names.items() {
        causes.check_format(&name, formats::path_segment);
        if seen.contains(&name.text()) {
            causes.duplicate(&name);
        }
        seen.push(name.text());
    }
}

fn check_actions(actions: &Field<'_>, causes: &mut Causes) {
    let mut seen = Vec::new();
    for action in actions.items() {
        causes.check_supported(&action, &["Audit", "Deny", "Warn"]);
        if seen.contains(&action.text()) {
            causes.duplicate(&action);
        }
        seen.push(action.text());
    }
    if seen.contains(&"Deny") && seen.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the \
            API response and headers serves no purpose)";
        causes.invalid(actions, detail);
    }
    causes.check_given(actions, "at least one validation action is required");
}

//! Bindings of admission policies: which parameters they have, and for which requests they hold.

use std::collections::HashSet;

use super::matching;
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
    let resources = context.get("spec").get("matchResources");
    // Only rules of mutating bindings may not match DELETE.
    matching::check_mutable(&resources, causes);
}

fn check_binding(context: &Context<'_>, causes: &mut Causes) {
    let spec = context.get("spec");
    // `validateValidatingAdmissionPolicyBindingSpec` and its mutating twin.
    causes.check_name(&spec.get("policyName"), formats::dns_subdomain);
    check_parameters(&spec.get("paramRef"), causes);
    let resources = spec.get("matchResources");
    if resources.is_set() {
        matching::check(&resources, causes);
    }
}

fn check_parameters(reference: &Field<'_>, causes: &mut Causes) {
    if !reference.is_set() {
        return;
    }
    let (name, selector) = (reference.get("name"), reference.get("selector"));
    // `validateParamRef` says this of both members.
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

fn check_actions(actions: &Field<'_>, causes: &mut Causes) {
    let mut seen = HashSet::new();
    for action in actions.items() {
        causes.check_supported(&action, &["Audit", "Deny", "Warn"]);
        causes.check_unique(&action, &mut seen);
    }
    // `validateValidationActions`; an empty list is checked last.
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the \
            API response and headers serves no purpose)";
        causes.invalid(actions, detail);
    }
    causes.check_given(actions, "at least one validation action is required");
}

//! Selectors and templates of workloads.

use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::labels::{self, SelectorOptions};

/// Checks a selector that must be there and select something.
pub(super) fn check_selector(selector: &Field<'_>, kind: &str, causes: &mut Causes) {
    if !selector.is_set() {
        causes.required(selector, "");
        return;
    }
    labels::check_selector(selector, SelectorOptions::default(), causes);
    check_not_empty(selector, kind, causes);
}

/// Checks that a selector selects something.
pub(super) fn check_not_empty(selector: &Field<'_>, kind: &str, causes: &mut Causes) {
    if labels::is_empty_selector(selector) {
        causes.invalid(selector, &format!("empty selector is invalid for {kind}"));
    }
}

/// Checks that the selector finds the Pods of the template.
pub(in crate::validation) fn check_found(
    selector: &Field<'_>,
    template: &Field<'_>,
    causes: &mut Causes,
) {
    let found = template.get("metadata").get("labels");
    if !labels::selects(selector, &found) {
        causes.invalid(&found, "`selector` does not match template `labels`");
    }
}

/// Checks that the Pods of a template run for ever.
pub(super) fn check_runs_on(template: &Field<'_>, kind: &str, causes: &mut Causes) {
    let spec = template.get("spec");
    // Controllers replace Pods that end, so a Pod that may end would be restarted for ever.
    if spec.text_of("restartPolicy") != "Always" {
        causes.unsupported(&spec.get("restartPolicy"), &["Always"]);
    }
    let deadline = spec.get("activeDeadlineSeconds");
    if deadline.is_set() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        causes.forbidden(&deadline, &detail);
    }
}

/// Checks that counts are not above the count of all Pods.
pub(super) fn check_counts(status: &Field<'_>, counts: &[&'static str], causes: &mut Causes) {
    let count = |member: &str| status.int_of(member).unwrap_or(0);
    for member in counts
        .iter()
        .filter(|member| count(member) > count("replicas"))
    {
        let detail = "cannot be greater than status.replicas";
        // A missing count is zero in Go, and is shown as that.
        causes.invalid_as(&status.get(member), count(member), detail);
    }
}

/// Checks that no more Pods are available than ready.
pub(super) fn check_available(status: &Field<'_>, ready: &str, causes: &mut Causes) {
    let count = |member: &str| status.int_of(member).unwrap_or(0);
    if count("availableReplicas") > count("readyReplicas") {
        let detail = format!("cannot be greater than {ready}");
        let at = status.get("availableReplicas");
        causes.invalid_as(&at, count("availableReplicas"), &detail);
    }
}

/// Checks that the count of collisions does not become smaller.
pub(super) fn check_collisions(context: &Context<'_>, causes: &mut Causes) {
    let at = context.get("status").get("collisionCount");
    let old = context.old("status");
    let Some(old) = old.and_then(|old| old.int_of("collisionCount")) else {
        return;
    };
    // The count is part of the hash of Pod templates: a smaller one would lead to names that are taken.
    if at.int().is_none_or(|count| count < old) {
        let count = at.int().unwrap_or(0);
        causes.invalid_as(&at, count, "cannot be decremented");
    }
}

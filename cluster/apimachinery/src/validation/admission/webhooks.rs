//! Webhooks that are asked about requests.

use std::collections::HashSet;

use super::{address, conditions, rules};
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::labels::{self, SelectorOptions};
use crate::validation::rule::{self, Rule, Rules};

pub(in crate::validation) fn validating_webhooks(context: &Context<'_>, causes: &mut Causes) {
    check(context, &[], causes);
}

pub(in crate::validation) fn mutating_webhooks(context: &Context<'_>, causes: &mut Causes) {
    check(context, MUTATING, causes);
}

const FAILURE: (&str, Rule) = ("failurePolicy", Rule::SupportedIfSet(&["Fail", "Ignore"]));
const MATCH: (&str, Rule) = (
    "matchPolicy",
    Rule::SupportedIfSet(&["Equivalent", "Exact"]),
);
const AGAIN: Rule = Rule::SupportedIfSet(&["IfNeeded", "Never"]);
const POLICIES: Rules = &[FAILURE, MATCH];
/// The rules of mutating webhooks alone.
const MUTATING: Rules = &[("reinvocationPolicy", AGAIN)];

/// Ratcheting: checks that an update need not pass if the old object does not.
// Go computes these from the old object (`validatingHasUniqueWebhookNames` and its like): an update that does not make
// it worse is let through.
#[derive(Debug, Clone, Copy)]
struct Options {
    selector: SelectorOptions,
    side_effects: bool,
    any_review: bool,
    same_names: bool,
    same_conditions: bool,
}

const SELECTORS: [&str; 2] = ["namespaceSelector", "objectSelector"];
const HARMLESS: &[&str] = &["None", "NoneOnDryRun"];
const REVIEWS: &[&str] = &["v1", "v1beta1"];

impl Options {
    fn new(new: &Field<'_>, old: Option<&Field<'_>>) -> Self {
        let any = |test: &dyn Fn(&Field<'_>) -> bool| {
            old.is_some_and(|old| old.items().any(|hook| test(&hook)))
        };
        let names = old.map(|old| old.items().map(|hook| hook.text_of("name").to_owned()));
        let names: Vec<String> = names.into_iter().flatten().collect();
        // Odd values of selectors were stored before they were checked.
        let is_odd = |hook: &Field<'_>| {
            let mut selectors = SELECTORS.iter().map(|name| hook.get(name));
            selectors.any(|selector| selector.is_set() && !labels::is_selector(&selector))
        };
        let conditions = |hooks: &Field<'_>| -> Vec<serde_json::Value> {
            hooks
                .items()
                .map(|hook| hook.member("matchConditions").clone())
                .collect()
        };
        Self {
            selector: SelectorOptions {
                any_values: any(&is_odd),
            },
            side_effects: any(&|hook| !HARMLESS.contains(&hook.text_of("sideEffects"))),
            // One webhook of the old configuration is enough to free all of the new one.
            any_review: any(&|hook| {
                let versions = hook.get("admissionReviewVersions");
                !versions.is_void() && !is_understood(&versions)
            }),
            same_names: (1..names.len()).any(|at| names[..at].contains(&names[at])),
            same_conditions: old.is_some_and(|old| conditions(old) == conditions(new)),
        }
    }
}

fn is_understood(versions: &Field<'_>) -> bool {
    versions
        .items()
        .any(|version| REVIEWS.contains(&version.text()))
}

fn check(context: &Context<'_>, rules: Rules, causes: &mut Causes) {
    let hooks = context.get("webhooks");
    let options = Options::new(&hooks, context.old("webhooks").as_ref());
    let mut seen = HashSet::new();
    for hook in hooks.items() {
        check_hook(&hook, rules, options, causes);
        let name = hook.get("name");
        if !options.same_names && !name.is_void() {
            causes.check_unique(&name, &mut seen);
        }
    }
}

fn check_hook(hook: &Field<'_>, own: Rules, options: Options, causes: &mut Causes) {
    // `validateValidatingWebhook` and `validateMutatingWebhook`, which differ in the reinvocation policy only.
    check_name(&hook.get("name"), causes);
    for rule in hook.get("rules").items() {
        rules::check(&rule, causes);
    }
    rule::check(hook, POLICIES, causes);
    check_side_effects(&hook.get("sideEffects"), options, causes);
    let timeout = hook.get("timeoutSeconds");
    if timeout
        .int()
        .is_some_and(|seconds| !(1..=30).contains(&seconds))
    {
        let detail = "the timeout value must be between 1 and 30 seconds";
        causes.invalid(&timeout, detail);
    }
    for name in SELECTORS {
        labels::check_selector(&hook.get(name), options.selector, causes);
    }
    rule::check(hook, own, causes);
    address::check(&hook.get("clientConfig"), causes);
    if !options.same_conditions {
        conditions::check(&hook.get("matchConditions"), false, causes);
    }
    check_reviews(&hook.get("admissionReviewVersions"), options, causes);
}

fn check_name(at: &Field<'_>, causes: &mut Causes) {
    if !causes.check_given(at, "") {
        return;
    }
    let broken = formats::dns_subdomain(at.text());
    if !broken.is_empty() {
        causes.invalid(at, &broken.join(","));
    // Three segments make it unlikely that two vendors choose the same name.
    } else if at.text().split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        causes.invalid(at, detail);
    }
}

fn check_side_effects(at: &Field<'_>, options: Options, causes: &mut Causes) {
    let allowed: &[&str] = if options.side_effects {
        // The last two were allowed in v1beta1.
        &["None", "NoneOnDryRun", "Some", "Unknown"]
    } else {
        HARMLESS
    };
    if at.is_set() {
        causes.check_supported(at, allowed);
    } else {
        causes.required(at, &format!("must specify one of {}", allowed.join(", ")));
    }
}

fn check_reviews(versions: &Field<'_>, options: Options, causes: &mut Causes) {
    let known = REVIEWS.join(", ");
    if !causes.check_given(versions, &format!("must specify one of {known}")) {
        return;
    }
    let mut seen = Vec::new();
    for version in versions.items() {
        if seen.contains(&version.text()) {
            causes.invalid(&version, "duplicate version");
            continue;
        }
        seen.push(version.text());
        causes.check_format(&version, formats::dns_1035_label);
    }
    if !options.any_review && !is_understood(versions) {
        causes.invalid(versions, &format!("must include at least one of {known}"));
    }
}

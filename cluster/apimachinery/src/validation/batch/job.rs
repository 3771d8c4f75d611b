//! Jobs.

use super::{failure, job_status, job_update, success};
use crate::validation::apps::check_found;
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::labels::{self, SelectorOptions};
use crate::validation::paths;
use crate::validation::pod;
use crate::validation::rule::{self, Rule, Rules};

pub(in crate::validation) fn job(context: &Context<'_>, causes: &mut Causes) {
    // See `jobStatusStrategy.ValidateUpdate`, which decides what has to be checked.
    if context.updates(Part::Status) {
        job_status::check(context, causes);
        return;
    }
    let (spec, old) = (context.get("spec"), context.old("spec"));
    check_own_labels(context, causes);
    check_spec(&spec, old.as_ref(), causes);
    check_selector(&spec, old.as_ref(), causes);
    check_host_names(context, causes);
    job_update::check(context, causes);
}

/// Checks that the labels are there by which a Job finds its Pods.
fn check_own_labels(context: &Context<'_>, causes: &mut Causes) {
    let spec = context.get("spec");
    // `validateGeneratedSelector`: only a selector that the server has made can be compared.
    if spec.is_true("manualSelector") || !spec.has("selector") {
        return;
    }
    let metadata = context.get("metadata");
    let (uid, name) = (metadata.text_of("uid"), metadata.text_of("name"));
    let pods = spec.get("template").get("metadata").get("labels");
    let old = context
        .old("spec")
        .map(|old| old.get("template").get("metadata").get("labels"));
    let long = [
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
    ];
    // Jobs from before the labels had a prefix keep the short ones only.
    let with_long = old.is_none_or(|old| long.iter().all(|label| old.has(label)));
    let mut expected = serde_json::Map::new();
    for (label, value) in [
        ("controller-uid", uid),
        ("job-name", name),
        (long[0], uid),
        (long[1], name),
    ] {
        if !with_long && long.contains(&label) {
            continue;
        }
        expected.insert(label.to_owned(), value.into());
        let at = pods.key(label);
        let found = pods.member(label);
        if found.is_null() {
            causes.required(&at, &format!("must be '{value}'"));
        } else if found != value {
            causes.invalid(&at, &format!("must be '{value}'"));
        }
    }
    let expected = serde_json::Value::Object(expected);
    let selector = spec.get("selector");
    if labels::is_selector(&selector) && !labels::selects(&selector, &pods.with(&expected)) {
        causes.invalid(&selector, "`selector` not auto-generated");
    }
}

/// Checks that the selector finds the Pods.
fn check_selector(spec: &Field<'_>, old: Option<&Field<'_>>, causes: &mut Causes) {
    let selector = spec.get("selector");
    let was_odd = |old: &Field<'_>| labels::has_odd_values(&old.get("selector"));
    let options = SelectorOptions {
        any_values: old.is_some_and(was_odd),
    };
    if !selector.is_set() {
        causes.required(&selector, "");
    }
    labels::check_selector(&selector, options, causes);
    if labels::is_selector(&selector) {
        check_found(&selector, &spec.get("template"), causes);
    }
}

/// Checks that the names of the hosts of Pods with indexes are not too long.
fn check_host_names(context: &Context<'_>, causes: &mut Causes) {
    let spec = context.get("spec");
    let completions = spec.int_of("completions").unwrap_or(0);
    if spec.text_of("completionMode") != "Indexed" || completions <= 0 {
        return;
    }
    let name = context.get("metadata").get("name");
    // The longest host name is that of the last index.
    let last = format!("{}-{}", name.text(), completions - 1);
    if !formats::dns_label(&last).is_empty() {
        let detail = format!("will not able to create pod with invalid DNS label: {last}");
        causes.invalid_as(&name, name.text(), &detail);
    }
}

const SPEC: Rules = &[(
    "parallelism completions activeDeadlineSeconds backoffLimit ttlSecondsAfterFinished \
     backoffLimitPerIndex maxFailedIndexes",
    Rule::NotNegative,
)];

/// Checks a spec that may replace another.
pub(super) fn check_spec(spec: &Field<'_>, old: Option<&Field<'_>>, causes: &mut Causes) {
    rule::check(spec, SPEC, causes);
    if spec.has("maxFailedIndexes") && !spec.has("backoffLimitPerIndex") {
        let detail = "when maxFailedIndexes is specified";
        causes.required(&spec.get("backoffLimitPerIndex"), detail);
    }
    let manager = spec.get("managedBy");
    if manager.is_set() {
        paths::check_domain_prefixed(&manager, causes);
        if manager.text().len() > 63 {
            causes.too_long(&manager, 63);
        }
    }
    check_mode(spec, causes);
    failure::check(spec, causes);
    success::check(spec, causes);
    check_replacement(spec, causes);
    let was = old.map(|old| old.get("template"));
    pod::check_template(&spec.get("template"), was.as_ref(), causes);
    check_restarts(spec, causes);
}

/// Checks the members that depend on whether the Pods have indexes.
fn check_mode(spec: &Field<'_>, causes: &mut Causes) {
    let mode = spec.get("completionMode");
    match mode.text() {
        "Indexed" => check_indexed(spec, causes),
        "NonIndexed" => check_not_indexed(spec, causes),
        // A nil pointer is the default mode; an empty text is no mode.
        _ if !mode.is_set() => check_not_indexed(spec, causes),
        _ => causes.unsupported(&mode, &["NonIndexed", "Indexed"]),
    }
}

fn check_not_indexed(spec: &Field<'_>, causes: &mut Causes) {
    for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
        let at = spec.get(name);
        if at.is_set() {
            causes.invalid(&at, "requires indexed completion mode");
        }
    }
}

fn check_indexed(spec: &Field<'_>, causes: &mut Causes) {
    let (failed, parallel) = (spec.get("maxFailedIndexes"), spec.get("parallelism"));
    let completions = spec.int_of("completions");
    if completions.is_none() {
        causes.required(&spec.get("completions"), "when completion mode is Indexed");
    }
    // `maxParallelismForIndexedJob` and `maxFailedIndexesForIndexedJob`: the status names indexes in a text, which
    // must stay short.
    let condition = " when completion mode is Indexed";
    check_most(&parallel, 100_000, condition, causes);
    let most = completions.unwrap_or(i64::MAX);
    if failed.int().is_some_and(|number| number > most) {
        causes.invalid(&failed, "must be less than or equal to completions");
    }
    check_most(&failed, 100_000, "", causes);
    if completions.is_some_and(|count| count > 100_000) && spec.has("backoffLimitPerIndex") {
        if !failed.is_set() {
            let detail = "must be specified when completions is above 100000";
            causes.required(&failed, detail);
        }
        let condition = " when completions are above 100000 and used with backoff limit per index";
        // With many indexes, the failed ones are scattered, and the text grows faster.
        check_most(&parallel, 10_000, condition, causes);
        check_most(&failed, 10_000, condition, causes);
    }
}

/// Checks that a number is not above a limit.
fn check_most(at: &Field<'_>, most: i64, condition: &str, causes: &mut Causes) {
    if at.int().is_some_and(|number| number > most) {
        let detail = format!("must be less than or equal to {most}{condition}");
        causes.invalid(at, &detail);
    }
}

fn check_replacement(spec: &Field<'_>, causes: &mut Causes) {
    let policy = spec.get("podReplacementPolicy");
    if !policy.is_set() {
        return;
    }
    let supported: &[&str] = if spec.has("podFailurePolicy") {
        // A policy about failures must see how a Pod has ended, so a replacement cannot come earlier.
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    causes.check_supported(&policy, supported);
}

fn check_restarts(spec: &Field<'_>, causes: &mut Causes) {
    let policy = spec.get("template").get("spec").get("restartPolicy");
    match policy.text() {
        // "Always" is the default of Pods, so it counts as not chosen.
        "" | "Always" => causes.required(&policy, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.has("podFailurePolicy") => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            causes.invalid(&policy, detail);
        }
        "OnFailure" | "Never" => {}
        _ => causes.unsupported(&policy, &["OnFailure", "Never"]),
    }
}

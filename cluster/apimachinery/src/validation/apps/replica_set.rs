//! ReplicaSets.

use super::template;
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::labels;
use crate::validation::pod;
use crate::validation::rule::{self, Rule, Rules};
use crate::validation::structs;

pub(in crate::validation) fn replica_set(context: &Context<'_>, causes: &mut Causes) {
    if context.updates(Part::Status) {
        check_status(context, causes);
        return;
    }
    let spec = context.get("spec");
    rule::check(&spec, COUNTS, causes);
    check_pods(context, causes);
    if let Some(old) = context.old("spec") {
        causes.check_immutable_selector(&spec.get("selector"), &old.get("selector"));
    }
}

const COUNTS: Rules = &[("replicas minReadySeconds", Rule::NotNegative)];

/// Checks how Pods are found, and their template.
pub(super) fn check_pods(context: &Context<'_>, causes: &mut Causes) {
    let spec = context.get("spec");
    let (selector, pods) = (spec.get("selector"), spec.get("template"));
    // `ValidateReplicaSetSpec` says "deployment" as well.
    template::check_selector(&selector, "deployment", causes);
    if !labels::is_selector(&selector) {
        let shown = structs::selector(selector.value());
        causes.invalid_struct(&selector, &shown, "invalid label selector");
        // Without a selector the template is not checked at all, so its errors appear in a second attempt.
        return;
    }
    template::check_found(&selector, &pods, causes);
    let old = context.old("spec").map(|old| old.get("template"));
    pod::check_template(&pods, old.as_ref(), causes);
    template::check_runs_on(&pods, "ReplicaSet", causes);
}

const STATUS: Rules = &[(
    "replicas fullyLabeledReplicas readyReplicas availableReplicas observedGeneration \
     terminatingReplicas",
    Rule::NotNegative,
)];

fn check_status(context: &Context<'_>, causes: &mut Causes) {
    let status = context.get("status");
    rule::check(&status, STATUS, causes);
    let counts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    template::check_counts(&status, &counts, causes);
    template::check_available(&status, "readyReplicas", causes);
}

//! DaemonSets.

use super::{share, template};
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::labels::{self, SelectorOptions};
use crate::validation::pod;
use crate::validation::rule::{self, Rule, Rules};
use crate::validation::structs;

const READY: Rules = &[("minReadySeconds", Rule::NotNegative)];
const HISTORY: Rules = &[("revisionHistoryLimit", Rule::NotNegative)];

pub(in crate::validation) fn daemon_set(context: &Context<'_>, causes: &mut Causes) {
    // `ValidateDaemonSetStatusUpdate`.
    if context.updates(Part::Status) {
        rule::check(&context.get("status"), STATUS, causes);
        template::check_collisions(context, causes);
        return;
    }
    let (spec, old) = (context.get("spec"), context.old("spec"));
    let (selector, pods) = (spec.get("selector"), spec.get("template"));
    // Unlike in a Deployment, the selector here could once have values that are no labels.
    let was_odd = |old: &Field<'_>| labels::has_odd_values(&old.get("selector"));
    let options = SelectorOptions {
        any_values: old.as_ref().is_some_and(was_odd),
    };
    labels::check_selector(&selector, options, causes);
    if labels::is_selector(&selector) {
        template::check_found(&selector, &pods, causes);
    }
    if selector.is_set() {
        template::check_not_empty(&selector, "daemonset", causes);
    }
    let was = old.as_ref().map(|old| old.get("template"));
    pod::check_template(&pods, was.as_ref(), causes);
    template::check_runs_on(&pods, "DaemonSet", causes);
    rule::check(&spec, READY, causes);
    check_strategy(&spec.get("updateStrategy"), causes);
    rule::check(&spec, HISTORY, causes);
    if let Some(old) = old {
        causes.check_immutable_selector(&selector, &old.get("selector"));
    }
}

fn check_strategy(strategy: &Field<'_>, causes: &mut Causes) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.text_of("type") {
        "OnDelete" => {}
        // Defaults make it, so it can only be missing in an object that was not defaulted.
        "RollingUpdate" if !rolling.is_set() => causes.required(&rolling, ""),
        "RollingUpdate" => check_rolling(&rolling, causes),
        _ => {
            let shown = structs::shown(strategy.value(), share::STRATEGY);
            causes.unsupported_text(strategy, &shown, &["RollingUpdate", "OnDelete"]);
        }
    }
}

fn check_rolling(rolling: &Field<'_>, causes: &mut Causes) {
    let (missing, more) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    share::check_share(&missing, causes);
    share::check_share(&more, causes);
    match (share::is_zero(&missing), share::is_zero(&more)) {
        (false, false) => {
            // `ValidateRollingUpdateDaemonSet`: a node has at most one of both, either a Pod too many or one too few.
            causes.invalid(&more, "may not be set when maxUnavailable is non-zero");
        }
        (true, true) => causes.required(&missing, "cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}

const STATUS: Rules = &[(
    "currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady \
     observedGeneration updatedNumberScheduled numberAvailable numberUnavailable collisionCount",
    Rule::NotNegative,
)];

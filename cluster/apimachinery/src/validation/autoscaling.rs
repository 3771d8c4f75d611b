//! HorizontalPodAutoscalers, in the form of version 2.

use super::causes::Causes;
use super::context::{Context, Part};
use super::field::Field;
use super::rule::{self, Rule, Rules};
use super::{formats, resources};

pub(super) fn autoscaler(context: &Context<'_>, causes: &mut Causes) {
    // `ValidateHorizontalPodAutoscalerStatusUpdate`.
    if context.updates(Part::Status) {
        let status = context.get("status");
        let counts = &[("currentReplicas desiredReplicas", Rule::NotNegative)];
        rule::check(&status, counts, causes);
        return;
    }
    let (spec, old) = (context.get("spec"), context.old("spec"));
    check_bounds(&spec, old.as_ref(), causes);
    let target = spec.get("scaleTargetRef");
    // References without a group worked for years, so an unchanged kind is not checked. The core group has only one
    // kind that can be scaled.
    let group = match old.as_ref().map(|old| old.get("scaleTargetRef")) {
        Some(old) if has_same_kind(&old, &target) => Group::Unchecked,
        _ if target.text_of("kind") == "ReplicationController" => Group::Optional,
        _ => Group::Needed,
    };
    check_reference(&target, group, causes);
    let was_wrong = old.as_ref().is_some_and(has_wrong_metrics);
    let group = if was_wrong {
        Group::Unchecked
    } else {
        Group::Optional
    };
    let metrics = spec.get("metrics");
    for metric in metrics.items() {
        check_metric(&metric, group, causes);
    }
    // With no Pods there is nothing to measure, so only metrics from elsewhere can scale up from zero.
    let counts_others = |each: Field<'_>| matches!(each.text_of("type"), "Object" | "External");
    if spec.int_of("minReplicas") == Some(0) && !metrics.items().any(counts_others) {
        let detail = "must specify at least one Object or External metric to support scaling to zero \
            replicas";
        causes.forbidden(&metrics, detail);
    }
    let target = spec.get("targetCPUUtilizationPercentage");
    if target.int().is_some_and(|percent| percent < 1) {
        // In version 1, which is checked as the metric that it stands for.
        let of_metric = metrics
            .item_as(0, target.value())
            .get("resource")
            .get("target");
        let at = of_metric.get("averageUtilization").with(target.value());
        causes.invalid(&at, "must be greater than 0");
    }
    let behavior = spec.get("behavior");
    for name in ["scaleUp", "scaleDown"] {
        check_rules(&behavior.get(name), causes);
    }
}

fn check_bounds(spec: &Field<'_>, old: Option<&Field<'_>>, causes: &mut Causes) {
    let (least, most) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    let had_none = old.is_some_and(|old| old.int_of("minReplicas") == Some(0));
    // Zero is behind a feature gate that is off; an object that has it may keep it.
    let lowest = i64::from(!had_none);
    if least.int().is_some_and(|number| number < lowest) {
        causes.invalid(
            &least,
            &format!("must be greater than or equal to {lowest}"),
        );
    }
    // No pointer in Go, so a missing one is zero.
    let limit = most.int().unwrap_or(0);
    if limit == 0 {
        causes.required(&most, "must be set and greater than 0");
    } else if limit < 0 {
        causes.invalid(&most, "must be greater than or equal to 1");
    }
    if least.int().is_some_and(|least| limit < least) {
        causes.invalid_as(
            &most,
            limit,
            "must be greater than or equal to `minReplicas`",
        );
    }
}

/// The rule for the API version in a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Needed,
    Optional,
    Unchecked,
}

fn has_same_kind(one: &Field<'_>, other: &Field<'_>) -> bool {
    ["apiVersion", "kind"]
        .iter()
        .all(|name| one.text_of(name) == other.text_of(name))
}

fn has_wrong_metrics(spec: &Field<'_>) -> bool {
    let is_wrong = |metric: Field<'_>| {
        let object = metric.get("object").get("describedObject");
        metric.text_of("type") == "Object" && object.text_of("apiVersion").matches('/').count() > 1
    };
    spec.get("metrics").items().any(is_wrong)
}

const REFERENCE: Rules = &[("kind name", Rule::Name(formats::path_segment))];

fn check_reference(at: &Field<'_>, group: Group, causes: &mut Causes) {
    rule::check(at, REFERENCE, causes);
    let version = at.get("apiVersion");
    if group == Group::Unchecked {
        return;
    }
    // `ValidateAPIVersion`; in `/v1` the group is there, and empty.
    let parts: Vec<&str> = version.text().split('/').collect();
    if parts.len() > 2 {
        let detail = format!("unexpected GroupVersion string: {}", version.text());
        causes.invalid(&version, &detail);
    } else if group == Group::Needed && (parts.len() == 1 || parts[0].is_empty()) {
        let detail = "apiVersion must specify API group";
        causes.invalid_as(&version, version.text(), detail);
    }
}

/// The members of a metric in the order of the checks, with their types.
const SOURCES: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

const TYPES: [&str; 5] = [
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];

fn check_metric(metric: &Field<'_>, group: Group, causes: &mut Causes) {
    let kind = metric.get("type");
    if kind.is_void() {
        causes.required(&kind, "must specify a metric source type");
    }
    let expected = SOURCES.iter().find(|(_, each)| *each == kind.text());
    if expected.is_none() {
        // Go says so before it looks at the source, and once more behind that.
        causes.unsupported_as(&kind, kind.text(), &TYPES);
    }
    let given = metric.given(&SOURCES.map(|(name, _)| name));
    // `validateMetricSpec` checks the first source that is there, whatever the type says, and reports the others
    // below.
    if let Some(first) = given.first() {
        let (name, _) = SOURCES
            .iter()
            .find(|(name, _)| name == first)
            .unwrap_or(&SOURCES[0]);
        check_source(name, &metric.get(name), group, causes);
    }
    match expected {
        Some((name, _)) if !metric.has(name) => {
            let detail = "must populate information for the given metric source";
            causes.required(&metric.get(name), detail);
        }
        Some(_) => {}
        None => causes.unsupported_as(&kind, kind.text(), &TYPES),
    }
    if given.len() > 1 {
        let others = SOURCES.iter().filter(|source| Some(*source) != expected);
        for (name, _) in others.filter(|(name, _)| metric.has(name)) {
            let detail = "must populate the given metric source only";
            causes.forbidden(&metric.get(name), detail);
        }
    }
}

fn check_source(name: &str, source: &Field<'_>, group: Group, causes: &mut Causes) {
    let target = source.get("target");
    match name {
        "object" => check_reference(&source.get("describedObject"), group, causes),
        "resource" => {
            causes.check_given(&source.get("name"), "must specify a resource name");
        }
        "containerResource" => {
            let resource = source.get("name");
            if causes.check_given(&resource, "must specify a resource name") {
                resources::check_container_name(&resource, resource.text(), causes);
            }
            let container = source.get("container");
            if causes.check_given(&container, "must specify a container") {
                causes.check_format(&container, formats::dns_label);
            }
        }
        _ => {}
    }
    // `validateMetricIdentifier`; resources have a name only.
    if !matches!(name, "resource" | "containerResource") {
        let metric = source.get("metric").get("name");
        if causes.check_given(&metric, "must specify a metric name") {
            causes.check_format(&metric, formats::path_segment);
        }
    }
    check_target(&target, causes);
    check_amounts(name, &target, causes);
}

/// Checks which amounts a target has.
fn check_amounts(name: &str, target: &Field<'_>, causes: &mut Causes) {
    let (value, average) = (target.get("value"), target.get("averageValue"));
    let share = target.get("averageUtilization");
    match name {
        "object" if !value.is_set() && !average.is_set() => {
            causes.required(&average, "must set either a target value or averageValue");
        }
        "external" if !value.is_set() && !average.is_set() => {
            let detail = "must set either a target value for metric or a per-pod target";
            causes.required(&average, detail);
        }
        // An object metric may have both, and its average wins.
        "external" if value.is_set() && average.is_set() => {
            let detail = "may not set both a target value for metric and a per-pod target";
            causes.forbidden(&value, detail);
        }
        "pods" if !average.is_set() => {
            causes.required(&average, "must specify a positive target averageValue");
        }
        "resource" | "containerResource" if !share.is_set() && !average.is_set() => {
            let detail = "must set either a target raw value or a target utilization";
            causes.required(&share, detail);
        }
        "resource" | "containerResource" if share.is_set() && average.is_set() => {
            let detail = "may not set both a target raw value and a target utilization";
            causes.forbidden(&average, detail);
        }
        _ => {}
    }
}

fn check_target(target: &Field<'_>, causes: &mut Causes) {
    let kind = target.get("type");
    // `validateMetricTarget` reports a missing type twice: as required, and as none of the three.
    causes.check_given(&kind, "must specify a metric target type");
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        causes.invalid_as(&kind, kind.text(), detail);
    }
    for name in ["value", "averageValue"] {
        let at = target.get(name);
        let amount = resources::amount(&at);
        if at.is_set() && amount <= crate::quantity::Quantity::ZERO {
            causes.invalid_as(&at, amount.to_string(), "must be positive");
        }
    }
    let share = target.get("averageUtilization");
    if share.int().is_some_and(|share| share < 1) {
        causes.invalid(&share, "must be greater than 0");
    }
}

const POLICIES: [&str; 3] = ["Disabled", "Max", "Min"];

fn check_rules(rules: &Field<'_>, causes: &mut Causes) {
    if !rules.is_set() {
        return;
    }
    let window = rules.get("stabilizationWindowSeconds");
    match window.int() {
        Some(..0) => causes.invalid(&window, "must be greater than or equal to zero"),
        // `MaxStabilizationWindowSeconds`.
        Some(3601..) => causes.invalid(&window, "must be less than or equal to 3600"),
        _ => {}
    }
    rule::check(
        rules,
        &[("selectPolicy", Rule::SupportedIfSet(&POLICIES))],
        causes,
    );
    let policies = rules.get("policies");
    causes.check_given(&policies, "must specify at least one Policy");
    for policy in policies.items() {
        causes.check_supported(&policy.get("type"), &["Percent", "Pods"]);
        let (value, period) = (policy.get("value"), policy.get("periodSeconds"));
        for at in [&value, &period] {
            let number = at.int().unwrap_or(0);
            if number <= 0 {
                causes.invalid_as(at, number, "must be greater than zero");
            }
        }
        // `MaxPeriodSeconds`.
        if period.int().is_some_and(|seconds| seconds > 1800) {
            causes.invalid(&period, "must be less than or equal to 1800");
        }
    }
    if rules.has("tolerance") {
        resources::check_not_negative(&rules.get("tolerance"), causes);
    }
}

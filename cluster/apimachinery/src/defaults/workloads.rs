//! Defaults of workloads.

use serde_json::{Value, json};

use super::members::{each, has, inner, made, set, set_text, text};
use super::{amounts, others, pod};
use crate::object::{Object, metadata_mut};

/// Fills in the spec of a kind with a Pod template.
fn with_template(object: &mut Object, fill: impl FnOnce(&mut Object)) {
    if let Some(spec) = made(object, "spec") {
        fill(spec);
        pod::template(spec, "template");
    }
}

pub(super) fn deployment(object: &mut Object) {
    with_template(object, |spec| {
        // `SetDefaults_Deployment`.
        set(spec, "replicas", 1);
        set(spec, "revisionHistoryLimit", 10);
        set(spec, "progressDeadlineSeconds", 600);
        if let Some(strategy) = made(spec, "strategy") {
            rolling(
                strategy,
                &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))],
            );
        }
    });
}

/// Fills in a strategy of updates, and its parameters if it is a rolling one.
fn rolling(strategy: &mut Object, parameters: &[(&str, Value)]) {
    set(strategy, "type", "RollingUpdate");
    // The parameters of another strategy are an error, which is validation's.
    if text(strategy, "type") == "RollingUpdate"
        && let Some(update) = made(strategy, "rollingUpdate")
    {
        for (name, value) in parameters {
            set(update, name, value.clone());
        }
    }
}

pub(super) fn replica_set(object: &mut Object) {
    with_template(object, |spec| set(spec, "replicas", 1));
}

pub(super) fn replication_controller(object: &mut Object) {
    let Some(spec) = made(object, "spec") else {
        return;
    };
    set(spec, "replicas", 1);
    // `SetDefaults_ReplicationController`: of all workloads only the oldest one derives its selector.
    if let Some(labels) = labels_of_template(spec) {
        set(spec, "selector", labels);
    }
    // A template is not made: in Go it may be missing.
    if spec.get("template").is_some_and(Value::is_object) {
        pod::template(spec, "template");
    }
    label_as_template(object);
}

fn labels_of_template(spec: &Object) -> Option<Value> {
    let labels = spec.get("template")?.get("metadata")?.get("labels")?;
    Some(labels.clone()).filter(|labels| !labels.is_null())
}

/// Labels an object without labels as its Pods are.
fn label_as_template(object: &mut Object) {
    let labels = inner(object, "spec").and_then(|spec| labels_of_template(spec));
    let metadata = metadata_mut(object);
    if let Some(labels) = labels
        && !has(metadata, "labels")
    {
        metadata.insert("labels".into(), labels);
    }
}

pub(super) fn stateful_set(object: &mut Object) {
    with_template(object, |spec| {
        set(spec, "replicas", 1);
        set(spec, "podManagementPolicy", "OrderedReady");
        set(spec, "revisionHistoryLimit", 10);
        if let Some(strategy) = made(spec, "updateStrategy")
            // Unlike in a Deployment, an explicit type without parameters gets none: `SetDefaults_StatefulSet` makes
            // them only where it sets the type.
            && (!has(strategy, "type") || strategy.contains_key("rollingUpdate"))
        {
            rolling(strategy, &[("partition", json!(0))]);
        }
        if let Some(policy) = made(spec, "persistentVolumeClaimRetentionPolicy") {
            set(policy, "whenDeleted", "Retain");
            set(policy, "whenScaled", "Retain");
        }
        each(spec, "volumeClaimTemplates", |claim| {
            // Claim templates are whole objects, and conversion writes their type.
            set(claim, "apiVersion", "v1");
            set(claim, "kind", "PersistentVolumeClaim");
            others::pending(claim);
            if let Some(spec) = inner(claim, "spec") {
                set(spec, "volumeMode", "Filesystem");
                amounts::round_resources(spec);
            }
        });
    });
}

pub(super) fn daemon_set(object: &mut Object) {
    with_template(object, |spec| {
        set(spec, "revisionHistoryLimit", 10);
        if let Some(strategy) = made(spec, "updateStrategy") {
            rolling(
                strategy,
                &[("maxUnavailable", json!(1)), ("maxSurge", json!(0))],
            );
            // The internal `RollingUpdateDaemonSet` has no pointers, so conversion writes zeros for what other
            // strategies leave out.
            if let Some(update) = inner(strategy, "rollingUpdate") {
                set(update, "maxUnavailable", 0);
                set(update, "maxSurge", 0);
            }
        }
    });
    // The count of templates is written even before the server has counted.
    if let Some(annotations) = made(metadata_mut(object), "annotations") {
        set(annotations, "deprecated.daemonset.template.generation", "0");
    }
}

pub(super) fn job(object: &mut Object) {
    with_template(object, |spec| {
        // `SetDefaults_Job`: with parallelism only, the Job is a work queue without a number of completions.
        if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
            set(spec, "completions", 1);
        }
        set(spec, "parallelism", 1);
        let per_index = spec.contains_key("backoffLimitPerIndex");
        set(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
        set(spec, "completionMode", "NonIndexed");
        set(spec, "suspend", false);
        set(spec, "manualSelector", false);
        failure_policy(spec);
        let replaced = if spec.contains_key("podFailurePolicy") {
            "Failed"
        } else {
            "TerminatingOrFailed"
        };
        set(spec, "podReplacementPolicy", replaced);
    });
    label_as_template(object);
}

/// Fills in that a condition is meant to hold.
fn failure_policy(spec: &mut Object) {
    if let Some(policy) = inner(spec, "podFailurePolicy") {
        each(policy, "rules", |rule| {
            each(rule, "onPodConditions", |condition| {
                set_text(condition, "status", "True");
            });
        });
    }
}

pub(super) fn cron_job(object: &mut Object) {
    let Some(spec) = made(object, "spec") else {
        return;
    };
    set(spec, "concurrencyPolicy", "Allow");
    set(spec, "suspend", false);
    set(spec, "successfulJobsHistoryLimit", 3);
    set(spec, "failedJobsHistoryLimit", 1);
    if let Some(template) = made(spec, "jobTemplate") {
        made(template, "metadata");
        if let Some(spec) = made(template, "spec") {
            // The defaults of a Job itself are set when the CronJob makes one; its template gets only those of its
            // parts.
            failure_policy(spec);
            pod::template(spec, "template");
        }
    }
}

pub(super) fn autoscaler(object: &mut Object) {
    // In version 1 the default of the metric is set in conversion, which sees the annotation.
    let is_v1 = text(object, "apiVersion") == "autoscaling/v1";
    let Some(spec) = made(object, "spec") else {
        return;
    };
    set(spec, "minReplicas", 1);
    if is_v1 {
        // Other metrics are in an annotation.
        let metrics = "autoscaling.alpha.kubernetes.io/metrics";
        let annotations = object.get("metadata").and_then(|it| it.get("annotations"));
        let measures_more =
            annotations.is_some_and(|annotations| annotations.get(metrics).is_some());
        if !measures_more && let Some(spec) = inner(object, "spec") {
            set(spec, "targetCPUUtilizationPercentage", 80);
        }
    } else {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        set(spec, "metrics", json!([cpu]));
        if let Some(behavior) = inner(spec, "behavior") {
            scaling(behavior);
        }
    }
}

/// Sets the default policies of scaling, if the behavior is configured.
fn scaling(behavior: &mut Object) {
    let policy = |kind: &str, value| json!({"type": kind, "value": value, "periodSeconds": 15});
    // `GenerateHPAScaleUpRules` and `GenerateHPAScaleDownRules`: up fast, down slowly.
    let up = [policy("Pods", 4), policy("Percent", 100)];
    let down = [policy("Percent", 100)];
    for (direction, policies) in [("scaleUp", &up[..]), ("scaleDown", &down[..])] {
        if let Some(rules) = made(behavior, direction) {
            set(rules, "selectPolicy", "Max");
            set(rules, "policies", policies);
        }
    }
    // Down has a window too, which is a flag of the controller manager and stays unset.
    if let Some(up) = made(behavior, "scaleUp") {
        set(up, "stabilizationWindowSeconds", 0);
    }
}

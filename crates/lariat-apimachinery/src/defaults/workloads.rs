//! What runs Pods.

use serde_json::json;

use super::members::{each, inner, made, set, text};
use super::pod;
use crate::object::Object;

/// Fills in the spec of a kind with a Pod template.
fn with_template(object: &mut Object, fill: impl FnOnce(&mut Object)) {
    if let Some(spec) = made(object, "spec") {
        fill(spec);
        pod::template(spec, "template");
    }
}

pub(super) fn deployment(object: &mut Object) {
    with_template(object, |spec| {
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
fn rolling(strategy: &mut Object, parameters: &[(&str, serde_json::Value)]) {
    set(strategy, "type", "RollingUpdate");
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
    with_template(object, |spec| {
        set(spec, "replicas", 1);
        let labels = spec
            .get("template")
            .and_then(|t| t.get("metadata")?.get("labels"));
        if let Some(labels) = labels.cloned() {
            set(spec, "selector", labels);
        }
    });
}

pub(super) fn stateful_set(object: &mut Object) {
    with_template(object, |spec| {
        set(spec, "replicas", 1);
        set(spec, "podManagementPolicy", "OrderedReady");
        set(spec, "revisionHistoryLimit", 10);
        if let Some(strategy) = made(spec, "updateStrategy") {
            rolling(strategy, &[("partition", json!(0))]);
        }
        if let Some(policy) = made(spec, "persistentVolumeClaimRetentionPolicy") {
            set(policy, "whenDeleted", "Retain");
            set(policy, "whenScaled", "Retain");
        }
        each(spec, "volumeClaimTemplates", |claim| {
            set(claim, "apiVersion", "v1");
            set(claim, "kind", "PersistentVolumeClaim");
            set(claim, "status", json!({"phase": "Pending"}));
            if let Some(spec) = inner(claim, "spec") {
                set(spec, "volumeMode", "Filesystem");
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
        }
    });
}

pub(super) fn job(object: &mut Object) {
    with_template(object, |spec| {
        if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
            set(spec, "completions", 1);
        }
        set(spec, "parallelism", 1);
        let per_index = spec.contains_key("backoffLimitPerIndex");
        set(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
        set(spec, "completionMode", "NonIndexed");
        set(spec, "suspend", false);
        let replaced = if spec.contains_key("podFailurePolicy") {
            "Failed"
        } else {
            "TerminatingOrFailed"
        };
        set(spec, "podReplacementPolicy", replaced);
    });
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
            pod::template(spec, "template");
        }
    }
}

pub(super) fn autoscaler(object: &mut Object) {
    let is_v1 = text(object, "apiVersion") == "autoscaling/v1";
    let Some(spec) = made(object, "spec") else {
        return;
    };
    set(spec, "minReplicas", 1);
    if !is_v1 {
        let cpu =
            json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}});
        set(
            spec,
            "metrics",
            json!([{"type": "Resource", "resource": cpu}]),
        );
    }
}

//! Pods, and templates of them.

use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use super::parts::{at, is_void};
use crate::strategy::set_condition;

/// A new Pod waits, and its class of service follows from its resources.
pub(super) fn prepare_create(now: &str, object: &mut Object) {
    // A class that the client sent is taken for one that was computed before.
    let sent = at(object, &["status", "qosClass"]).and_then(Value::as_str);
    let class = match sent {
        Some(class) if !class.is_empty() => class.to_owned(),
        _ => class_of_service(object).to_owned(),
    };
    object.insert(
        "status".into(),
        json!({"phase": "Pending", "qosClass": class}),
    );
    if !is_void(at(object, &["spec", "schedulingGates"])) {
        // As applySchedulingGatedCondition.
        let condition = json!({
            "type": "PodScheduled", "status": "False", "lastProbeTime": null, "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        });
        set_condition(object, condition, now);
    }
}

/// Puts back the class of service that a status was sent without.
pub(in crate::strategy) fn keep_class(old: &Object, new: &mut Object) {
    let class = at(old, &["status", "qosClass"]);
    let status = new.get_mut("status").and_then(Value::as_object_mut);
    if let (Some(class), Some(status)) = (class, status)
        && is_void(status.get("qosClass"))
    {
        status.insert("qosClass".into(), class.clone());
    }
}

/// Source: `ComputePodQOS` in `k8s.io/kubernetes/pkg/apis/core/v1/helper/qos`.
fn class_of_service(object: &Object) -> &'static str {
    let lists = ["containers", "initContainers"]
        .iter()
        .filter_map(|name| at(object, &["spec", name])?.as_array());
    // What the Pod as a whole has counts alone.
    let needs: Vec<&Value> = match at(object, &["spec", "resources"]) {
        Some(resources) => vec![resources],
        None => lists.flatten().map(|each| &each["resources"]).collect(),
    };
    let (mut any, mut guaranteed) = (false, true);
    for resources in needs {
        for resource in ["cpu", "memory"] {
            let amount = |kind: &str| {
                let amount = resources[kind].get(resource);
                amount.filter(|amount| **amount != "0")
            };
            let (request, limit) = (amount("requests"), amount("limits"));
            any |= request.is_some() || limit.is_some();
            // A request that is not set is the same as the limit.
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

//! Pods, and templates of them.

use std::collections::{HashMap, VecDeque};

use lariat_apimachinery::object::Object;
use lariat_apimachinery::validation;
use serde_json::{Value, json};

use super::parts::{at, is_void};
use super::profiles;
use crate::strategy::set_condition;

/// A new Pod waits, and its class of service follows from its resources.
pub(super) fn prepare_create(now: &str, object: &mut Object) {
    // A class that the client sent is taken for one that was computed before.
    let sent = at(object, &["status", "qosClass"]).and_then(Value::as_str);
    let class = match sent {
        Some(class) if !class.is_empty() => class.to_owned(),
        _ => {
            let spec = object.get("spec").unwrap_or(&Value::Null);
            validation::quality_of_service(spec).to_owned()
        }
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
    merge_label_keys(object);
    profiles::sync(object);
}

/// Restores parts of a status that were left out although they cannot be removed.
pub(in crate::strategy) fn keep_status(old: &Object, new: &mut Object) {
    keep_class(old, new);
    keep_generations(old, new);
}

/// Restores the generations that a status and its conditions are about.
///
/// Source: `preserveOldObservedGeneration` in `k8s.io/kubernetes/pkg/registry/core/pod`.
fn keep_generations(old: &Object, new: &mut Object) {
    const OBSERVED: &str = "observedGeneration";
    let number = |value: &Value| value[OBSERVED].as_i64().unwrap_or(0);
    let (Some(old), Some(new)) = (old.get("status"), new.get_mut("status")) else {
        return;
    };
    if number(new) == 0 && number(old) != 0 {
        new[OBSERVED] = old[OBSERVED].clone();
    }
    fn kind(condition: &Value) -> &str {
        condition["type"].as_str().unwrap_or_default()
    }
    let mut known: HashMap<&str, VecDeque<&Value>> = HashMap::new();
    for condition in old["conditions"].as_array().into_iter().flatten() {
        let of_kind = known.entry(kind(condition)).or_default();
        of_kind.push_back(condition);
    }
    let conditions = new.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        // There may be several conditions of a type; each takes the generation of one.
        let of_kind = known.get_mut(kind(condition));
        let Some(was) = of_kind.and_then(VecDeque::pop_front) else {
            continue;
        };
        if number(condition) == 0 && number(was) != 0 {
            condition[OBSERVED] = was[OBSERVED].clone();
        }
    }
}

/// Restores the class of service that a status was sent without.
fn keep_class(old: &Object, new: &mut Object) {
    let class = at(old, &["status", "qosClass"]);
    let status = new.get_mut("status").and_then(Value::as_object_mut);
    if let (Some(class), Some(status)) = (class, status)
        && is_void(status.get("qosClass"))
    {
        status.insert("qosClass".into(), class.clone());
    }
}

/// Merges the values that a new Pod has for keys of labels into selectors.
///
/// Source: `mutatePodAffinity` and `mutateTopologySpreadConstraints` in `k8s.io/kubernetes/pkg/registry/core/pod`.
fn merge_label_keys(pod: &mut Object) {
    let labels = at(pod, &["metadata", "labels"]).cloned();
    let labels = labels.unwrap_or_default();
    let Some(spec) = pod.get_mut("spec") else {
        return;
    };
    let constraints = spec.get_mut("topologySpreadConstraints");
    for constraint in constraints
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        merge_keys(constraint, &[("matchLabelKeys", "In")], &labels);
    }
    let kinds = spec.get_mut("affinity").and_then(Value::as_object_mut);
    let kinds = kinds.into_iter().flatten();
    let kinds =
        kinds.filter(|(kind, _)| matches!(kind.as_str(), "podAffinity" | "podAntiAffinity"));
    for affinity in kinds.filter_map(|(_, affinity)| affinity.as_object_mut()) {
        let terms = affinity.values_mut().filter_map(Value::as_array_mut);
        for term in terms.flatten() {
            // Preferred terms have a weight beside the term.
            let term = if term.get("podAffinityTerm").is_some() {
                &mut term["podAffinityTerm"]
            } else {
                term
            };
            let keys = [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")];
            merge_keys(term, &keys, &labels);
        }
    }
}

fn merge_keys(within: &mut Value, keys: &[(&str, &str)], labels: &Value) {
    // No selector selects nothing, and stays so.
    if !within["labelSelector"].is_object() {
        return;
    }
    for (member, operator) in keys {
        let keys = within[*member].as_array().cloned().unwrap_or_default();
        for key in keys.iter().filter_map(Value::as_str) {
            let Some(value) = labels.get(key) else {
                continue;
            };
            let requirement = json!({"key": key, "operator": operator, "values": [value]});
            match &mut within["labelSelector"]["matchExpressions"] {
                Value::Array(known) => known.push(requirement),
                none => *none = json!([requirement]),
            }
        }
    }
}

//! The objects of both versions.

use std::sync::LazyLock;

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_mut};
use lariat_apimachinery::schema::{self, Schema};
use serde_json::{Value, json};

use super::annotation_json::{behavior_of, go_behavior, text_of};
use super::metrics::{newer, older};
use crate::strategy::metadata::copy_member;
use crate::strategy::part::Part;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const TARGET: &str = "targetCPUUtilizationPercentage";
const CURRENT: &str = "currentCPUUtilizationPercentage";

/// The annotations about the spec, of which version 2 has members.
const OF_SPEC: [&str; 2] = [METRICS, BEHAVIOR];

/// The annotations about the status.
const OF_STATUS: [&str; 2] = [CURRENT_METRICS, CONDITIONS];

/// Annotations for tolerances, which are dropped without being read.
const OF_TOLERANCES: [&str; 2] = [
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// Returns whether objects of a resource are autoscalers, of any version.
fn is_autoscaler(resource: &Resource) -> bool {
    !resource.rules.custom
        && (&*resource.group, &*resource.plural) == ("autoscaling", "horizontalpodautoscalers")
}

/// Normalizes the annotations of an autoscaler that a client sent.
///
/// Go converts the object to its internal type and back, so what cannot be read is dropped.
pub(in crate::strategy) fn read(resource: &Resource, object: &mut Object) {
    if !is_autoscaler(resource) {
        return;
    }
    if resource.version == "v1" {
        to_second(object);
        to_first(object);
    } else {
        drop_annotations(object);
    }
}

/// Restores the annotations about fields that a write cannot change.
///
/// In Go these are members of the spec or of the status.
pub(in crate::strategy) fn keep(part: Part, old: Option<&Object>, new: &mut Object) {
    let names = match part {
        Part::Main => OF_STATUS,
        Part::Status => OF_SPEC,
        _ => return,
    };
    let annotations = |object: &Object| {
        let annotations = object.get("metadata")?.get("annotations")?;
        annotations.as_object().cloned()
    };
    let (before, mut now) = (
        old.and_then(annotations).unwrap_or_default(),
        annotations(new).unwrap_or_default(),
    );
    for name in names {
        copy_member(&before, &mut now, name);
    }
    let metadata = metadata_mut(new);
    if now.is_empty() {
        metadata.remove("annotations");
    } else {
        metadata.insert("annotations".into(), now.into());
    }
}

/// Returns an autoscaler of version 1 in version 2, in which it is validated and printed.
pub(crate) fn in_second(resource: &Resource, object: &Object) -> Option<Object> {
    (is_autoscaler(resource) && resource.version == "v1").then(|| {
        let mut object = object.clone();
        to_second(&mut object);
        object
    })
}

/// Makes version 1 of version 2.
pub(crate) fn to_first(object: &mut Object) {
    drop_annotations(object);
    let metrics = take(object, "spec", "metrics");
    let behavior = take(object, "spec", "behavior");
    let current = take(object, "status", "currentMetrics");
    let conditions = take(object, "status", "conditions");
    let (of_cpu, others): (Vec<Value>, Vec<Value>) =
        items(metrics).partition(|metric| cpu(metric, "target").is_some());
    // Further targets of the CPU are lost, as in Go.
    if let Some(percent) = of_cpu.first().and_then(|metric| cpu(metric, "target")) {
        put(object, "spec", TARGET, percent);
    }
    // Unlike the targets, all current values go into the annotation, with that of the CPU among them.
    let current: Vec<Value> = items(current).collect();
    if let Some(percent) = current
        .iter()
        .rev()
        .find_map(|metric| cpu(metric, "current"))
    {
        put(object, "status", CURRENT, percent);
    }
    let conditions: Vec<Value> = items(conditions).map(condition).collect();
    let listed = |metrics: Vec<Value>, word| metrics.iter().map(|each| older(each, word)).collect();
    for (name, value) in [
        (METRICS, Value::Array(listed(others, "target"))),
        (CURRENT_METRICS, Value::Array(listed(current, "current"))),
        (CONDITIONS, conditions.into()),
    ] {
        if value != json!([]) {
            annotate(object, name, text_of(&value));
        }
    }
    if let Some(behavior) = behavior.filter(|behavior| !behavior.is_null()) {
        annotate(object, BEHAVIOR, go_behavior(&behavior));
    }
}

/// Makes version 2 of version 1.
pub(crate) fn to_second(object: &mut Object) {
    let mut metrics = listed_in(object, METRICS, "target").unwrap_or_default();
    if let Some(percent) = take(object, "spec", TARGET).filter(|percent| !percent.is_null()) {
        metrics.push(target_of_cpu(&percent));
    }
    if metrics.is_empty() {
        // `DefaultCPUUtilization`; the default cannot be set where others are, before the annotation is read.
        metrics.push(target_of_cpu(&json!(80)));
    }
    // Version 2 leaves a count of zero out.
    let count = take(object, "status", "currentReplicas");
    if let Some(count) = count.filter(|count| *count != json!(0)) {
        put(object, "status", "currentReplicas", count);
    }
    let percent = take(object, "status", CURRENT).filter(|percent| !percent.is_null());
    // An annotation that can be read has more than the member.
    let current = listed_in(object, CURRENT_METRICS, "current").unwrap_or_else(|| {
        let metric = |percent| {
            let value = json!({"averageUtilization": percent});
            json!({"type": "Resource", "resource": {"name": "cpu", "current": value}})
        };
        percent.map(metric).into_iter().collect()
    });
    let behavior = noted(object, BEHAVIOR).and_then(|noted| behavior_of(&noted));
    let behavior = behavior.and_then(|behavior| fitted("spec", "behavior", behavior));
    let conditions = noted(object, CONDITIONS);
    let conditions = conditions.and_then(|noted| fitted("status", "conditions", noted));
    drop_annotations(object);
    for (part, member, value) in [
        ("spec", "metrics", Value::Array(metrics)),
        ("spec", "behavior", behavior.unwrap_or_default()),
        ("status", "currentMetrics", Value::Array(current)),
        ("status", "conditions", conditions.unwrap_or_default()),
    ] {
        if !value.is_null() && value != json!([]) {
            put(object, part, member, value);
        }
    }
}

/// Returns a condition with a time, which Go writes even where there is none.
fn condition(mut condition: Value) -> Value {
    if let Value::Object(members) = &mut condition {
        members.entry("lastTransitionTime").or_insert(Value::Null);
    }
    condition
}

fn target_of_cpu(percent: &Value) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

/// Returns the CPU utilization in a metric, in percent of what is requested.
fn cpu(metric: &Value, word: &str) -> Option<Value> {
    let resource = metric.get("resource")?;
    let is_cpu = metric["type"] == "Resource" && resource["name"] == "cpu";
    let percent = resource.get(word)?.get("averageUtilization")?;
    (is_cpu && !percent.is_null()).then(|| percent.clone())
}

fn items(list: Option<Value>) -> impl Iterator<Item = Value> {
    let items = match list {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    items.into_iter()
}

fn take(object: &mut Object, part: &str, member: &str) -> Option<Value> {
    object.get_mut(part)?.as_object_mut()?.remove(member)
}

fn put(object: &mut Object, part: &str, member: &str, value: Value) {
    let part = object.entry(part).or_insert_with(|| json!({}));
    if let Value::Object(part) = part {
        part.insert(member.to_owned(), value);
    }
}

fn annotate(object: &mut Object, name: &str, text: String) {
    let annotations = metadata_mut(object)
        .entry("annotations")
        .or_insert_with(|| json!({}));
    if let Value::Object(annotations) = annotations {
        annotations.insert(name.to_owned(), text.into());
    }
}

/// Drops the annotations that a conversion writes.
fn drop_annotations(object: &mut Object) {
    let metadata = metadata_mut(object);
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else {
        return;
    };
    for name in OF_SPEC.iter().chain(&OF_STATUS).chain(&OF_TOLERANCES) {
        annotations.remove(*name);
    }
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

/// Parses an annotation, if it is JSON.
fn noted(object: &Object, name: &str) -> Option<Value> {
    let annotations = object.get("metadata")?.get("annotations")?;
    serde_json::from_str(annotations.get(name)?.as_str()?).ok()
}

/// Returns the metrics in an annotation, if it can be read.
fn listed_in(object: &Object, name: &str, word: &str) -> Option<Vec<Value>> {
    let metrics = match noted(object, name)? {
        Value::Null => Vec::new(),
        Value::Array(metrics) => metrics,
        _ => return None,
    };
    let metrics: Option<Value> = metrics.iter().map(|metric| newer(metric, word)).collect();
    let (part, member) = match word {
        "target" => ("spec", "metrics"),
        _ => ("status", "currentMetrics"),
    };
    Some(items(fitted(part, member, metrics?)).collect())
}

/// Returns a member in the form of its type; `None` if it is of another type.
fn fitted(part: &str, member: &str, value: Value) -> Option<Value> {
    static TYPES: LazyLock<Option<Schema>> =
        LazyLock::new(|| schema::builtin("autoscaling/v2", "HorizontalPodAutoscaler"));
    let mut object = Object::new();
    put(&mut object, part, member, value);
    schema::decode(TYPES.as_ref()?.root(), &mut object).ok()?;
    // An empty list is not kept.
    Some(take(&mut object, part, member).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: &Value) -> Object {
        value.as_object().unwrap().clone()
    }

    fn metrics() -> Value {
        let described = json!({"kind": "Ingress", "name": "i"});
        let selector = json!({"matchLabels": {"a": "b"}});
        json!([
            {"type": "Resource", "resource": {"name": "memory",
                "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
            {"type": "Pods", "pods": {"metric": {"name": "hits", "selector": selector},
                "target": {"type": "AverageValue", "averageValue": "10"}}},
            {"type": "Object", "object": {"metric": {"name": "hits"}, "describedObject": described,
                "target": {"type": "Value", "value": "10"}}},
            {"type": "External", "external": {"metric": {"name": "hits", "selector": selector},
                "target": {"type": "Value", "value": "10"}}},
            {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c",
                "target": {"type": "Utilization", "averageUtilization": 40}}},
            {"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}},
        ])
    }

    #[test]
    fn nothing_is_lost_on_the_way_there_and_back() {
        let current = json!([{"type": "Resource", "resource": {"name": "cpu",
            "current": {"averageUtilization": 30, "averageValue": "100m"}}}]);
        let conditions = json!([{"type": "AbleToScale", "status": "True"}]);
        let second = object(&json!({
            "metadata": {"name": "a", "annotations": {"b": "c"}},
            "spec": {"maxReplicas": 3, "metrics": metrics(),
                "behavior": {"scaleDown": {"selectPolicy": "Disabled"}}},
            "status": {"currentMetrics": current, "conditions": conditions, "desiredReplicas": 1},
        }));
        let mut first = second.clone();
        to_first(&mut first);
        assert_eq!(first["spec"], json!({"maxReplicas": 3, TARGET: 50}));
        assert_eq!(first["status"], json!({"desiredReplicas": 1, CURRENT: 30}));
        let annotations = first["metadata"]["annotations"].as_object().unwrap();
        assert_eq!(annotations.len(), 5);
        to_second(&mut first);
        assert_eq!(first, second);
    }

    #[test]
    fn annotations_say_things_as_version_1_does() {
        let said = json!({"type": "Object", "object": {"metricName": "hits", "targetValue": "10",
            "target": {"kind": "Ingress", "name": "i"}}});
        assert_eq!(older(&metrics()[2], "target"), said);
        let said = json!({"type": "External", "external": {"metricName": "hits",
            "metricSelector": {"matchLabels": {"a": "b"}}, "targetValue": "10"}});
        assert_eq!(older(&metrics()[3], "target"), said);
    }

    #[test]
    fn one_percentage_needs_no_annotation() {
        let first = object(&json!({"metadata": {"name": "a"}, "spec": {TARGET: 80}}));
        let mut second = first.clone();
        to_second(&mut second);
        assert_eq!(second["spec"]["metrics"].as_array().unwrap().len(), 1);
        assert!(second.get("status").is_none());
        to_first(&mut second);
        assert_eq!(second, first);
    }
}

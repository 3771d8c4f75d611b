//! HorizontalPodAutoscalers in their two versions.
//!
//! Version 1 keeps what it has no members for in annotations. Source:
//! `k8s.io/kubernetes/pkg/apis/autoscaling/v1/conversion.go`.

use serde_json::{Map, Value, json};

use lariat_apimachinery::object::{Object, metadata_mut};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const TARGET: &str = "targetCPUUtilizationPercentage";
const CURRENT: &str = "currentCPUUtilizationPercentage";

/// Makes version 1 of version 2.
pub(crate) fn to_first(object: &mut Object) {
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
    if let Some(percent) = current.iter().find_map(|metric| cpu(metric, "current")) {
        put(object, "status", CURRENT, percent);
    }
    let listed = |metrics: Vec<Value>, word| metrics.iter().map(|each| older(each, word)).collect();
    for (name, value) in [
        (METRICS, Value::Array(listed(others, "target"))),
        (CURRENT_METRICS, Value::Array(listed(current, "current"))),
        (BEHAVIOR, behavior.unwrap_or_default()),
        (CONDITIONS, conditions.unwrap_or_default()),
    ] {
        if !value.is_null() && value != json!([]) {
            annotate(object, name, &value);
        }
    }
}

/// Makes version 2 of version 1.
pub(crate) fn to_second(object: &mut Object) {
    let mut metrics = listed_in(object, METRICS, "target");
    if let Some(percent) = take(object, "spec", TARGET) {
        let target = json!({"type": "Utilization", "averageUtilization": percent});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        metrics.push(metric);
    }
    let mut current = listed_in(object, CURRENT_METRICS, "current");
    // An annotation has it already.
    if let Some(percent) = take(object, "status", CURRENT)
        && current.is_empty()
    {
        let value = json!({"averageUtilization": percent});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "current": value}});
        current.push(metric);
    }
    let behavior = noted(object, BEHAVIOR).unwrap_or_default();
    let conditions = noted(object, CONDITIONS).unwrap_or_default();
    for (part, member, value) in [
        ("spec", "metrics", Value::Array(metrics)),
        ("spec", "behavior", behavior),
        ("status", "currentMetrics", Value::Array(current)),
        ("status", "conditions", conditions),
    ] {
        if !value.is_null() && value != json!([]) {
            put(object, part, member, value);
        }
    }
}

/// Returns the CPU utilization in a metric, in percent of what is requested.
fn cpu(metric: &Value, word: &str) -> Option<Value> {
    let resource = metric.get("resource")?;
    let is_cpu = metric["type"] == "Resource" && resource["name"] == "cpu";
    let percent = resource.get(word)?.get("averageUtilization")?;
    (is_cpu && !percent.is_null()).then(|| percent.clone())
}

/// The names of values in annotations, and their members in metrics.
const VALUES: [(&str, &str); 3] = [
    ("AverageUtilization", "averageUtilization"),
    ("AverageValue", "averageValue"),
    ("Value", "value"),
];

/// Returns the member of a metric that its kind is described in.
fn source_name(metric: &Value) -> Option<&'static str> {
    Some(match metric["type"].as_str()? {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return None,
    })
}

/// Returns the name of a value in an annotation.
///
/// Those of objects have no word before the average.
fn flat_name(source: &str, word: &str, value: &str) -> String {
    match (source, value) {
        ("object", "AverageValue") => "averageValue".to_owned(),
        _ => format!("{word}{value}"),
    }
}

/// Writes a metric as annotations do.
fn older(metric: &Value, word: &str) -> Value {
    let mut metric = metric.clone();
    let Some(name) = source_name(&metric) else {
        return metric;
    };
    let Some(Value::Object(source)) = metric.get_mut(name) else {
        return metric;
    };
    let selector = if name == "external" {
        "metricSelector"
    } else {
        "selector"
    };
    if let Some(Value::Object(mut named)) = source.remove("metric") {
        source.extend(
            named
                .remove("name")
                .map(|name| ("metricName".to_owned(), name)),
        );
        source.extend(
            named
                .remove("selector")
                .map(|value| (selector.to_owned(), value)),
        );
    }
    if let Some(Value::Object(mut values)) = source.remove(word) {
        for (flat, member) in VALUES {
            if let Some(value) = values.remove(member) {
                source.insert(flat_name(name, word, flat), value);
            }
        }
    }
    if let Some(described) = source.remove("describedObject") {
        source.insert("target".into(), described);
    }
    metric
}

/// Reads a metric as annotations write it.
fn newer(mut metric: Value, word: &str) -> Value {
    let Some(name) = source_name(&metric) else {
        return metric;
    };
    let Some(Value::Object(source)) = metric.get_mut(name) else {
        return metric;
    };
    if name == "object"
        && let Some(described) = source.remove("target")
    {
        source.insert("describedObject".into(), described);
    }
    let mut named = Map::new();
    named.extend(
        source
            .remove("metricName")
            .map(|name| ("name".to_owned(), name)),
    );
    let selector = if name == "external" {
        "metricSelector"
    } else {
        "selector"
    };
    named.extend(
        source
            .remove(selector)
            .map(|value| ("selector".to_owned(), value)),
    );
    if !named.is_empty() {
        source.insert("metric".into(), named.into());
    }
    let mut values = Map::new();
    for (flat, member) in VALUES {
        if let Some(value) = source.remove(&flat_name(name, word, flat)) {
            values.insert(member.into(), value);
        }
    }
    if word == "target"
        && let Some((flat, _)) = VALUES
            .iter()
            .find(|(_, member)| values.contains_key(*member))
    {
        // Values and types have the same names, except for this one.
        let kind = flat.replace("AverageUtilization", "Utilization");
        values.insert("type".into(), kind.into());
    }
    source.insert(word.into(), values.into());
    metric
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

fn annotate(object: &mut Object, name: &str, value: &Value) {
    let annotations = metadata_mut(object)
        .entry("annotations")
        .or_insert_with(|| json!({}));
    if let Value::Object(annotations) = annotations {
        annotations.insert(name.to_owned(), value.to_string().into());
    }
}

/// Takes an annotation away and returns what it says.
fn noted(object: &mut Object, name: &str) -> Option<Value> {
    let metadata = metadata_mut(object);
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.remove(name)?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    serde_json::from_str(text.as_str()?).ok()
}

fn listed_in(object: &mut Object, name: &str, word: &str) -> Vec<Value> {
    items(noted(object, name))
        .map(|metric| newer(metric, word))
        .collect()
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

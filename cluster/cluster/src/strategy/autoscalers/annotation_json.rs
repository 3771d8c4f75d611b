//! JSON in annotations, as Go writes it.

use lariat_apimachinery::go_text;
use lariat_apimachinery::object::Object;
use serde_json::Value;

/// The members of the types in annotations, in an order that agrees with each of them.
const ORDER: [&str; 30] = [
    "type",
    "status",
    "kind",
    "name",
    "apiVersion",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "target",
    "metricName",
    "metricSelector",
    "targetAverageUtilization",
    "currentAverageUtilization",
    "targetValue",
    "currentValue",
    "targetAverageValue",
    "currentAverageValue",
    "selector",
    "averageValue",
    "container",
    "lastTransitionTime",
    "reason",
    "message",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
];

/// Writes metrics or conditions.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(text_of).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let place = |name: &str| ORDER.iter().position(|each| *each == name);
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| place(name).unwrap_or(ORDER.len()));
            let members: Vec<String> = members
                .into_iter()
                .map(|(name, value)| {
                    let value = match name.as_str() {
                        // A map has its keys in the order of their texts.
                        "matchLabels" => go_text::json(value),
                        _ => text_of(value),
                    };
                    format!("\"{name}\":{value}")
                })
                .collect();
            format!("{{{}}}", members.join(","))
        }
        value => go_text::json(value),
    }
}

/// The members of rules for scaling: in the API, and in Go's internal type, which the annotation has.
const RULES: [(&str, &str); 4] = [
    ("stabilizationWindowSeconds", "StabilizationWindowSeconds"),
    ("selectPolicy", "SelectPolicy"),
    ("policies", "Policies"),
    ("tolerance", "Tolerance"),
];

const POLICY: [(&str, &str); 3] = [
    ("type", "Type"),
    ("value", "Value"),
    ("periodSeconds", "PeriodSeconds"),
];

const DIRECTIONS: [(&str, &str); 2] = [("scaleUp", "ScaleUp"), ("scaleDown", "ScaleDown")];

/// Writes how fast is scaled.
pub(super) fn go_behavior(behavior: &Value) -> String {
    structure(behavior, &DIRECTIONS, |rules| {
        structure(rules, &RULES, |member| match member {
            Value::Array(policies) => {
                let policies = policies.iter();
                let policies: Vec<String> = policies
                    .map(|policy| structure(policy, &POLICY, go_text::json))
                    .collect();
                format!("[{}]", policies.join(","))
            }
            member => go_text::json(member),
        })
    })
}

fn structure(value: &Value, names: &[(&str, &str)], write: impl Fn(&Value) -> String) -> String {
    if value.is_null() {
        return "null".to_owned();
    }
    let members: Vec<String> = names
        .iter()
        .map(|(name, go_name)| format!("\"{go_name}\":{}", write(&value[*name])))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Reads how fast is scaled; `None` if nothing is said about it.
pub(super) fn behavior_of(noted: &Value) -> Option<Value> {
    let mut behavior = renamed(noted, &DIRECTIONS)?;
    for rules in behavior.values_mut() {
        let mut read = renamed(rules, &RULES)?;
        if let Some(policies) = read.get_mut("policies").and_then(Value::as_array_mut) {
            for policy in policies {
                *policy = renamed(policy, &POLICY)?.into();
            }
        }
        *rules = read.into();
    }
    (!behavior.is_empty()).then(|| behavior.into())
}

/// Returns an object with the names of the API, without nulls and members that have no name there.
fn renamed(value: &Value, names: &[(&str, &str)]) -> Option<Object> {
    let members = match value {
        Value::Null => return Some(Object::new()),
        value => value.as_object()?,
    };
    // Go's decoder does not look at the case of names.
    let renamed = members.iter().filter_map(|(found, value)| {
        let (name, _) = names
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(found))?;
        Some(((*name).to_owned(), value.clone()))
    });
    Some(renamed.filter(|(_, value)| !value.is_null()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn behavior_has_the_names_of_the_internal_type() {
        let policy = json!({"type": "Pods", "value": 1, "periodSeconds": 5});
        let behavior = json!({"scaleUp": {"selectPolicy": "Max", "policies": [policy]}});
        let text = go_behavior(&behavior);
        assert_eq!(
            text,
            "{\"ScaleUp\":{\"StabilizationWindowSeconds\":null,\"SelectPolicy\":\"Max\",\"Policies\":[{\"Type\":\"Pods\",\
             \"Value\":1,\"PeriodSeconds\":5}],\"Tolerance\":null},\"ScaleDown\":null}"
        );
        let noted = serde_json::from_str(&text).unwrap();
        assert_eq!(behavior_of(&noted), Some(behavior));
        assert_eq!(behavior_of(&json!({"scaleup": null, "x": 1})), None);
    }
}

//! Label selectors in objects.

use lariat_core::{LabelSelector, Labels};
use serde_json::Value;

use crate::object::Object;

/// Returns whether a `LabelSelector` selects the labels of an object.
///
/// An invalid selector selects nothing; an empty one selects every object.
///
/// ```
/// use lariat_apimachinery::object::Object;
/// use lariat_apimachinery::selector::selects;
/// use serde_json::json;
///
/// let pod = Object::from_iter([("metadata".to_owned(), json!({"labels": {"app": "web"}}))]);
/// assert!(selects(&json!({"matchLabels": {"app": "web"}}), &pod));
/// assert!(!selects(&json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), &pod));
/// ```
#[must_use]
pub fn selects(selector: &Value, object: &Object) -> bool {
    let text = selector_text(selector);
    let parsed = text.and_then(|text| text.parse::<LabelSelector>().ok());
    parsed.is_some_and(|selector| selector.matches(&labels(object)))
}

/// Returns the labels of an object.
#[must_use]
pub fn labels(object: &Object) -> Labels {
    let labels = object
        .get("metadata")
        .and_then(|metadata| metadata.get("labels")?.as_object());
    let pairs = labels.into_iter().flatten();
    pairs
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
        .collect()
}

/// Formats a `LabelSelector`, or a map of labels, as a selector string.
///
/// Requirements are sorted by their keys, and the values of each, as in Go. Returns `None` if it is invalid: no object,
/// an unknown operator, or an expression without a key.
///
/// ```
/// use lariat_apimachinery::selector::selector_text;
/// use serde_json::json;
///
/// let selector = json!({
///     "matchLabels": {"app": "web"},
///     "matchExpressions": [{"key": "tier", "operator": "In", "values": ["b", "a"]}],
/// });
/// assert_eq!(selector_text(&selector).as_deref(), Some("app=web,tier in (a,b)"));
/// ```
#[must_use]
pub fn selector_text(selector: &Value) -> Option<String> {
    let selector = selector.as_object()?;
    // Selectors of Services and ReplicationControllers are maps of labels. An empty object is both, and selects
    // everything.
    let is_plain = selector.values().all(Value::is_string);
    let labels = if is_plain {
        Some(selector)
    } else {
        selector.get("matchLabels").and_then(Value::as_object)
    };
    let mut parts: Vec<(&str, String)> = Vec::new();
    for (key, value) in labels.into_iter().flatten() {
        parts.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let key = expression["key"].as_str()?;
        let mut values: Vec<&str> = expression["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let part = match expression["operator"].as_str()? {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        };
        parts.push((key, part));
    }
    parts.sort_by_key(|(key, _)| *key);
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    Some(parts.join(","))
}

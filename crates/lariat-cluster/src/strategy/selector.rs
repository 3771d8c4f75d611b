//! Label selectors as texts.

use serde_json::Value;

/// Writes a `LabelSelector`, or a plain map of labels, as the text of a selector.
pub(crate) fn selector_text(selector: &Value) -> Option<String> {
    let selector = selector.as_object()?;
    let is_plain = selector.values().all(Value::is_string);
    let labels = if is_plain {
        Some(selector)
    } else {
        selector.get("matchLabels").and_then(Value::as_object)
    };
    let mut parts: Vec<String> = Vec::new();
    for (key, value) in labels.into_iter().flatten() {
        parts.push(format!("{key}={}", value.as_str().unwrap_or_default()));
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let key = expression["key"].as_str()?;
        let values: Vec<&str> = expression["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        parts.push(match expression["operator"].as_str()? {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    Some(parts.join(","))
}

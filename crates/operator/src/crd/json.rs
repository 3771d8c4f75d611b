//! CRDs as JSON: the form in which the API server returns them, and differences.

use serde_json::{Map, Number, Value};

/// Members that the API server omits if they are false, zero or empty.
// The members with `omitempty` in the Go types of versions, printer columns and `JSONSchemaProps`.
const LEFT_OUT: [&str; 12] = [
    "deprecated",
    "description",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "nullable",
    "priority",
    "title",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "$ref",
];

/// Members whose values are the user's, in which nothing is omitted.
const VALUES: [&str; 3] = ["default", "enum", "example"];

/// Members whose own members have arbitrary names.
///
/// A property with the name `nullable` is no keyword, and must not be dropped.
const NAMES: [&str; 4] = [
    "properties",
    "patternProperties",
    "definitions",
    "dependencies",
];

/// Returns a part of a CRD in the form in which the API server returns it.
///
/// It has no nulls, no empty lists and no explicit defaults, and integral numbers are integers.
pub(super) fn normal(value: &Value) -> Value {
    part(value, false)
}

fn part(value: &Value, has_names: bool) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter();
            let kept = members
                .filter(|(name, value)| has_names || !is_nothing(name, value))
                .map(|(name, value)| {
                    // Inside user values nothing is dropped, but numbers are still normalized: the API server does that
                    // everywhere.
                    let value = if !has_names && VALUES.contains(&name.as_str()) {
                        with_numbers(value)
                    } else {
                        part(value, !has_names && NAMES.contains(&name.as_str()))
                    };
                    (name.clone(), value)
                });
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.iter().map(|item| part(item, false)).collect(),
        value => with_numbers(value),
    }
}

fn is_nothing(name: &str, value: &Value) -> bool {
    let is_default = match value {
        Value::Null => return true,
        // A default may be an empty list.
        Value::Array(items) => return items.is_empty() && !VALUES.contains(&name),
        Value::Bool(set) => !set,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        // Other empty objects have a meaning, such as `subresources.status: {}`.
        Value::Object(members) => return members.is_empty() && NAMES.contains(&name),
    };
    is_default && LEFT_OUT.contains(&name)
}

/// Writes integral numbers as integers: the API server does not distinguish them.
fn with_numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(whole(number)),
        Value::Array(items) => items.iter().map(with_numbers).collect(),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| (name.clone(), with_numbers(value)));
            Value::Object(members.collect())
        }
        value => value.clone(),
    }
}

fn whole(number: &Number) -> Number {
    /// The bound below which every integer has its own floating-point value.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT => {
            Number::from(float as i64)
        }
        _ => number.clone(),
    }
}

/// Adds the paths at which two values differ; lists are compared as a whole.
pub(super) fn differences(path: &str, ours: &Value, theirs: &Value, into: &mut Vec<String>) {
    if ours == theirs {
        return;
    }
    let (Some(our), Some(their)) = (ours.as_object(), theirs.as_object()) else {
        into.push(path.to_owned());
        return;
    };
    let mut names: Vec<&String> = our.keys().chain(their.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        // After `normal` there are no nulls, so null stands for a missing member only.
        let [ours, theirs] = [our, their].map(|members| members.get(name).unwrap_or(&Value::Null));
        differences(&format!("{path}.{name}"), ours, theirs, into);
    }
}

/// Returns a member that is an object, if there is one.
pub(super) fn object<'a>(value: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    value.pointer(pointer)?.as_object()
}

/// Returns a member that is a text, or an empty text.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let text = value.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default()
}

/// Returns the elements of a member that is a list, or none.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Returns whether a member is true.
pub(super) fn is_true(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer) == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_api_server_leaves_out_is_no_difference() {
        let ours = json!({
            "schema": {"openAPIV3Schema": {
                "type": "object", "required": [], "nullable": false, "description": "",
                "properties": {"size": {"type": "integer", "minimum": 0.0, "default": []}, "description": {}},
            }},
            "subresources": {"status": {}}, "additionalPrinterColumns": [], "deprecated": false, "served": false,
        });
        let theirs = json!({
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"size": {"type": "integer", "minimum": 0, "default": []}, "description": {}},
            }},
            "subresources": {"status": {}}, "served": false,
        });
        assert_eq!(normal(&ours), normal(&theirs));
        assert_eq!(normal(&theirs), theirs);
    }

    #[test]
    fn differences_are_named_by_their_paths() {
        let mut paths = Vec::new();
        let ours = json!({"a": {"b": 1, "c": [1]}, "d": null});
        let theirs = json!({"a": {"b": 2, "c": [1], "e": 1}});
        differences("spec", &ours, &theirs, &mut paths);
        assert_eq!(paths, ["spec.a.b", "spec.a.e"]);
    }
}

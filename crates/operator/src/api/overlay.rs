//! Carries the changes of a typed value over to the JSON from which it was read.

use serde_json::{Map, Value};

/// Carries the changes between two values over to a third one.
///
/// `before` is `raw` after a round trip through the user's type, and `after` is what the user made of it.
/// Members that the type does not know are missing in both, and are kept. Lists of equal length are compared element by
/// element, unless their elements have other names; other lists are replaced.
pub(super) fn overlay(raw: &mut Value, before: &Value, after: &Value) {
    if before == after {
        return;
    }
    match (raw, before, after) {
        (Value::Object(raw), Value::Object(before), Value::Object(after)) => {
            for name in before.keys().filter(|name| !after.contains_key(*name)) {
                raw.remove(name);
            }
            for (name, after) in after {
                match (raw.get_mut(name), before.get(name)) {
                    (Some(raw), Some(before)) => overlay(raw, before, after),
                    // The type has added a default, such as an empty list, which the user has not changed.
                    (None, Some(before)) if before == after => {}
                    _ => {
                        raw.insert(name.clone(), after.clone());
                    }
                }
            }
        }
        (Value::Array(raw), Value::Array(before), Value::Array(after))
            if is_same_list(raw, before, after) =>
        {
            for (raw, (before, after)) in raw.iter_mut().zip(before.iter().zip(after)) {
                overlay(raw, before, after);
            }
        }
        (raw, _, after) => raw.clone_from(after),
    }
}

/// Returns whether the elements of three lists correspond to each other.
fn is_same_list(raw: &[Value], before: &[Value], after: &[Value]) -> bool {
    let mut pairs = before.iter().zip(after);
    raw.len() == before.len()
        && before.len() == after.len()
        // Most lists are keyed by name: members that the type does not know must not get into another element.
        && pairs.all(|(before, after)| before.get("name") == after.get("name"))
}

/// Returns the JSON merge patch between two values; `None` if they are equal.
pub(super) fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return Some(after.clone());
    };
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    let mut patch: Map<String, Value> = gone.map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in new {
        let changed = match old.get(name) {
            Some(known) => merge_patch(known, value),
            None => Some(value.clone()),
        };
        patch.extend(changed.map(|changed| (name.clone(), changed)));
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_type_does_not_know_stays() {
        for (raw, before, after, expected) in [
            (
                json!({"a": 1, "new": {"x": 1}}),
                json!({"a": 1}),
                json!({"a": 2}),
                json!({"a": 2, "new": {"x": 1}}),
            ),
            (
                json!({"a": 1, "b": 2}),
                json!({"a": 1, "b": 2}),
                json!({"b": 2}),
                json!({"b": 2}),
            ),
            // The type wrote an empty list that was not there.
            (
                json!({"a": 1}),
                json!({"a": 1, "list": []}),
                json!({"a": 2, "list": []}),
                json!({"a": 2}),
            ),
            (
                json!({"list": [{"name": "a", "image": "1", "new": true}]}),
                json!({"list": [{"name": "a", "image": "1"}]}),
                json!({"list": [{"name": "a", "image": "2"}]}),
                json!({"list": [{"name": "a", "image": "2", "new": true}]}),
            ),
            (
                json!({"list": [{"name": "a", "new": true}]}),
                json!({"list": [{"name": "a"}]}),
                json!({"list": [{"name": "b"}]}),
                json!({"list": [{"name": "b"}]}),
            ),
            (
                json!({"list": [1, 2]}),
                json!({"list": [1, 2]}),
                json!({"list": [1]}),
                json!({"list": [1]}),
            ),
            (
                json!({"a": {"b": 1}}),
                json!({"a": {"b": 1}}),
                json!({"a": 1}),
                json!({"a": 1}),
            ),
        ] {
            let mut changed = raw.clone();
            overlay(&mut changed, &before, &after);
            assert_eq!(changed, expected, "{raw}");
        }
    }

    #[test]
    fn a_merge_patch_has_only_what_differs() {
        for (before, after, expected) in [
            (
                json!({"a": 1, "b": {"c": 1, "d": 2}}),
                json!({"a": 1, "b": {"c": 3}}),
                Some(json!({"b": {"c": 3, "d": null}})),
            ),
            (
                json!({"list": [1, 2]}),
                json!({"list": [2]}),
                Some(json!({"list": [2]})),
            ),
            (
                json!({"a": 1}),
                json!({"a": 1, "b": {"c": 1}}),
                Some(json!({"b": {"c": 1}})),
            ),
            (json!({"a": 1}), json!({"a": 1}), None),
        ] {
            assert_eq!(merge_patch(&before, &after), expected, "{before}");
        }
    }
}

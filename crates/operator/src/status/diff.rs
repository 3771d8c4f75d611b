//! Differences between two states of a status, as merge patches.

use serde_json::{Map, Value};

/// Removes members that are null.
///
/// Objects have no nulls, and in a merge patch they would delete members.
pub(super) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                kept.map(|(name, value)| (name, without_nulls(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Returns the merge patch from one state to another, or `None` if they are equal.
///
/// Lists are replaced as a whole. Both states must be without nulls.
pub(super) fn merge_patch(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (from, to) else {
        return (!is_same(from, to)).then(|| to.clone());
    };
    let mut patch = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        // In a merge patch null removes a member.
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        let change = match before.get(name) {
            Some(was) => merge_patch(was, value),
            None => Some(value.clone()),
        };
        if let Some(change) = change {
            patch.insert(name.clone(), change);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Returns `now` with the changes between `before` and `after`.
///
/// `before` is `now` after a round trip through the user's type. Members that the type does not know are missing in it,
/// and are kept, also in elements of lists. A changed element is matched by its `type`, as in conditions, or by its
/// `name`.
pub(super) fn changed(now: &Value, before: &Value, after: &Value) -> Value {
    match (now, before, after) {
        (now, before, after) if is_same(before, after) => now.clone(),
        (Value::Object(now), Value::Object(before), Value::Object(after)) => {
            changed_members(now, before, after)
        }
        (Value::Array(now), Value::Array(before), Value::Array(after))
            if now.len() == before.len() =>
        {
            changed_elements(now, before, after)
        }
        _ => after.clone(),
    }
}

fn changed_members(
    now: &Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Value {
    // A member is removed only if the type knew it before and does not give it now.
    let is_kept = |name: &String| after.contains_key(name) || !before.contains_key(name);
    let kept = now.iter().filter(|(name, _)| is_kept(name));
    let mut members: Map<String, Value> = kept
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, wanted) in after {
        match (now.get(name), before.get(name)) {
            (Some(now), Some(before)) => {
                members.insert(name.clone(), changed(now, before, wanted));
            }
            // A default of the type, which the JSON does not have and the user did not change.
            (None, Some(before)) if is_same(before, wanted) => {}
            _ => {
                members.insert(name.clone(), wanted.clone());
            }
        }
    }
    Value::Object(members)
}

fn changed_elements(now: &[Value], before: &[Value], after: &[Value]) -> Value {
    let mut is_free = vec![true; now.len()];
    let mut take = |is_it: &dyn Fn(&Value) -> bool| {
        let at = (0..now.len()).find(|at| is_free[*at] && is_it(&before[*at]))?;
        is_free[at] = false;
        Some(at)
    };
    // Unchanged elements are matched first. Otherwise a changed one could take the match of another with the same name.
    let mut found: Vec<Option<usize>> = after
        .iter()
        .map(|wanted| take(&|each| is_same(each, wanted)))
        .collect();
    for (wanted, found) in after.iter().zip(&mut found) {
        if found.is_none()
            && let Some(name) = name_of(wanted)
        {
            *found = take(&|each| name_of(each) == Some(name));
        }
    }
    let made = after.iter().zip(found).map(|(wanted, found)| match found {
        Some(at) => changed(&now[at], &before[at], wanted),
        None => wanted.clone(),
    });
    Value::Array(made.collect())
}

/// Returns the value that identifies an element in its list.
fn name_of(element: &Value) -> Option<&str> {
    let name = element.get("type").or_else(|| element.get("name"))?;
    name.as_str()
}

/// Returns whether two values are equal.
///
/// Numbers are compared by value, because the API server writes 1.0 as 1.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, value): (&String, &Value)| {
                other.get(name).is_some_and(|other| is_same(value, other))
            };
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(from: &Value, to: &Value, patch: Option<&Value>) {
        assert_eq!(merge_patch(from, to).as_ref(), patch, "{from} to {to}");
    }

    #[test]
    fn a_patch_has_only_what_differs() {
        for (from, to, patch) in [
            (
                json!({"a": 1, "b": 2}),
                json!({"a": 1, "b": 3}),
                json!({"b": 3}),
            ),
            (json!({"a": 1}), json!({}), json!({"a": null})),
            (json!({}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}})),
            (
                json!({"a": {"b": 1, "c": 2}}),
                json!({"a": {"b": 1, "d": 2}}),
                json!({"a": {"c": null, "d": 2}}),
            ),
            (
                json!({"a": [{"b": 1}, {"c": 2}]}),
                json!({"a": [{"b": 1}]}),
                json!({"a": [{"b": 1}]}),
            ),
            (json!({"a": {"b": 1}}), json!({"a": 1}), json!({"a": 1})),
            (json!({"a": 1}), json!({"a": 1.5}), json!({"a": 1.5})),
            (
                json!({"a": u64::MAX}),
                json!({"a": u64::MAX - 1}),
                json!({"a": u64::MAX - 1}),
            ),
        ] {
            check(&from, &to, Some(&patch));
            check(&to, &to, None);
        }
    }

    #[test]
    fn order_and_the_way_numbers_are_written_do_not_matter() {
        let one = json!({"a": [1, {"b": 2}], "c": 3});
        check(&one, &json!({"c": 3.0, "a": [1.0, {"b": 2.0}]}), None);
    }

    #[test]
    fn nulls_are_taken_out() {
        let value = json!({"a": null, "b": {"c": null}, "d": [{"e": null, "f": 1}, null]});
        assert_eq!(
            without_nulls(value),
            json!({"b": {}, "d": [{"f": 1}, null]})
        );
    }

    #[test]
    fn what_a_type_does_not_know_stays() {
        let known = |kind: &str, status: &str| json!({"type": kind, "status": status});
        let more = |kind: &str, status: &str| json!({"type": kind, "status": status, "weight": 3});
        let list = |elements: [Value; 2]| json!({"conditions": elements});
        let (now, before) = (
            list([more("A", "True"), more("B", "True")]),
            list([known("A", "True"), known("B", "True")]),
        );
        for (after, expected) in [
            (before.clone(), now.clone()),
            (
                list([known("A", "True"), known("B", "False")]),
                list([more("A", "True"), more("B", "False")]),
            ),
            (
                list([known("B", "False"), known("C", "True")]),
                list([more("B", "False"), known("C", "True")]),
            ),
            (
                json!({"conditions": [known("B", "True")]}),
                json!({"conditions": [more("B", "True")]}),
            ),
        ] {
            assert_eq!(changed(&now, &before, &after), expected, "{after}");
        }
        // `size` is a default of the type.
        let (now, before) = (
            json!({"own": 1, "a": 1, "b": 2}),
            json!({"a": 1, "b": 2, "size": 0}),
        );
        let after = json!({"a": 5, "size": 0, "c": 7});
        let expected = json!({"own": 1, "a": 5, "c": 7});
        assert_eq!(changed(&now, &before, &after), expected);
        let lists = [json!([1, 2, 3]), json!([1, 2, 3]), json!([1, 4, 3, 5])];
        assert_eq!(changed(&lists[0], &lists[1], &lists[2]), lists[2]);
    }
}

//! Tests of patches, by applying them on the embedded cluster.

use lariat_apimachinery::go_json;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Applies a patch as an API server does.
fn applied(raw: &Value, patch: &[u8]) -> Value {
    let mut value = raw.clone();
    let operations: Vec<Value> = serde_json::from_slice(patch).unwrap();
    for operation in operations {
        apply(&mut value, &operation);
    }
    value
}

fn apply(value: &mut Value, operation: &Value) {
    let path = operation["path"].as_str().unwrap();
    if path.is_empty() {
        *value = operation["value"].clone();
        return;
    }
    let (parent, name) = path.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/").replace("~0", "~");
    let parent = value.pointer_mut(parent).expect("the parent exists");
    match (operation["op"].as_str().unwrap(), parent) {
        ("remove", Value::Object(members)) => {
            assert!(members.remove(&name).is_some(), "{operation}");
        }
        ("remove", Value::Array(elements)) => {
            elements.remove(name.parse().unwrap());
        }
        ("add", Value::Object(members)) => {
            members.insert(name, operation["value"].clone());
        }
        ("add", Value::Array(elements)) => {
            elements.insert(name.parse().unwrap(), operation["value"].clone());
        }
        ("replace", Value::Object(members)) => {
            assert!(members.contains_key(&name), "{operation}");
            members.insert(name, operation["value"].clone());
        }
        ("replace", Value::Array(elements)) => {
            let index: usize = name.parse().unwrap();
            elements[index] = operation["value"].clone();
        }
        (op, parent) => panic!("{op} at {parent}"),
    }
}

fn check(raw: &Value, before: &Value, after: &Value, expected: &Value) {
    let patch = patch(raw, before, after).unwrap();
    let result = patch.map_or_else(|| raw.clone(), |patch| applied(raw, &patch));
    assert_eq!(result, *expected, "{before} → {after} on {raw}");
}

#[test]
fn fields_that_the_type_does_not_have_stay() {
    let raw = json!({"spec": {"size": 1, "unknown": {"a": 1}}, "more": [1]});
    check(
        &raw,
        &json!({"spec": {"size": 1}}),
        &json!({"spec": {"size": 2, "color": "red"}}),
        &json!({"spec": {"size": 2, "color": "red", "unknown": {"a": 1}}, "more": [1]}),
    );
}

#[test]
fn defaults_of_the_type_are_not_written_unless_they_change() {
    let raw = json!({"spec": {"unknown": 1}});
    let before = json!({"spec": {"size": 0, "on": false}});
    check(&raw, &before, &before, &raw);
    // The field is missing in the raw object, so it is added.
    let after = json!({"spec": {"size": 3, "on": false}});
    let expected = json!({"spec": {"size": 3, "unknown": 1}});
    check(&raw, &before, &after, &expected);
    let raw = json!({});
    check(
        &raw,
        &before,
        &after,
        &json!({"spec": {"size": 3, "on": false}}),
    );
}

#[test]
fn what_is_removed_from_the_value_is_removed_even_if_it_was_missing() {
    let before = json!({"a": 1, "b": {"c": null}});
    check(
        &json!({"a": 1, "x": 2}),
        &before,
        &json!({}),
        &json!({"x": 2}),
    );
    check(&json!({"x": 2}), &before, &json!({}), &json!({"x": 2}));
}

#[test]
fn elements_of_lists_keep_unknown_fields_when_others_come_and_go() {
    let raw = json!({"c": [{"name": "a", "image": "1", "new": 1}, {"name": "b", "image": "1", "new": 2}]});
    let before = json!({"c": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]});
    check(
        &raw,
        &before,
        &json!({"c": [{"name": "s"}, {"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}),
        &json!({"c": [{"name": "s"}, {"name": "a", "image": "1", "new": 1}, {"name": "b", "image": "2", "new": 2}]}),
    );
    check(
        &raw,
        &before,
        &json!({"c": [{"name": "b", "image": "1"}]}),
        &json!({"c": [{"name": "b", "image": "1", "new": 2}]}),
    );
    // Another name is another element.
    check(
        &raw,
        &before,
        &json!({"c": [{"name": "a", "image": "1"}, {"name": "x", "image": "1"}]}),
        &json!({"c": [{"name": "a", "image": "1", "new": 1}, {"name": "x", "image": "1"}]}),
    );
}

#[test]
fn names_with_slashes_and_tildes_are_escaped() {
    let raw = json!({"metadata": {"labels": {"a/b": "1", "c~d": "1"}}});
    let after = json!({"metadata": {"labels": {"a/b": "2", "e~/f": "3"}}});
    check(&raw, &raw, &after, &after);
    let operations = operations::between(&raw, &after);
    let text = serde_json::to_string(&operations).unwrap();
    assert!(text.contains("/metadata/labels/a~1b"), "{text}");
    assert!(text.contains("/metadata/labels/e~0~1f"), "{text}");
    assert!(go_json::syntax_error(text.as_bytes()).is_none());
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4_i64).prop_map(Value::from),
        "[a-c/~]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d/~]{1,2}", inner.clone(), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
            (0..3_u8, inner)
                .prop_map(|(name, value)| json!({"name": name.to_string(), "of": value})),
        ]
    })
}

proptest! {
    #[test]
    fn a_patch_makes_of_the_old_value_the_new_one(old in value(), new in value()) {
        // Without unknown fields, what is carried over is the new value itself.
        let patch = patch(&old, &old, &new).unwrap();
        let result = patch.map_or_else(|| old.clone(), |patch| applied(&old, &patch));
        prop_assert_eq!(result, new);
    }

    #[test]
    fn any_patch_can_be_applied_to_the_raw_object(raw in value(), before in value(), after in value()) {
        if let Some(patch) = patch(&raw, &before, &after).unwrap() {
            applied(&raw, &patch);
        }
    }
}

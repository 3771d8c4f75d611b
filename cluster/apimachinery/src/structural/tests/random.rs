//! Whatever schemas and values there are.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::structural::Structural;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-9.0..9.0_f64).prop_map(Value::from),
        "[a-c0-9.:/ -]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]|metadata|kind|status", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn any_schema() -> impl Strategy<Value = Value> {
    let keyword = prop_oneof![
        Just(json!({})),
        Just(json!({"nullable": true})),
        Just(json!({"minimum": 1, "maximum": 3, "multipleOf": 0})),
        Just(json!({"maxLength": 1, "pattern": "["})),
        Just(json!({"format": "date-time"})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"x-kubernetes-embedded-resource": true})),
        Just(json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]})),
        Just(json!({"x-kubernetes-list-type": "set", "required": ["a"]})),
        Just(
            json!({"x-kubernetes-validations": [{"rule": "self.a < oldSelf.a || size(self) > 1"}]})
        ),
        any_json().prop_map(|value| json!({"default": value})),
        any_json().prop_map(|value| json!({"enum": [value]})),
        any_json().prop_map(|value| json!({"properties": value, "items": 1, "type": [2]})),
    ];
    let kind = prop::sample::select(vec![
        "object", "array", "string", "integer", "number", "boolean",
    ]);
    let leaf = (kind, keyword).prop_map(|(kind, mut schema)| {
        schema["type"] = kind.into();
        schema
    });
    leaf.prop_recursive(4, 32, 4, |inner| {
        let place = prop::sample::select(vec![
            "properties",
            "items",
            "additionalProperties",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
        ]);
        (inner.clone(), place, inner).prop_map(|(mut outer, place, inner)| {
            outer[place] = match place {
                "properties" => json!({"a": inner, "status": inner}),
                "allOf" | "anyOf" | "oneOf" => json!([inner]),
                _ => inner,
            };
            outer
        })
    })
}

proptest! {
    #[test]
    fn no_schema_and_no_value_panics(schema in any_schema(), new in any_json(), old in any_json()) {
        let structural = Structural::compile(&schema);
        let mut value = new.clone();
        structural.prune(&mut value);
        structural.default(&mut value);
        let _ = structural.validate(&value, None, &[]);
        let _ = structural.validate(&new, Some(&old), &[]);
        let _ = structural.validate_status(&new, &old, &[]);
        let _ = Structural::check_defaults(structural.raw(), "schema", true);
        let _ = crate::structural::check_rules(&schema, true);
    }

    #[test]
    fn what_was_pruned_stays_as_it_is(schema in any_schema(), value in any_json()) {
        let structural = Structural::compile(&schema);
        let mut once = value;
        structural.prune(&mut once);
        let mut twice = once.clone();
        prop_assert!(structural.prune(&mut twice).is_empty());
        prop_assert_eq!(&once, &twice);
        structural.default(&mut once);
        let mut again = once.clone();
        structural.default(&mut again);
        prop_assert_eq!(once, again);
    }
}

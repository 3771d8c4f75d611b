//! Lists with keyed or unique elements: short ones against a naive reference, and long ones.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{of_spec, validate};
use crate::structural::Structural;
use crate::structural::fault::shown;

/// How long a list may be that fits a request, or about that.
const LONG: usize = 50_000;

fn list(kind: &str) -> Structural {
    let properties = json!({"k": {"type": "integer"}, "l": {"type": "string"}, "v": {"type": "integer", "maximum": 9}});
    let items = match kind {
        "map" => json!({"type": "object", "properties": properties}),
        _ => json!({"x-kubernetes-preserve-unknown-fields": true}),
    };
    of_spec(&json!({"x": {
        "type": "array", "items": items, "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": ["k", "l"],
    }}))
}

/// The causes a list has whose second appearances are at some places.
fn duplicates(places: impl Iterator<Item = (usize, Value)>) -> Vec<String> {
    let cause = |(at, value)| {
        format!(
            "FieldValueDuplicate spec.x[{at}]: Duplicate value: {}",
            shown(&value)
        )
    };
    places.map(cause).collect()
}

fn second_appearances(elements: &[Value]) -> Vec<String> {
    let is_second = |at: &usize| {
        let before = elements[..*at]
            .iter()
            .filter(|each| **each == elements[*at]);
        before.count() == 1
    };
    let places = (0..elements.len()).filter(is_second);
    duplicates(places.map(|at| (at, elements[at].clone())))
}

fn elements() -> impl Strategy<Value = Vec<Value>> {
    let element = prop::sample::select(vec![
        json!(1),
        json!(1.0),
        json!(-1),
        json!(0.0),
        json!("1"),
        json!(true),
        json!({"a": 1, "b": [2]}),
        json!({"b": [2], "a": 1}),
        json!([1, 2]),
        json!([2, 1]),
        json!({}),
    ]);
    prop::collection::vec(element, 0..12)
}

proptest! {
    #[test]
    fn a_set_has_no_element_twice(elements in elements()) {
        let found = validate(&list("set"), &Value::Array(elements.clone()), None);
        prop_assert_eq!(found, second_appearances(&elements));
    }
}

#[test]
fn a_long_list_is_checked_as_a_short_one_is() {
    for (kind, element) in [
        ("set", &(|at| json!(at)) as &dyn Fn(usize) -> Value),
        ("map", &|at| json!({"k": at, "l": "x"})),
    ] {
        let mut long: Vec<Value> = (0..LONG).map(element).collect();
        let before = Value::Array(long.clone());
        assert!(validate(&list(kind), &before, None).is_empty());
        assert!(validate(&list(kind), &before, Some(&before)).is_empty());
        long.push(element(LONG - 1));
        let expected = duplicates([(LONG, element(LONG - 1))].into_iter());
        let long = Value::Array(long);
        assert_eq!(validate(&list(kind), &long, Some(&before)), expected);
    }
}

#[test]
fn elements_of_a_long_map_are_compared_with_those_of_their_keys() {
    let element = |at: usize, value: i64| json!({"k": at, "l": "x", "v": value});
    // Each is wrong, and was before; the other way round, so that no place helps.
    let old: Vec<Value> = (0..LONG).rev().map(|at| element(at, 10)).collect();
    let mut new: Vec<Value> = (0..LONG).map(|at| element(at, 10)).collect();
    assert!(validate(&list("map"), &json!(new), Some(&json!(old))).is_empty());
    new[7] = element(7, 11);
    let found = validate(&list("map"), &json!(new), Some(&json!(old)));
    let expected = "FieldValueInvalid spec.x[7].v: Invalid value: 11: \
        spec.x[7].v in body should be less than or equal to 9";
    assert_eq!(found, [expected]);
    // Without the old ones all are wrong.
    assert_eq!(validate(&list("map"), &json!(new), None).len(), LONG);
}

#[test]
fn a_list_that_wants_unique_items_is_checked_whatever_its_length() {
    let schema = of_spec(
        &json!({"x": {"type": "array", "uniqueItems": true, "items": {"type": "integer"}}}),
    );
    let mut long: Vec<usize> = (0..LONG).collect();
    assert!(validate(&schema, &json!(long), None).is_empty());
    long.push(0);
    let found = validate(&schema, &json!(long), None);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].ends_with("spec.x in body shouldn't contain duplicates"),
        "{found:?}"
    );
}

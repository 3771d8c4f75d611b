//! Tables of what schemas do.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::Structural;

/// Compiles a schema with the given properties of `spec`.
fn of_spec(properties: &Value) -> Structural {
    Structural::compile(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": properties},
    }}))
}

fn validate(schema: &Structural, value: &Value, old: Option<&Value>) -> Vec<String> {
    let wrap = |value: &Value| json!({"spec": {"x": value}});
    let causes = schema.validate(&wrap(value), old.map(wrap).as_ref());
    let shown = |cause: &crate::api::status::Cause| format!("{} {}", cause.reason(), cause.text());
    causes.iter().map(shown).collect()
}

/// Checks what is said of a value `spec.x`; the field and its colon are left out of what is expected.
fn check(schema: Value, value: Value, expected: &[&str]) {
    let structural = of_spec(&json!({"x": schema}));
    let found = validate(&structural, &value, None);
    assert_eq!(found, expected, "{schema} {value}");
    let tolerated = validate(&structural, &value, Some(&value));
    assert!(
        tolerated.is_empty(),
        "what was there before is tolerated: {tolerated:?}"
    );
}

#[test]
fn types_are_checked() {
    let wrong = |wanted: &str, found: &str| {
        format!(
            "FieldValueTypeInvalid spec.x: Invalid value: {found:?}: spec.x in body must be of type \
             {wanted}: {found:?}"
        )
    };
    for (schema, value, wanted, found) in [
        (json!({"type": "integer"}), json!("1"), "integer", "string"),
        (json!({"type": "integer"}), json!(1.5), "integer", "number"),
        (json!({"type": "string"}), json!(1), "string", "integer"),
        (json!({"type": "boolean"}), json!({}), "boolean", "object"),
        (
            json!({"type": "array", "items": {}}),
            json!(true),
            "array",
            "boolean",
        ),
        (json!({"type": "object"}), json!([]), "object", "array"),
        (json!({"type": "string"}), json!(null), "string", "null"),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(1.5),
            "integer,string",
            "number",
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(1.5),
            "int32",
            "float64",
        ),
    ] {
        check(schema, value, &[&wrong(wanted, found)]);
    }
    check(json!({"type": "integer"}), json!(2.0), &[]);
    check(json!({"type": "number"}), json!(2), &[]);
    check(
        json!({"type": "string", "nullable": true}),
        json!(null),
        &[],
    );
    check(json!({"x-kubernetes-int-or-string": true}), json!("a"), &[]);
    check(
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!([1]),
        &[],
    );
}

#[test]
fn numbers_are_checked() {
    let said = |value: &str, rest: &str| {
        format!("FieldValueInvalid spec.x: Invalid value: {value}: spec.x in body should be {rest}")
    };
    let number = |member: &str, limit: f64| json!({"type": "number", member: limit});
    check(
        number("minimum", 1.0),
        json!(0),
        &[&said("0", "greater than or equal to 1")],
    );
    check(
        number("maximum", 1.5),
        json!(1.75),
        &[&said("1.75", "less than or equal to 1.5")],
    );
    check(
        number("multipleOf", 3.0),
        json!(4),
        &[&said("4", "a multiple of 3")],
    );
    check(number("multipleOf", 0.1), json!(0.3), &[]);
    let exclusive = json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true});
    check(exclusive, json!(0), &[&said("0", "greater than 0")]);
    let exclusive = json!({"type": "integer", "maximum": 9, "exclusiveMaximum": true});
    check(exclusive, json!(9), &[&said("9", "less than 9")]);
}

#[test]
fn texts_are_checked() {
    let text = |member: &str, limit: Value| json!({"type": "string", member: limit});
    check(
        text("maxLength", json!(2)),
        json!("äöü"),
        &["FieldValueTooLong spec.x: Too long: may not be more than 2 bytes"],
    );
    check(text("maxLength", json!(3)), json!("äöü"), &[]);
    check(
        text("minLength", json!(2)),
        json!("a"),
        &[
            "FieldValueInvalid spec.x: Invalid value: \"a\": spec.x in body should be at least 2 chars long",
        ],
    );
    check(
        text("pattern", json!("^[a-z]+$")),
        json!("A"),
        &["FieldValueInvalid spec.x: Invalid value: \"A\": spec.x in body should match '^[a-z]+$'"],
    );
    check(
        text("format", json!("date-time")),
        json!("now"),
        &[
            "FieldValueTypeInvalid spec.x: Invalid value: \"now\": spec.x in body must be of type date-time: \"now\"",
        ],
    );
    check(text("format", json!("made-up")), json!("now"), &[]);
    check(
        text("enum", json!(["a", "b"])),
        json!("c"),
        &[
            "FieldValueNotSupported spec.x: Unsupported value: \"c\": supported values: \"a\", \"b\"",
        ],
    );
}

#[test]
fn lists_and_maps_are_checked() {
    let list = |member: &str, limit: Value| json!({"type": "array", "items": {"type": "integer"}, member: limit});
    check(
        list("maxItems", json!(1)),
        json!([1, 2]),
        &["FieldValueTooMany spec.x: Too many: 2: must have at most 1 item"],
    );
    check(
        list("minItems", json!(1)),
        json!([]),
        &[
            "FieldValueInvalid spec.x: Invalid value: 0: spec.x in body should have at least 1 items",
        ],
    );
    check(
        json!({"type": "array", "items": {"type": "integer", "minimum": 1}}),
        json!([1, 0]),
        &[
            "FieldValueInvalid spec.x[1]: Invalid value: 0: spec.x[1] in body should be greater than or equal to 1",
        ],
    );
    let map =
        json!({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1});
    check(
        map.clone(),
        json!({"a": 1, "b": 2}),
        &["FieldValueTooMany spec.x: Too many: 2: must have at most 1 item"],
    );
    check(
        map,
        json!({"a": "1"}),
        &[
            "FieldValueTypeInvalid spec.x.a: Invalid value: \"string\": spec.x.a in body must be of type integer: \"string\"",
        ],
    );
    check(
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}),
        json!({}),
        &["FieldValueRequired spec.x.a: Required value"],
    );
}

#[test]
fn sets_and_maps_of_lists_have_no_duplicates() {
    let schema = |kind: &str| {
        let items = json!({"type": "object", "properties": {"k": {"type": "string"}}});
        of_spec(&json!({"x": {
            "type": "array", "items": items, "x-kubernetes-list-type": kind,
            "x-kubernetes-list-map-keys": ["k"],
        }}))
    };
    let value = json!([{"k": "a"}, {"k": "b"}, {"k": "a"}, {"k": "a"}]);
    for kind in ["map", "set"] {
        assert_eq!(
            validate(&schema(kind), &value, None),
            ["FieldValueDuplicate spec.x[2]: Duplicate value: {\"k\":\"a\"}"]
        );
        let before = json!([{"k": "z"}, {"k": "z"}]);
        assert!(validate(&schema(kind), &value, Some(&before)).is_empty());
    }
    assert!(validate(&schema("atomic"), &value, None).is_empty());
}

#[test]
fn junctors_are_checked() {
    let whole =
        |text: &str| format!("FieldValueInvalid <nil>: Invalid value: \"\": \"spec.x\" {text}");
    let least = "FieldValueInvalid spec.x: Invalid value: 1: spec.x in body should be greater than or equal to 5";
    let large = json!({"minimum": 5});
    let small = json!({"maximum": 3});
    check(
        json!({"type": "integer", "anyOf": [large]}),
        json!(1),
        &[&whole("must validate at least one schema (anyOf)"), least],
    );
    check(
        json!({"type": "integer", "allOf": [large]}),
        json!(1),
        &[
            least,
            &whole("must validate all the schemas (allOf). None validated"),
        ],
    );
    check(
        json!({"type": "integer", "oneOf": [large]}),
        json!(1),
        &[
            &whole("must validate one and only one schema (oneOf). Found none valid"),
            least,
        ],
    );
    check(
        json!({"type": "integer", "oneOf": [small, {"maximum": 2}]}),
        json!(1),
        &[&whole(
            "must validate one and only one schema (oneOf). Found 2 valid alternatives",
        )],
    );
    check(
        json!({"type": "integer", "not": small}),
        json!(1),
        &[&whole("must not validate the schema (not)")],
    );
    check(
        json!({"type": "integer", "anyOf": [large, small]}),
        json!(1),
        &[],
    );
}

#[test]
fn rules_are_evaluated() {
    let rule =
        |text: &str| json!({"type": "integer", "x-kubernetes-validations": [{"rule": text}]});
    check(rule("self > 1"), json!(2), &[]);
    check(
        rule("self > 1"),
        json!(0),
        &["FieldValueInvalid spec.x: Invalid value: 0: failed rule: self > 1"],
    );
    check(
        rule("10 / self > 1"),
        json!(0),
        &[
            "FieldValueInvalid spec.x: Invalid value: \"integer\": division by zero evaluating rule: 10 / self > 1",
        ],
    );
    let fields = json!({"type": "object", "properties": {
        "a-b": {"type": "string"}, "n": {"type": "number"}, "t": {"type": "string", "format": "date-time"},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
    }});
    for (text, holds) in [
        ("self.a__dash__b == 'x'", true),
        ("self.n + 0.5 == 2.5", true),
        ("self.t < timestamp('2030-01-01T00:00:00Z')", true),
        ("self.m['a-b'] == 'y'", true),
        ("self.m.all(k, k.startsWith('b'))", false),
        ("has(self.none)", false),
        ("quantity('1Gi').isGreaterThan(quantity('1Mi'))", true),
    ] {
        let mut schema = fields.clone();
        schema["x-kubernetes-validations"] = json!([{"rule": text, "message": "no"}]);
        let value = json!({"a-b": "x", "n": 2, "t": "2020-01-01T00:00:00Z", "m": {"a-b": "y"}});
        let found = validate(&of_spec(&json!({"x": schema})), &value, None);
        let expected: &[&str] = match holds {
            true => &[],
            false => &["FieldValueInvalid spec.x: Invalid value: no"],
        };
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn transition_rules_compare_with_what_was_before() {
    let schema = |rule: Value| {
        of_spec(&json!({"x": {"type": "integer", "x-kubernetes-validations": [rule]}}))
    };
    let rising = schema(json!({"rule": "self >= oldSelf", "message": "may only rise"}));
    assert!(validate(&rising, &json!(1), None).is_empty());
    assert!(validate(&rising, &json!(2), Some(&json!(1))).is_empty());
    assert_eq!(
        validate(&rising, &json!(1), Some(&json!(2))),
        ["FieldValueInvalid spec.x: Invalid value: 1: may only rise"]
    );
    let text = "!oldSelf.hasValue() || oldSelf.value() < self";
    let optional = schema(json!({"rule": text, "optionalOldSelf": true, "message": "no"}));
    assert!(validate(&optional, &json!(1), None).is_empty());
    assert!(validate(&optional, &json!(2), Some(&json!(1))).is_empty());
    assert_eq!(
        validate(&optional, &json!(1), Some(&json!(1))),
        ["FieldValueInvalid spec.x: Invalid value: 1: no"]
    );
}

#[test]
fn rules_wait_until_the_object_is_sound() {
    let schema = json!({"x": {
        "type": "integer", "maximum": 5, "enum": [1, 2],
        "x-kubernetes-validations": [{"rule": "self < 0"}],
    }});
    let found = validate(&of_spec(&schema), &json!("a"), None);
    assert!(found[1].starts_with("FieldValueNotSupported"), "{found:?}");
    let last = found.last().unwrap();
    assert!(
        last.starts_with("FieldValueInvalid <nil>: Invalid value: null: some validation rules"),
        "{last}"
    );
}

#[test]
fn embedded_resources_need_a_type() {
    let schema = json!({"x": {
        "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    }});
    assert_eq!(
        validate(&of_spec(&schema), &json!({"kind": "a b"}), None),
        [
            "FieldValueRequired spec.x.apiVersion: Required value: must not be empty".to_owned(),
            format!(
                "FieldValueInvalid spec.x.kind: Invalid value: \"a b\": may have mixed case, but \
                 should otherwise match: {}",
                super::labels::check_dns_1035("a b").unwrap_err()
            ),
        ]
    );
}

#[test]
fn unknown_fields_are_pruned_with_their_paths() {
    let schema = of_spec(&json!({
        "known": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"tight": {"type": "object"}}},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object"}}},
        "no": {"type": "string"},
    }));
    let mut object = json!({
        "apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "bogus": 1}, "z": 1,
        "spec": {
            "known": "k", "b": 1, "list": [{"a": "1"}, {"y": 2}], "map": {"k": {"x": 1}}, "no": null,
            "free": {"any": {"thing": null}, "tight": {"u": 1}},
            "embedded": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "e"}, "spec": {"u": 1}},
        },
    });
    let removed = schema.prune(&mut object);
    let expected = [
        "spec.b",
        "spec.embedded.spec.u",
        "spec.free.tight.u",
        "spec.list[1].y",
        "spec.map.k.x",
        "z",
        "metadata.bogus",
    ];
    assert_eq!(removed, expected);
    let kept = json!({
        "apiVersion": "v1", "kind": "K", "metadata": {"name": "n"},
        "spec": {
            "known": "k", "list": [{"a": "1"}, {}], "map": {"k": {}},
            "free": {"any": {"thing": null}, "tight": {}},
            "embedded": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "e"}, "spec": {}},
        },
    });
    assert_eq!(object, kept);
}

#[test]
fn defaults_fill_what_is_missing_or_null() {
    let schema = of_spec(&json!({
        "a": {"type": "integer", "default": 3},
        "n": {"type": "string", "nullable": true, "default": "n"},
        "sub": {"type": "object", "default": {}, "properties": {"b": {"type": "string", "default": "x"}}},
        "opt": {"type": "object", "properties": {"c": {"type": "string", "default": "y"}}},
        "map": {"type": "object", "additionalProperties": {"type": "integer", "default": 1}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"d": {"default": 1}}}},
    }));
    for (given, full) in [
        (json!({}), json!({"a": 3, "n": "n", "sub": {"b": "x"}})),
        (
            json!({"a": null, "n": null, "sub": {"b": "z"}, "opt": {}, "map": {"k": null}, "list": [{}]}),
            json!({"a": 3, "n": null, "sub": {"b": "z"}, "opt": {"c": "y"}, "map": {"k": 1}, "list": [{"d": 1}]}),
        ),
    ] {
        let mut object = json!({"spec": given});
        schema.prune(&mut object);
        schema.default(&mut object);
        assert_eq!(object["spec"], full);
    }
}

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
        structural.validate(&value, None);
        structural.validate(&new, Some(&old));
        structural.validate_status(&new, &old);
        structural.check_defaults("schema");
        super::check_rules(&schema, true);
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

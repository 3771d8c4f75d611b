//! Tables of what schemas do.

mod lists;
mod prune;
mod random;

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
    let causes = schema.validate(&wrap(value), old.map(wrap).as_ref(), &[]);
    let shown = |cause: &crate::cause::StatusCause| format!("{} {}", cause.reason(), cause.text());
    causes.iter().map(shown).collect()
}

/// Checks the faults of a value `spec.x`.
///
/// Expected texts are without the field and its colon.
fn check(schema: Value, value: Value, expected: &[&str]) {
    let properties: Map<String, Value> = [("x".to_owned(), schema)].into_iter().collect();
    let structural = of_spec(&properties.into());
    let value = &{ value };
    let found = validate(&structural, value, None);
    assert_eq!(found, expected, "{:?} {value}", structural.raw());
    let tolerated = validate(&structural, value, Some(value));
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
    ] {
        check(schema, value, &[&wrong(wanted, found)]);
    }
    let whole = "FieldValueInvalid <nil>: Invalid value: \"\": Checked value must be of type integer (default format) in \
                 spec.x";
    let found = wrong("integer", "number");
    check(json!({"type": "integer"}), json!(1.5), &[&found, whole]);
    let narrow = json!({"type": "integer", "format": "int32"});
    let range = "FieldValueInvalid <nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in \
                 spec.x";
    let found = wrong("int32", "float64");
    check(narrow.clone(), json!(1.5), &[&found, range]);
    check(narrow, json!(1_i64 << 40), &[range]);
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
        map.clone(),
        json!({"a": 1, "b": "2"}),
        &[
            "FieldValueTooMany spec.x: Too many: 2: must have at most 1 item",
            "FieldValueTypeInvalid spec.x.b: Invalid value: \"string\": spec.x.b in body must be of type integer: \"string\"",
        ],
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
fn no_enum_has_null() {
    check(
        json!({"type": "string", "nullable": true, "enum": ["a", null]}),
        Value::Null,
        &[
            "FieldValueNotSupported spec.x: Unsupported value: null: supported values: \"a\", \"null\"",
        ],
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
        let expected: &[&str] = if holds {
            &[]
        } else {
            &["FieldValueInvalid spec.x: Invalid value: no"]
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
fn only_rules_that_do_not_hold_are_tolerated_for_an_unchanged_value() {
    let schema = |rule: &str| {
        let rules = json!([{"rule": rule}]);
        of_spec(&json!({"x": {"type": "integer", "x-kubernetes-validations": rules}}))
    };
    let zero = json!(0);
    assert!(validate(&schema("self > 1"), &zero, Some(&zero)).is_empty());
    for old in [None, Some(&zero)] {
        assert_eq!(
            validate(&schema("10 / self > 1"), &zero, old),
            [
                "FieldValueInvalid spec.x: Invalid value: \"integer\": division by zero evaluating \
                 rule: 10 / self > 1"
            ]
        );
    }
}

#[test]
fn the_old_value_of_a_message_is_no_optional() {
    let rule = json!({
        "rule": "oldSelf.optMap(o, o < self).orValue(true)", "optionalOldSelf": true,
        "messageExpression": "'was ' + string(oldSelf)",
    });
    let schema = of_spec(&json!({"x": {"type": "integer", "x-kubernetes-validations": [rule]}}));
    assert_eq!(
        validate(&schema, &json!(1), Some(&json!(1))),
        ["FieldValueInvalid spec.x: Invalid value: 1: was 1"]
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
            "FieldValueRequired spec.x.apiVersion: Required value".to_owned(),
            format!(
                "FieldValueInvalid spec.x.kind: Invalid value: \"a b\": may have mixed case, but \
                 should otherwise match: {}",
                crate::names::check_dns_1035("a b").unwrap_err()
            ),
        ]
    );
}

#[test]
fn a_status_may_have_resources_without_a_type() {
    let schema = Structural::compile(&json!({"type": "object", "properties": {"status": {
        "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    }}}));
    let new = json!({"status": {"kind": "a b"}});
    assert!(schema.validate_status(&new, &json!({}), &[]).is_empty());
    assert_eq!(schema.validate(&new, None, &[]).len(), 2);
}

//! What is cut, and what is filled in.

use serde_json::json;

use super::of_spec;

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
        "metadata.bogus",
        "spec.b",
        "spec.embedded.spec.u",
        "spec.free.tight.u",
        "spec.list[1].y",
        "spec.map.k.x",
        "z",
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

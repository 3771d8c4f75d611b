//! Server-side apply of members that a schema does not name.
//!
//! All answers are those of a kube-apiserver.

use http::Method;
use serde_json::{Value, json};

use crate::bench::{Answer, Bench};
use crate::kinds::definition;

const THINGS: &str = "/apis/demo.dev/v1/namespaces/default/things";

/// Makes a cluster whose things have a schema at `spec.f`.
async fn bench(schema: &Value) -> Bench {
    let bench = Bench::new().await;
    let mut things = definition("things", "Thing", "Namespaced");
    let spec = json!({"type": "object", "properties": {"f": schema}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let versions = things["spec"]["versions"].as_array_mut();
    for version in versions.into_iter().flatten() {
        version["schema"] = schema.clone();
    }
    bench.define(&things).await;
    bench
}

async fn apply(bench: &Bench, manager: &str, value: &Value) -> Answer {
    let thing = json!({
        "apiVersion": "demo.dev/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"f": value},
    });
    let path = format!("{THINGS}/a?fieldManager={manager}");
    let media = "application/apply-patch+yaml";
    bench
        .call(Method::PATCH, &path, media, thing.to_string())
        .await
}

/// Applies a value, and checks which part is kept, and that its members have owners, those that were pruned as well.
async fn check(schema: Value, value: Value, kept: Value, owned: Value, conflict: Option<&str>) {
    let bench = bench(&schema).await;
    let answer = apply(&bench, "one", &value).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    let object = answer.json();
    assert_eq!(object["spec"]["f"], kept, "{schema}");
    let owners = &object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:f"];
    assert_eq!(*owners, owned, "{schema}");
    let other = apply(&bench, "two", &value).await;
    match conflict {
        // A pruned member has no live value, so it differs from any that is applied.
        Some(conflict) => {
            let status = other.fails(409, "Conflict");
            let message = status["message"].as_str().unwrap_or_default();
            assert!(message.ends_with(conflict), "{message}");
        }
        None => assert_eq!(other.code, 200),
    }
}

#[tokio::test(start_paused = true)]
async fn apply_below_an_object_without_properties_is_accepted() {
    let open = json!({"type": "object"});
    check(
        open.clone(),
        json!({"a": 1}),
        json!({}),
        json!({"f:a": {}}),
        Some(": .spec.f.a"),
    )
    .await;
    check(
        json!({"type": "object", "properties": {"o": open}}),
        json!({"o": {"a": {"b": 1}}}),
        json!({"o": {}}),
        json!({"f:o": {"f:a": {".": {}, "f:b": {}}}}),
        Some("- .spec.f.o.a\n- .spec.f.o.a.b"),
    )
    .await;
    check(
        json!({"type": "array", "items": open}),
        json!([{"a": 1}]),
        json!([{}]),
        json!({}),
        Some(": .spec.f"),
    )
    .await;
    check(
        json!({"type": "object", "additionalProperties": open}),
        json!({"k": {"a": 1}}),
        json!({"k": {}}),
        json!({"f:k": {".": {}, "f:a": {}}}),
        Some(": .spec.f.k.a"),
    )
    .await;
    check(
        json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
            "items": {
                "type": "object", "required": ["n"], "properties": {"n": {"type": "string"}, "o": open},
            },
        }),
        json!([{"n": "x", "o": {"q": 1}}]),
        json!([{"n": "x", "o": {}}]),
        json!({"k:{\"n\":\"x\"}": {".": {}, "f:n": {}, "f:o": {"f:q": {}}}}),
        Some(": .spec.f[n=\"x\"].o.q"),
    )
    .await;
    check(
        json!({
            "type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": open},
        }),
        json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "q"}, "spec": {"a": 1}}),
        json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "q"}, "spec": {}}),
        json!({
            "f:apiVersion": {}, "f:kind": {}, "f:metadata": {"f:name": {}}, "f:spec": {"f:a": {}},
        }),
        Some(": .spec.f.spec.a"),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn apply_below_preserved_unknown_fields_is_accepted() {
    let named = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let preserving = |name: &str, below: Value| {
        json!({
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {name: below},
        })
    };
    check(
        preserving("pruned", named.clone()),
        json!({"pruned": {"a": "b", "c": "d"}, "z": 1}),
        json!({"pruned": {"a": "b"}, "z": 1}),
        json!({"f:pruned": {"f:a": {}, "f:c": {}}, "f:z": {}}),
        Some(": .spec.f.pruned.c"),
    )
    .await;
    check(
        preserving("l", json!({"type": "array", "items": named})),
        json!({"l": [{"a": "b", "c": "d"}]}),
        json!({"l": [{"a": "b"}]}),
        json!({"f:l": {}}),
        Some(": .spec.f.l"),
    )
    .await;
    check(
        preserving(
            "l",
            json!({"type": "object", "additionalProperties": named}),
        ),
        json!({"l": {"k": {"a": "b", "c": "d"}}}),
        json!({"l": {"k": {"a": "b"}}}),
        json!({"f:l": {"f:k": {".": {}, "f:a": {}, "f:c": {}}}}),
        Some(": .spec.f.l.k.c"),
    )
    .await;
    let value = json!({"a": {"b": 1}});
    let owned = json!({"f:a": {".": {}, "f:b": {}}});
    check(
        preserving("l", named.clone()),
        value.clone(),
        value,
        owned,
        None,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn apply_of_an_undeclared_field_is_refused_below_properties() {
    let named = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let bench = bench(&named).await;
    let status = apply(&bench, "one", &json!({"c": "d"}))
        .await
        .fails(500, "");
    assert_eq!(
        status["message"],
        "failed to create typed patch object (/a; demo.dev/v1, Kind=Thing): .spec.f.c: field not declared in schema"
    );
}

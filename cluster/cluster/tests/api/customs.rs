//! Custom resources under the schemas of their CRDs.

use crate::bench::{Answer, Bench, DEFINITIONS, text, version};
use crate::kinds::{WIDGETS, definition, widget};
use http::Method;
use serde_json::{Value, json};

/// A CRD of widgets of which the spec has the given properties, in both versions.
fn widgets(properties: &Value) -> Value {
    let mut definition = definition("widgets", "Widget", "Namespaced");
    for at in 0..2 {
        definition["spec"]["versions"][at]["schema"]["openAPIV3Schema"] = json!({
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": properties},
                "status": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}},
            },
        });
    }
    definition
}

async fn bench(properties: Value) -> Bench {
    let bench = Bench::new().await;
    bench.define(&widgets(&properties)).await;
    bench
}

fn with_spec(name: &str, spec: Value) -> Value {
    let mut widget = widget(name);
    widget["spec"] = spec;
    widget
}

fn warnings(answer: &Answer) -> Vec<&str> {
    let values = answer.headers.get_all("warning").iter();
    values.filter_map(|value| value.to_str().ok()).collect()
}

/// Returns reason and field of each cause.
fn causes(answer: &Answer) -> Vec<String> {
    let status = answer.fails(422, "Invalid");
    let causes = status["details"]["causes"].as_array();
    let cause = |cause: &Value| format!("{} {}", text(cause, "/reason"), text(cause, "/field"));
    causes.into_iter().flatten().map(cause).collect()
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_dropped_as_the_client_wishes() {
    let bench = bench(json!({"size": {"type": "integer"}})).await;
    let odd = |name: &str| with_spec(name, json!({"size": 1, "y": 2, "b": {"c": 3}}));
    let created = bench.post(WIDGETS, &odd("a")).await;
    assert_eq!(created.json()["spec"], json!({"size": 1}));
    assert_eq!(
        warnings(&created),
        [
            r#"299 - "unknown field \"spec.b\"""#,
            r#"299 - "unknown field \"spec.y\"""#
        ]
    );
    let path = format!("{WIDGETS}?fieldValidation=Ignore");
    assert!(warnings(&bench.post(&path, &odd("b")).await).is_empty());
    let path = format!("{WIDGETS}?fieldValidation=Strict");
    let strict = bench.post(&path, &odd("c")).await;
    let status = strict.fails(400, "BadRequest");
    assert_eq!(
        text(&status, "/message"),
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown \
         field \"spec.b\", unknown field \"spec.y\""
    );
    let path = format!("{WIDGETS}/a?fieldValidation=Strict");
    let patched = bench.merge(&path, json!({"spec": {"z": 1}})).await;
    let status = patched.fails(422, "Invalid");
    assert_eq!(text(&status, "/details/causes/0/field"), "patch");
}

#[tokio::test(start_paused = true)]
async fn a_broken_schema_is_a_cause_for_each_field() {
    let rule = json!([{"rule": "self.size < 9", "message": "too big", "fieldPath": ".size"}]);
    let bench = bench(json!({
        "size": {"type": "integer"}, "mode": {"type": "string", "enum": ["a"]},
        "deep": {"type": "object", "properties": {"size": {"type": "integer"}},
            "x-kubernetes-validations": rule},
    }))
    .await;
    let broken = with_spec("a", json!({"size": "1", "mode": "b"}));
    assert_eq!(
        causes(&bench.post(WIDGETS, &broken).await),
        [
            "FieldValueNotSupported spec.mode",
            "FieldValueTypeInvalid spec.size",
            "FieldValueInvalid <nil>"
        ]
    );
    let broken = with_spec("a", json!({"deep": {"size": 9}}));
    let answer = bench.post(WIDGETS, &broken).await;
    assert_eq!(causes(&answer), ["FieldValueInvalid spec.deep.size"]);
}

#[tokio::test(start_paused = true)]
async fn a_status_is_validated_when_it_is_written() {
    let bench = bench(json!({"size": {"type": "integer"}})).await;
    bench.post(WIDGETS, &with_spec("a", json!({}))).await.json();
    let status = format!("{WIDGETS}/a/status");
    let wrong = bench.merge(&status, json!({"status": {"n": -1}})).await;
    assert_eq!(causes(&wrong), ["FieldValueInvalid status.n"]);
    let right = bench.merge(&status, json!({"status": {"n": 1}, "spec": {"size": 9}}));
    let right = right.await.json();
    assert_eq!(
        (&right["status"], &right["spec"]),
        (&json!({"n": 1}), &json!({}))
    );
}

#[tokio::test(start_paused = true)]
async fn a_tightened_schema_tolerates_what_does_not_change() {
    let bench = bench(json!({"size": {"type": "integer"}, "color": {"type": "string"}})).await;
    bench
        .post(WIDGETS, &with_spec("a", json!({"size": 1})))
        .await
        .json();
    let tighter = json!({"size": {"type": "integer", "minimum": 5}, "color": {"type": "string", "default": "red"}});
    let patch = json!({"spec": {"versions": widgets(&tighter)["spec"]["versions"]}});
    bench
        .merge(&format!("{DEFINITIONS}/widgets.demo.dev"), patch)
        .await
        .json();
    let path = format!("{WIDGETS}/a");
    let dry_run = format!("{path}?dryRun=All");
    for _ in 0..100 {
        let answer = bench.merge(&dry_run, json!({"spec": {"size": 2}})).await;
        if answer.code == 422 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let wrong = bench.merge(&path, json!({"spec": {"size": 2}})).await;
    assert_eq!(causes(&wrong), ["FieldValueInvalid spec.size"]);
    let full = json!({"color": "red", "size": 1});
    assert_eq!(
        bench.get(&path).await.json()["spec"],
        full,
        "defaults count for what is stored"
    );
    assert_eq!(bench.get(WIDGETS).await.json()["items"][0]["spec"], full);
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    let right = bench.merge(&path, patch).await.json();
    assert_eq!(text(&right, "/spec/color"), "red");
}

#[tokio::test(start_paused = true)]
async fn a_deprecated_version_warns() {
    let mut definition = widgets(&json!({}));
    definition["spec"]["versions"][0]["deprecated"] = json!(true);
    let bench = Bench::new().await;
    bench.define(&definition).await;
    let warning = "299 - \"demo.dev/v1 Widget is deprecated; use demo.dev/v2 Widget\"";
    assert_eq!(warnings(&bench.get(WIDGETS).await), [warning]);
    let newer = WIDGETS.replace("/v1/", "/v2/");
    assert!(warnings(&bench.get(&newer).await).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_warning_may_have_any_characters_that_are_printed() {
    let mut definition = widgets(&json!({}));
    definition["spec"]["versions"][0]["deprecated"] = json!(true);
    definition["spec"]["versions"][0]["deprecationWarning"] = json!("é 😀 \"q\" \\");
    let bench = Bench::new().await;
    bench.define(&definition).await;
    let answer = bench.get(WIDGETS).await;
    let warning = answer.headers["warning"].as_bytes();
    assert_eq!(warning, r#"299 - "é 😀 \"q\" \\""#.as_bytes());
}

const SPEC: &str = "spec.validation.openAPIV3Schema.properties[spec]";

/// Checks the only error of a CRD whose schema of `spec` is the given one.
///
/// The expected path starts there.
async fn refuses_schema(schema: &Value, expected: &str) {
    let bench = Bench::new().await;
    let mut definition = widgets(&json!({}));
    for at in 0..2 {
        let versions = &mut definition["spec"]["versions"];
        versions[at]["schema"]["openAPIV3Schema"]["properties"]["spec"] = schema.clone();
    }
    let (reason, place) = expected.split_once(' ').expect("a reason and a place");
    let expected = format!("{reason} {SPEC}{place}");
    let answer = bench.post(DEFINITIONS, &definition).await;
    assert_eq!(causes(&answer), [expected], "{schema}");
}

#[tokio::test(start_paused = true)]
async fn a_schema_has_to_be_structural() {
    let keys = |keys: Value| {
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object", "properties": {"k": {"type": "string"}}}})
    };
    for (schema, expected) in [
        (json!({}), "FieldValueRequired .type"),
        (json!({"type": "array"}), "FieldValueRequired .items"),
        (json!({"type": "thing"}), "FieldValueNotSupported .type"),
        (
            json!({"type": "object", "default": {"a": 1}}),
            "FieldValueInvalid .default",
        ),
        (
            json!({"type": "integer", "default": "a"}),
            "FieldValueTypeInvalid .default",
        ),
        (
            json!({"type": "object", "anyOf": [{"type": "object"}]}),
            "FieldValueForbidden .anyOf[0].type",
        ),
        (
            json!({"type": "string", "pattern": "["}),
            "FieldValueInvalid .pattern",
        ),
        (
            json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
            "FieldValueForbidden .uniqueItems",
        ),
        (
            keys(json!(["k"])),
            "FieldValueRequired .items.properties[k].default",
        ),
        (
            keys(json!([])),
            "FieldValueRequired .x-kubernetes-list-map-keys",
        ),
    ] {
        refuses_schema(&schema, expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn rules_have_to_compile() {
    for (rule, expected) in [
        ("self.a >", "FieldValueInvalid"),
        ("self.b > 1", "FieldValueInvalid"),
        ("other > 1", "FieldValueInvalid"),
        ("self.a", "FieldValueInvalid"),
        (" ", "FieldValueRequired"),
    ] {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": rule}]});
        let expected = format!("{expected} .x-kubernetes-validations[0].rule");
        refuses_schema(&schema, &expected).await;
    }
}

/// Checks the first thing that is wrong with a CRD in which one member is the given one.
async fn refuses_part(parent: &str, (member, value): (&str, Value), expected: &str) {
    let bench = Bench::new().await;
    let mut definition = widgets(&json!({}));
    let parent = definition.pointer_mut(parent).expect("it is there");
    parent[member] = value;
    let found = causes(&bench.post(DEFINITIONS, &definition).await);
    assert_eq!(
        found.first().map(String::as_str),
        Some(expected),
        "{found:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_definition_names_its_kind_properly() {
    for (member, value, expected) in [
        (
            "listKind",
            json!("a b"),
            "FieldValueInvalid spec.names.listKind",
        ),
        (
            "listKind",
            json!("Widget"),
            "FieldValueInvalid spec.names.listKind",
        ),
        (
            "shortNames",
            json!(["A"]),
            "FieldValueInvalid spec.names.shortNames[0]",
        ),
    ] {
        refuses_part("/spec/names", (member, value), expected).await;
    }
    for (member, value, expected) in [
        (
            "scope",
            json!("Galaxy"),
            "FieldValueNotSupported spec.scope",
        ),
        (
            "conversion",
            json!({"strategy": "Odd"}),
            "FieldValueNotSupported spec.conversion.strategy",
        ),
        (
            "preserveUnknownFields",
            json!(true),
            "FieldValueInvalid spec.preserveUnknownFields",
        ),
    ] {
        refuses_part("/spec", (member, value), expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn versions_are_checked_one_by_one() {
    for (member, value, expected) in [
        ("name", json!("v1"), "FieldValueInvalid spec.versions"),
        (
            "name",
            json!("V"),
            "FieldValueInvalid spec.versions[1].name",
        ),
        ("storage", json!(true), "FieldValueInvalid spec.versions"),
        (
            "deprecationWarning",
            json!("old"),
            "FieldValueInvalid spec.versions[1].deprecationWarning",
        ),
        (
            "selectableFields",
            json!([{"jsonPath": ".spec.none"}]),
            // The schema is that of all versions, the fields are not.
            "FieldValueInvalid spec.versions[1].selectableFields",
        ),
        (
            "additionalPrinterColumns",
            json!([{"name": "A", "type": "odd", "jsonPath": ".a"}]),
            "FieldValueInvalid spec.versions[1].additionalPrinterColumns[0].type",
        ),
        (
            "subresources",
            json!({"scale": {"specReplicasPath": "spec.n", "statusReplicasPath": ".spec.n"}}),
            "FieldValueInvalid spec.versions[1].subresources.scale.specReplicasPath",
        ),
    ] {
        refuses_part("/spec/versions/1", (member, value), expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_number_is_the_same_however_it_is_written() {
    // Rust writes 100.0 and Go 100, and both apply the same CRD.
    let bench =
        bench(json!({"n": {"type": "number", "maximum": 100.0, "default": 1.0}, "half": {"type": "number"}})).await;
    let path = format!("{DEFINITIONS}/widgets.demo.dev");
    let stored = bench.get(&path).await;
    assert!(
        stored.text.contains("\"default\":1,\"maximum\":100,"),
        "{}",
        stored.text
    );
    let apply = async |path: &str, manager: &str, body: String| {
        let path = format!("{path}?fieldManager={manager}");
        let media = "application/apply-patch+yaml";
        let applied = bench.call(Method::PATCH, &path, media, body).await;
        assert!(applied.code.is_success(), "{manager}: {}", applied.text);
        version(&applied.json())
    };
    let widget = |n: &str| {
        format!(
            r#"{{"apiVersion": "demo.dev/v1", "kind": "Widget", "metadata": {{"name": "a"}}, "spec": {{"n": {n}, "half": 0.5}}}}"#
        )
    };
    let path = format!("{WIDGETS}/a");
    let first = apply(&path, "rust", widget("2.0")).await;
    assert_eq!(apply(&path, "rust", widget("2")).await, first);
    apply(&path, "go", widget("2")).await;
    assert_eq!(
        apply(&path, "rust", widget("2.0")).await,
        version(&bench.get(&path).await.json())
    );
    let stored = bench.get(&path).await;
    assert!(
        stored.text.contains("\"spec\":{\"half\":0.5,\"n\":2}"),
        "{}",
        stored.text
    );
}

/// As on a kube-apiserver: they are equal only once they have been written and read again.
#[tokio::test(start_paused = true)]
async fn set_with_number_in_both_forms_is_accepted() {
    let set =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}});
    let bench = bench(json!({"set": set})).await;
    let widget = r#"{"apiVersion": "demo.dev/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"set": [1, 1.0]}}"#;
    let media = "application/json";
    let made = bench
        .call(Method::POST, WIDGETS, media, widget.to_owned())
        .await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert!(made.text.contains("\"set\":[1,1]"), "{}", made.text);
}

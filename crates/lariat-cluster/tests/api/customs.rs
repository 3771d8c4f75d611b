//! Custom resources under the schemas of their definitions.

use crate::bench::{Answer, Bench, DEFINITIONS, text};
use crate::kinds::{WIDGETS, definition, widget};
use serde_json::{Value, json};

/// A definition of widgets of which the spec has the given properties, in both versions.
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
    let causes = status["details"]["causes"].as_array().unwrap();
    let cause = |cause: &Value| format!("{} {}", text(cause, "/reason"), text(cause, "/field"));
    causes.iter().map(cause).collect()
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
async fn a_definition_that_cannot_work_is_refused() {
    let bench = Bench::new().await;
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let other = "/spec/versions/1/schema/openAPIV3Schema/properties/spec";
    let spec = "spec.validation.openAPIV3Schema.properties[spec]";
    let rule = |rule: &str| {
        json!({"type": "object", "properties": {"a": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": rule}]})
    };
    let list = |keys: Value, kind: &str| {
        json!({"type": "array", "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object", "properties": {"k": {"type": "string"}}}})
    };
    let first_rule = format!("FieldValueInvalid {spec}.x-kubernetes-validations[0].rule");
    for (value, expected) in [
        (json!({}), format!("FieldValueRequired {spec}.type")),
        (
            json!({"type": "array"}),
            format!("FieldValueRequired {spec}.items"),
        ),
        (
            json!({"type": "thing"}),
            format!("FieldValueNotSupported {spec}.type"),
        ),
        (
            json!({"type": "object", "default": {"a": 1}}),
            format!("FieldValueInvalid {spec}.default"),
        ),
        (
            json!({"type": "integer", "default": "a"}),
            format!("FieldValueTypeInvalid {spec}.default"),
        ),
        (
            json!({"type": "object", "anyOf": [{"type": "object"}]}),
            format!("FieldValueForbidden {spec}.anyOf[0].type"),
        ),
        (
            json!({"type": "string", "pattern": "["}),
            format!("FieldValueInvalid {spec}.pattern"),
        ),
        (
            json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
            format!("FieldValueForbidden {spec}.uniqueItems"),
        ),
        (
            list(json!(["k"]), "map"),
            format!("FieldValueRequired {spec}.items.properties[k].default"),
        ),
        (
            list(json!([]), "map"),
            format!("FieldValueRequired {spec}.x-kubernetes-list-map-keys"),
        ),
        (rule("self.a >"), first_rule.clone()),
        (rule("self.b > 1"), first_rule.clone()),
        (rule("other > 1"), first_rule.clone()),
        (rule("self.a"), first_rule),
        (
            rule(" "),
            format!("FieldValueRequired {spec}.x-kubernetes-validations[0].rule"),
        ),
    ] {
        let mut definition = widgets(&json!({}));
        for pointer in [schema, other] {
            *definition.pointer_mut(pointer).unwrap() = value.clone();
        }
        assert_eq!(
            causes(&bench.post(DEFINITIONS, &definition).await),
            [expected],
            "{value}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_with_wrong_parts_is_refused() {
    let bench = Bench::new().await;
    let scale = json!({"status": {}, "scale": {"specReplicasPath": "spec.n", "statusReplicasPath": ".spec.n"}});
    for (pointer, value, expected) in [
        (
            "/spec/scope",
            json!("Galaxy"),
            "FieldValueNotSupported spec.scope",
        ),
        (
            "/spec/names/listKind",
            json!("a b"),
            "FieldValueInvalid spec.names.listKind",
        ),
        (
            "/spec/names/shortNames",
            json!(["A"]),
            "FieldValueInvalid spec.names.shortNames[0]",
        ),
        (
            "/spec/names/listKind",
            json!("Widget"),
            "FieldValueInvalid spec.names.listKind",
        ),
        (
            "/spec/versions/1/name",
            json!("v1"),
            "FieldValueInvalid spec.versions",
        ),
        (
            "/spec/versions/1/name",
            json!("V"),
            "FieldValueInvalid spec.versions[1].name",
        ),
        (
            "/spec/versions/1/storage",
            json!(true),
            "FieldValueInvalid spec.versions",
        ),
        (
            "/spec/conversion",
            json!({"strategy": "Odd"}),
            "FieldValueNotSupported spec.conversion.strategy",
        ),
        (
            "/spec/versions/0/deprecationWarning",
            json!("old"),
            "FieldValueInvalid spec.versions[0].deprecationWarning",
        ),
        (
            "/spec/versions/0/selectableFields",
            json!([{"jsonPath": ".spec.none"}]),
            "FieldValueInvalid spec.versions[0].selectableFields[0].jsonPath",
        ),
        (
            "/spec/versions/0/additionalPrinterColumns",
            json!([{"name": "A", "type": "odd", "jsonPath": ".a"}]),
            "FieldValueInvalid spec.versions[0].additionalPrinterColumns[0].type",
        ),
        (
            "/spec/versions/0/subresources",
            scale,
            "FieldValueInvalid spec.versions[0].subresources.scale.specReplicasPath",
        ),
        (
            "/spec/preserveUnknownFields",
            json!(true),
            "FieldValueInvalid spec.preserveUnknownFields",
        ),
    ] {
        let mut definition = widgets(&json!({}));
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        definition.pointer_mut(parent).unwrap()[member] = value.clone();
        let found = causes(&bench.post(DEFINITIONS, &definition).await);
        assert_eq!(found[0], expected, "{pointer} {value}: {found:?}");
    }
}

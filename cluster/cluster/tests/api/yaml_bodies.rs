//! Bodies in YAML, and bodies that nest deep.
//!
//! All answers are those of a kube-apiserver, whose documents may be 10,000 levels deep.

use http::Method;
use serde_json::{Value, json};

use crate::bench::{Answer, Bench, CONFIG_MAPS};
use crate::kinds::{WIDGETS, definition, widget};

const YAML: &str = "application/yaml";
const APPLY: &str = "application/apply-patch+yaml";

/// Creates a ConfigMap, and applies another one, whose data are lines of YAML.
async fn send(bench: &Bench, data: &str) -> [Answer; 2] {
    let object = |name: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n{data}")
    };
    let applied = format!("{CONFIG_MAPS}/applied?fieldManager=m");
    [
        bench
            .call(Method::POST, CONFIG_MAPS, YAML, object("created"))
            .await,
        bench
            .call(Method::PATCH, &applied, APPLY, object("applied"))
            .await,
    ]
}

fn warnings(answer: &Answer) -> Vec<&str> {
    let values = answer.headers.get_all("warning").iter();
    values.filter_map(|value| value.to_str().ok()).collect()
}

#[tokio::test(start_paused = true)]
async fn yaml_is_read_as_yaml_1_1() {
    for (data, expected) in [
        (
            "  yes: a\n  0x10: b\n  1.5: c\n",
            json!({"true": "a", "16": "b", "1.5": "c"}),
        ),
        ("  run: |\n    one\n    two", json!({"run": "one\ntwo"})),
        ("  run: >\n    one\n    two", json!({"run": "one two"})),
        (
            "  a: !!str 5\n  b: 2026-01-01\n",
            json!({"a": "5", "b": "2026-01-01"}),
        ),
        ("  a: &x b\n  c: *x\n", json!({"a": "b", "c": "b"})),
    ] {
        for answer in send(&Bench::new().await, data).await {
            assert_eq!(answer.json()["data"], expected, "{data}: {}", answer.text);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_merged_and_set_are_warned_of() {
    let [created, applied] = send(&Bench::new().await, "  <<: {a: b, c: d}\n  a: e\n").await;
    assert_eq!(created.json()["data"], json!({"a": "e", "c": "d"}));
    let expected = r#"299 - "line 6: key \"a\" already set in map""#;
    assert_eq!(warnings(&created), [expected]);
    assert_eq!(warnings(&applied), [expected]);
}

#[tokio::test(start_paused = true)]
async fn yaml_that_cannot_be_read_is_refused() {
    let mut aliases = "  a: &a [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
    for (name, before) in [("b", "a"), ("c", "b"), ("d", "c"), ("e", "d")] {
        let items = vec![format!("*{before}"); 10].join(",");
        aliases.push_str(&format!("  {name}: &{name} [{items}]\n"));
    }
    for (data, expected) in [
        (
            aliases.as_str(),
            "yaml: document contains excessive aliasing",
        ),
        ("  a: *x\n", "yaml: unknown anchor 'x' referenced"),
        ("  a: .inf\n", "json: unsupported value: +Inf"),
        (
            "  <<: 1\n",
            "yaml: map merge requires map or sequence of maps as the value",
        ),
        (
            "  a: b: c\n",
            "yaml: line 5: mapping values are not allowed in this context",
        ),
        (
            "  a: [1\n",
            "yaml: line 5: did not find expected ',' or ']'",
        ),
        (
            "  a: b\n  c\n  d: e\n",
            "yaml: line 7: could not find expected ':'",
        ),
        ("  a: \"b\n", "yaml: line 6: found unexpected end of stream"),
    ] {
        let [created, applied] = send(&Bench::new().await, data).await;
        let created = created.fails(400, "BadRequest")["message"].to_string();
        assert!(
            created.contains(&format!("(must be of type ConfigMap): {expected} (")),
            "{created}"
        );
        let applied = applied.fails(400, "BadRequest")["message"].clone();
        let reason = "error decoding YAML: error converting YAML to JSON";
        assert_eq!(applied, format!("{reason}: {expected}"));
    }
}

/// Makes a cluster with widgets of any form, of which one is there.
async fn open() -> Bench {
    let bench = Bench::new().await;
    let mut open = definition("widgets", "Widget", "Namespaced");
    for version in open["spec"]["versions"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        version["schema"]["openAPIV3Schema"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    bench.define(&open).await;
    bench.post(WIDGETS, &widget("a")).await;
    bench
}

#[tokio::test(start_paused = true)]
async fn documents_that_nest_too_deep_are_refused() {
    let bench = open().await;
    let brackets = format!("{}{}", "[".repeat(12_000), "]".repeat(12_000));
    let member = format!(r#"{{"x":{brackets}}}"#);
    let one = format!("{WIDGETS}/a?fieldManager=m");
    let too_deep = "invalid character '[' exceeded max depth";
    let patch = format!("error decoding patch: {too_deep}");
    let kind = "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; \
                json parse error";
    let of_yaml = "error decoding YAML: error converting YAML to JSON: yaml: line 2: exceeded max depth of 10000";
    let block = |indicator: &str| format!("x:\n{}a\n", indicator.repeat(12_000));
    for (method, path, media, body, expected) in [
        (
            Method::POST,
            WIDGETS,
            "application/json",
            member.clone(),
            format!("{kind}: {too_deep} ({{"),
        ),
        (
            Method::PATCH,
            &one,
            "application/merge-patch+json",
            member.clone(),
            patch.clone(),
        ),
        (
            Method::PATCH,
            &one,
            "application/json-patch+json",
            format!(r#"[{{"op":"add","path":"/x","value":{brackets}}}]"#),
            patch.clone(),
        ),
        (Method::PATCH, &one, APPLY, block("- "), of_yaml.to_owned()),
        (
            Method::PATCH,
            &one,
            APPLY,
            format!("x:\n  {brackets}\n"),
            of_yaml.to_owned(),
        ),
    ] {
        let answer = bench.call(method, path, media, body).await;
        let message = answer.fails(400, "BadRequest")["message"].clone();
        let message = message.as_str().unwrap_or_default();
        assert!(message.starts_with(&expected), "{media}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn documents_that_nest_deep_fit_the_stack() {
    let bench = open().await;
    let path = format!("{WIDGETS}/b?fieldManager=m&force=true");
    let head = "apiVersion: demo.dev/v1\nkind: Widget\nmetadata: {name: b}\n";
    let mut aliases = format!("{head}x0: &x0 [1]\n");
    for level in 1..100 {
        aliases.push_str(&format!("x{level}: &x{level} [*x{}]\n", level - 1));
    }
    for body in [format!("{head}x:\n{}1\n", "- ".repeat(105)), aliases] {
        let applied = bench.call(Method::PATCH, &path, APPLY, body.clone()).await;
        assert!(applied.code.is_success(), "{}", applied.text);
        let created = body.replace("name: b", "generateName: c");
        let created = bench.call(Method::POST, WIDGETS, YAML, created).await;
        assert!(created.code.is_success(), "{}", created.text);
    }
    let merged = bench
        .merge(
            &format!("{WIDGETS}/b"),
            json!({"metadata": {"labels": {"a": "b"}}}),
        )
        .await;
    assert!(merged.code.is_success(), "{}", merged.text);
}

#[tokio::test(start_paused = true)]
async fn numbers_that_no_float_holds_are_refused() {
    let bench = open().await;
    let one = format!("{WIDGETS}/a");
    let reason = "json: cannot unmarshal number 1e400 into Go";
    let created =
        r#"{"apiVersion":"demo.dev/v1","kind":"Widget","metadata":{"name":"b"},"x":1e400}"#;
    let operation = r#"[{"op":"add","path":"/x","value":1e400}]"#;
    for (method, path, media, body, expected) in [
        (
            Method::POST,
            WIDGETS,
            "application/json",
            created,
            format!(
                "Widget in version \"v1\" cannot be handled as a Widget: {reason} value of type float64"
            ),
        ),
        (
            Method::PATCH,
            &one,
            "application/merge-patch+json",
            r#"{"x":1e400}"#,
            format!("error decoding patch: {reason} value of type float64"),
        ),
        (
            Method::PATCH,
            &one,
            "application/json-patch+json",
            operation,
            format!(
                "error decoding patch: {reason} struct field jsonPatchOp.value of type float64"
            ),
        ),
    ] {
        let answer = bench.call(method, path, media, body).await;
        assert_eq!(answer.fails(400, "BadRequest")["message"], expected);
    }
    // In YAML it is a text.
    let applied = "apiVersion: demo.dev/v1\nkind: Widget\nx: 1e400\n";
    let path = format!("{one}?fieldManager=m");
    let applied = bench.call(Method::PATCH, &path, APPLY, applied).await;
    assert_eq!(
        applied.json()["x"],
        Value::from("1e400"),
        "{}",
        applied.text
    );
}

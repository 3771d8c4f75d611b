//! YAML between Lariat and kubectl: each reads the other's, and both read the same.
//!
//! `kubectl label --local` reads documents and prints them as JSON, without a server.

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use lariat_core::yaml;
use lariat_integration::Kubectl;
use serde_json::{Map, Value, json};

use crate::seeds::with_seeds;

/// How many values are written in one test, and how many documents kubectl gets at once.
const VALUES: u64 = 1500;
const AT_ONCE: usize = 300;

/// Lets kubectl read the `spec` of many documents.
async fn read(kubectl: &Kubectl, specs: &[String]) -> Result<Vec<Value>> {
    let document = |spec: &String| {
        format!("---\napiVersion: demo.dev/v1\nkind: Thing\nmetadata: {{name: a}}\n{spec}")
    };
    let input: String = specs.iter().map(document).collect();
    let printed = kubectl
        .run_with("label --local -f - read=true -o json", &input)
        .await?;
    let objects = serde_json::Deserializer::from_str(&printed).into_iter::<Value>();
    let objects: Vec<Value> = objects.collect::<Result<_, _>>()?;
    // Several documents are printed as a list, or one after the other.
    let mut all = Vec::new();
    for object in objects {
        match object
            .get("items")
            .filter(|_| object["kind"] == "List")
            .and_then(Value::as_array)
        {
            Some(items) => all.extend(items.iter().map(|item| item["spec"].clone())),
            None => all.push(object["spec"].clone()),
        }
    }
    ensure!(
        all.len() == specs.len(),
        "{} of {} documents",
        all.len(),
        specs.len()
    );
    Ok(all)
}

fn offline() -> Result<Kubectl> {
    // kubectl wants a kubeconfig, and does not use it.
    Kubectl::new(Some("{}"), "default")
}

/// Checks that kubectl reads what is written.
async fn check_written(values: Vec<Value>) -> Result<()> {
    let kubectl = offline()?;
    for values in values.chunks(AT_ONCE) {
        let specs: Vec<String> = values
            .iter()
            .map(|value| lariat::operator::yaml(&json!({"spec": value})))
            .collect::<Result<_, _>>()?;
        let found = read(&kubectl, &specs).await?;
        for ((value, spec), found) in values.iter().zip(&specs).zip(found) {
            assert_eq!(&found, value, "kubectl reads something else in:\n{spec}");
            assert_eq!(
                yaml::read(spec)?["spec"],
                *value,
                "it is not what was written:\n{spec}"
            );
        }
    }
    Ok(())
}

/// Texts that readers of YAML have taken for something else.
const ODD: &[&str] = &[
    "",
    " ",
    "\n",
    "\t",
    "~",
    "null",
    "Null",
    "true",
    "True",
    "yes",
    "no",
    "on",
    "off",
    "y",
    "n",
    "0",
    "1",
    "-1",
    "+1",
    "01",
    "0644",
    "0o17",
    "0x1F",
    "0b1",
    "1_000",
    "1.5",
    ".5",
    "5.",
    "1e3",
    "1e400",
    "12:30",
    "12:30:45",
    "1:2:3.4",
    "2026-01-01",
    "2026-01-01T10:00:00Z",
    "2026-1-1",
    ".inf",
    "-.Inf",
    ".nan",
    "=",
    "<<",
    "---",
    "...",
    "--- a",
    "- a",
    "? a",
    "a: b",
    "a:",
    ":a",
    "a #b",
    "#a",
    "&a",
    "*a",
    "!a",
    "%a",
    "@a",
    "`a`",
    "{a",
    "[a",
    "a\u{85}b\u{2028}c\u{feff}",
];

#[tokio::test]
async fn odd_texts_are_read_by_kubectl_as_written() -> Result<()> {
    let mut values: Vec<Value> = Vec::new();
    for text in ODD {
        for text in [
            (*text).to_owned(),
            format!("{text}\n"),
            format!("a\n{text}\nb"),
            format!("{text} "),
            format!("'{text}\""),
        ] {
            values.push(
                json!({"text": text, "list": [text, [text]], "keys": {text.clone(): {text: 1}}}),
            );
        }
    }
    let long = "k".repeat(2000);
    values.push(json!({long.clone(): 1, "list": [{long.clone(): long}]}));
    check_written(values).await
}

#[tokio::test]
async fn random_values_are_read_by_kubectl_as_written() -> Result<()> {
    with_seeds(async |seed| {
        let rng = &mut Rng::with_seed(seed);
        check_written((0..VALUES).map(|_| value(rng, 3)).collect()).await
    })
    .await
}

fn value(rng: &mut Rng, depth: u32) -> Value {
    match rng.u32(..if depth == 0 { 8 } else { 12 }) {
        0 => Value::Null,
        1 => rng.bool().into(),
        2 => rng.i64(..).into(),
        // Few digits, which all readers of numbers round in the same way.
        3 => (f64::from(rng.i16(..)) / 8.0 + 0.0625).into(),
        4..=7 => text(rng).into(),
        8 | 9 => (0..rng.usize(..4)).map(|_| value(rng, depth - 1)).collect(),
        _ => {
            let members = (0..rng.usize(..4)).map(|_| (text(rng), value(rng, depth - 1)));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

/// Makes a text of odd ones, signs and any characters.
fn text(rng: &mut Rng) -> String {
    let signs: Vec<char> = " \n\t:#-?,[]{}&*!|>'\"%@`\\/=~.0123456789eExXoOabz_+<\u{1}\u{7f}\u{85}\u{a0}é\u{2028}\u{feff}\u{fffd}\u{1f600}".chars().collect();
    match rng.u32(..4) {
        0 => ODD[rng.usize(..ODD.len())].to_owned(),
        1 => (0..rng.usize(..6)).map(|_| rng.char(..)).collect(),
        _ => (0..rng.usize(..10))
            .map(|_| signs[rng.usize(..signs.len())])
            .collect(),
    }
}

/// Documents by hand, whose `spec` both readers must find the same.
const BY_HAND: &[&str] = &[
    "spec: {defaultMode: 0644, other: 0o644, hex: 0x1F, bits: 0b11, eight: 08, under: 1_000}",
    "spec: [yes, No, on, OFF, y, N, True, yEs, null, ~, Null, '']",
    "spec: [1.0, 1., .5, -0, -0.0, 1e3, 1E-3, +5, 12:30, 2026-01-01, 0., 00, -0x1F]",
    "spec: {yes: a, 0x10: b, 1.5: c, 'no': d}",
    "spec: {a: 1, a: 2}",
    "spec:\n  base: &base {a: 1, b: 1}\n  all: {<<: *base, b: 2}",
    "spec:\n  base: &base {a: 1, b: 1}\n  all: {b: 2, <<: *base}",
    "spec:\n  one: &one {a: 1}\n  two: &two {a: 2, b: 2}\n  all: {<<: [*one, *two]}",
    "spec: &x [1, 2]\nother: *x",
    "spec: {a: !!str 5, b: !!int '5', c: !!float 5, d: !!bool 'yes', e: !own 5}",
    "spec:\n  a: |\n    one\n      two\n\n  b: >\n    one\n    two\n\n    three\n  c: |-\n    one\n  d: |+\n    one\n\n  e: >-\n    one\n",
    "spec:\n  a: |2\n      one\n     two\n",
    "spec: \"a\\tb\\u00e9\\x41\\\n  c\\\"\"",
    "spec: 'it''s\n  folded'",
    "spec: plain text\n  on two lines",
    "spec:\n- a\n-\n  - b\n- - c\n  - d\n- {e: f}\n-   g: h\n    i: j",
    "spec: [a, 'b', \"c\", {d: e}, [f]]  # comment",
    "spec: {a: b#c, d: e #f\n  }",
    "spec:\n  ? a\n  : b\n  ? |\n    c\n  : d",
    "spec: {a: 'http://b:1/c?d=e', 'f': g}",
    "spec: 9223372036854775807",
    "spec: [-9223372036854775808, 0.1, 1e20]",
    "spec: \"\\U0001F600 \\N \\_ \\e\"",
    "spec: {\"a\": {\"b\": [1, 2, {\"c\": null}]}, \"d\": \"\\u0041\"}",
];

#[tokio::test]
async fn documents_by_hand_are_read_as_by_kubectl() -> Result<()> {
    let kubectl = offline()?;
    let specs: Vec<String> = BY_HAND.iter().map(|spec| format!("{spec}\n")).collect();
    let found = read(&kubectl, &specs).await?;
    let differs = |(spec, found): (&String, Value)| {
        let read = yaml::read(spec).map(|document| document["spec"].clone());
        (read.as_ref() != Ok(&found))
            .then(|| format!("{spec}kubectl: {found}\nLariat:  {read:?}\n"))
    };
    let wrong: Vec<String> = specs.iter().zip(found).filter_map(differs).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test]
async fn random_scalars_are_read_as_by_kubectl() -> Result<()> {
    with_seeds(check_scalars).await
}

async fn check_scalars(seed: u64) -> Result<()> {
    let (rng, kubectl) = (&mut Rng::with_seed(seed), offline()?);
    let signs: Vec<char> = "0123456789012345678901_+-.:eExXoObBaAfFnNyYtTrRuUsSlL~"
        .chars()
        .collect();
    let scalars: Vec<String> = (0..VALUES * 2)
        .map(|_| {
            (0..rng.usize(1..7))
                .map(|_| signs[rng.usize(..signs.len())])
                .collect()
        })
        .filter(|scalar: &String| !scalar.starts_with(['-', ':']) && !scalar.ends_with(':'))
        .collect();
    let specs: Vec<String> = scalars
        .iter()
        .map(|scalar| format!("spec: {{value: [{scalar}]}}\n"))
        .collect();
    let known: Vec<_> = specs
        .iter()
        .filter(|spec| yaml::read(spec).is_ok())
        .cloned()
        .collect();
    ensure!(known.len() * 10 > specs.len() * 9, "most are YAML");
    for specs in known.chunks(AT_ONCE * 3) {
        for (spec, found) in specs.iter().zip(read(&kubectl, specs).await?) {
            let read = yaml::read(spec).context("it was read before")?["spec"].clone();
            assert_eq!(as_kubernetes(read), as_kubernetes(found), "{spec}");
        }
    }
    Ok(())
}

/// Reads numbers as Kubernetes does: one that no 64-bit integer holds is a float, however it was written.
fn as_kubernetes(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(as_kubernetes).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name, as_kubernetes(value)))
            .collect(),
        Value::Number(number) if number.is_u64() && !number.is_i64() => number.as_f64().into(),
        value => value,
    }
}

//! Changes that may make an object invalid.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::edit::{Edit, at, paths};

const TEXTS: [&str; 18] = [
    "",
    "Nonsense",
    "UPPER_Case",
    "a b",
    "-x",
    "10.0.0.1",
    "::1",
    "0",
    "1",
    "a/b",
    "é",
    "example.com/x",
    "1Gi",
    "-5",
    "50%",
    "Always",
    "x..y",
    "2020-01-01T00:00:00Z",
];

/// Changes one random member of a document.
///
/// `variants` are other valid documents of the same kind, whose members may be taken over.
pub(super) fn edit(random: &mut Rng, document: &Value, variants: &[Value]) -> Edit {
    match random.u32(..20) {
        0..3 => metadata(random),
        3..5 => made(random, document).unwrap_or_else(|| content(random, document)),
        5..8 => graft(random, variants).unwrap_or_else(|| content(random, document)),
        8 => unknown(random, document),
        _ => content(random, document),
    }
}

/// Changes a random member outside of metadata.
pub(super) fn content(random: &mut Rng, document: &Value) -> Edit {
    let paths = content_paths(document);
    if paths.is_empty() {
        return Edit::set(&["spec"], json!({}));
    }
    let path = paths[random.usize(..paths.len())].clone();
    let old = at(document, &path).cloned().unwrap_or_default();
    Edit {
        value: other(random, &old),
        path,
    }
}

/// Returns the paths outside of what every kind has.
pub(super) fn content_paths(document: &Value) -> Vec<Vec<String>> {
    let mut paths = paths(document);
    // Metadata have edits of their own, and a wrong kind is a matter of the protocol.
    paths.retain(|path| !matches!(path[0].as_str(), "apiVersion" | "kind" | "metadata"));
    paths
}

/// Takes a member of another valid document over.
fn graft(random: &mut Rng, variants: &[Value]) -> Option<Edit> {
    let variant = &variants[random.usize(..variants.len())];
    let mut paths = content_paths(variant);
    // An index may not be there in the other document.
    paths.retain(|path| path.iter().all(|name| name.parse::<usize>().is_err()));
    if paths.is_empty() {
        return None;
    }
    let path = paths.swap_remove(random.usize(..paths.len()));
    let value = at(variant, &path).cloned();
    Some(Edit { path, value })
}

/// Takes a member of an object that has nonsense in every field over.
fn made(random: &mut Rng, document: &Value) -> Option<Edit> {
    let api_version = document["apiVersion"].as_str()?;
    // The custom kinds of the sequences have no built-in type to make an object from.
    if api_version.contains("differential.dev") {
        return None;
    }
    let made =
        lariat_cluster::fuzzing::make(api_version, document["kind"].as_str()?, random.u64(..));
    graft(random, &[made])
}

/// Adds a member that no kind has.
fn unknown(random: &mut Rng, document: &Value) -> Edit {
    let mut paths = content_paths(document);
    paths.retain(|path| at(document, path).is_some_and(Value::is_object));
    // The document itself is an object as well.
    paths.push(Vec::new());
    let mut path = paths.swap_remove(random.usize(..paths.len()));
    path.push("unknown".to_owned());
    Edit {
        path,
        value: Some(if random.bool() {
            json!(1)
        } else {
            json!({"a": "b"})
        }),
    }
}

/// Returns another value for an old one; none removes it.
fn other(random: &mut Rng, old: &Value) -> Option<Value> {
    if random.u32(..100) < 22 {
        return None;
    }
    if random.u32(..100) < 8 {
        return Some(Value::Null);
    }
    let values = match old {
        Value::String(text) => return Some(other_text(random, text)),
        Value::Number(_) => vec![
            json!(0),
            json!(-1),
            json!(1),
            json!(100),
            json!(65536),
            json!(2_147_483_647),
            json!(2_147_483_648_u64),
            json!(1.5),
            json!("12"),
            json!(true),
        ],
        Value::Bool(is) => vec![json!(!is), json!(!is), json!("true"), json!(1)],
        Value::Array(list) => other_list(random, list),
        Value::Object(_) => vec![
            json!({}),
            json!({}),
            json!("text"),
            json!([]),
            json!({"a": "b"}),
        ],
        Value::Null => vec![json!(1)],
    };
    Some(values[random.usize(..values.len())].clone())
}

fn other_text(random: &mut Rng, old: &str) -> Value {
    match random.u32(..12) {
        0 => "x".repeat(64).into(),
        1 => "x".repeat(254).into(),
        2 => 7.into(),
        3 => json!({}),
        4 => format!("{old}-x").into(),
        5 => old.to_uppercase().into(),
        _ => TEXTS[random.usize(..TEXTS.len())].into(),
    }
}

fn other_list(random: &mut Rng, old: &[Value]) -> Vec<Value> {
    let mut twice = old.to_vec();
    twice.extend(old.first().cloned());
    let mut reversed = old.to_vec();
    reversed.reverse();
    let mut shorter = old.to_vec();
    if !shorter.is_empty() {
        shorter.remove(random.usize(..old.len()));
    }
    vec![
        json!([]),
        twice.into(),
        reversed.into(),
        shorter.into(),
        json!([null]),
        json!({"a": 1}),
    ]
}

/// Changes metadata, mostly to what is wrong.
fn metadata(random: &mut Rng) -> Edit {
    let owner = |controller: bool| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "controller": controller});
    let edits: [(&[&str], Value); 26] = [
        (&["labels", "x"], json!("y")),
        (&["labels", "x"], json!("bad value")),
        (&["labels", "bad key"], json!("y")),
        (&["labels", "x"], Value::Null),
        (&["labels", "x"], json!(1)),
        (&["labels"], Value::Null),
        (&["annotations", "x"], json!("y")),
        (&["annotations", "Bad/Key/x"], json!("y")),
        (&["annotations", "x"], json!({})),
        (&["annotations"], Value::Null),
        (&["finalizers"], json!(["example.com/hold"])),
        (&["finalizers"], json!(["unqualified"])),
        (
            &["finalizers"],
            json!(["example.com/hold", "example.com/hold"]),
        ),
        (&["finalizers"], json!([])),
        (&["ownerReferences"], json!([owner(true)])),
        (&["ownerReferences"], json!([{}])),
        (&["name"], json!("Bad_Name.${id}")),
        (&["name"], json!("")),
        (&["namespace"], json!("other")),
        (&["generation"], json!(7)),
        (&["creationTimestamp"], json!("2020-01-01T00:00:00Z")),
        (&["deletionTimestamp"], json!("2020-01-01T00:00:00Z")),
        (&["uid"], json!("11111111-2222-3333-4444-555555555555")),
        (&["resourceVersion"], json!("1")),
        (
            &["managedFields"],
            json!([{"manager": "m", "operation": "Nonsense"}]),
        ),
        (&["selfLink"], json!("/x")),
    ];
    let (path, value) = &edits[random.usize(..edits.len())];
    let path: Vec<&str> = [&["metadata"], *path].concat();
    Edit::set(&path, value.clone())
}

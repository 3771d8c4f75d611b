//! What is refused, and what is warned of, as by a genuine API server.
//!
//! The files in `validation/` have one case a line. A line that starts with a version is an object; what follows
//! changes it. `+` creates the changed object, `~` replaces the object by it, `=` replaces its status: JSON pointers
//! with their new values, `null` to remove, separated by ` ; `. Indented lines are the causes, in the order of their
//! texts, or in `warnings.txt` the warnings and in `order.txt` the causes, in the order of the API server.

use std::sync::Arc;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::{Kinds, Resource, TableId};
use lariat_apimachinery::object::Object;
use lariat_apimachinery::validation::{Part, validate, validate_metadata, warnings};
use lariat_apimachinery::{defaults, schema};
use serde_json::{Value, json};

/// Sets a value by its pointer; objects and items that are missing are made.
fn set(at: &mut Value, pointer: &str, value: Value) {
    let Some((name, rest)) = pointer[1..].split_once('/').map_or(
        (!pointer.is_empty()).then_some((&pointer[1..], "")),
        |(name, _)| Some((name, &pointer[1 + name.len()..])),
    ) else {
        return;
    };
    let name = name.replace("~1", "/");
    let below = match at {
        Value::Array(items) => {
            let index: usize = name.parse().expect("an index");
            if index == items.len() {
                items.push(Value::Null);
            }
            &mut items[index]
        }
        at => &mut at[name.as_str()],
    };
    if rest.is_empty() {
        *below = value;
    } else {
        set(below, rest, value);
    }
}

fn changed(base: &Value, changes: &str) -> Object {
    let mut object = base.clone();
    for change in changes.split(" ; ") {
        let (pointer, value) = change.split_once(' ').expect("a pointer and a value");
        let value = serde_json::from_str(value).unwrap_or_else(|_| panic!("{value}"));
        set(&mut object, pointer, value);
    }
    object.as_object().expect("an object").clone()
}

/// Reads an object as the server does: by its type, with defaults.
fn read(resource: &Resource, mut object: Object) -> Object {
    schema::decode(resource.types().root(), &mut object).expect("it has the form of its type");
    defaults::fill(resource, &mut object);
    object
}

fn causes(resource: &Resource, new: &Object, old: Option<&Object>, part: Part) -> Vec<String> {
    let mut texts = causes_in_order(resource, new, old, part);
    texts.sort();
    texts.dedup();
    texts
}

fn causes_in_order(
    resource: &Resource,
    new: &Object,
    old: Option<&Object>,
    part: Part,
) -> Vec<String> {
    let mut found = validate_metadata(resource, new, old);
    found.extend(validate(resource, new, old, part));
    let texts: Vec<String> = found.iter().map(StatusCause::text).collect();
    // What Go says about differences of structures is not repeated here.
    let lines = texts.iter().filter_map(|text| text.lines().next());
    lines.map(str::to_owned).collect()
}

/// Compares what is found in each case with what the server said.
fn check(file: &str, find: fn(&Resource, &Object, Option<&Object>, Part) -> Vec<String>) {
    let kinds = Kinds::new(|_| TableId(0));
    let catalog = kinds.catalog();
    let (mut resource, mut base): (Option<&Arc<Resource>>, Value) = (None, Value::Null);
    let mut lines = file.lines().peekable();
    let mut wrong = Vec::new();
    while let Some(line) = lines.next() {
        let Some((sign, rest)) = line.split_once(' ').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        if !matches!(sign, "+" | "~" | "=") {
            let (kind, json) = rest.split_once(' ').expect("a kind and an object");
            let all = &mut catalog.all();
            resource = all.find(|each| each.api_version() == sign && each.kind == kind);
            base = serde_json::from_str(json).expect("an object");
            continue;
        }
        let mut expected = Vec::new();
        while let Some(text) = lines.next_if(|line| line.starts_with(' ')) {
            expected.push(text[1..].to_owned());
        }
        // Where the Go code checks something twice, the causes are there twice.
        expected.dedup();
        let resource = resource.expect("the kind is built in");
        let new = read(resource, changed(&base, rest));
        let old = (sign != "+").then(|| base.as_object().expect("an object").clone());
        let old = old.map(|old| read(resource, old));
        let part = if sign == "=" {
            Part::Status
        } else {
            Part::Main
        };
        let found = find(resource, &new, old.as_ref(), part);
        if found != expected {
            wrong.push(format!(
                "{line}\n  found    {found:#?}\n  expected {expected:#?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn pods_are_refused_as_by_a_genuine_server() {
    check(include_str!("validation/pods.txt"), causes);
}

#[test]
fn kinds_of_the_core_group_are_refused_as_by_a_genuine_server() {
    check(include_str!("validation/core.txt"), causes);
}

#[test]
fn kinds_of_named_groups_are_refused_as_by_a_genuine_server() {
    check(include_str!("validation/others.txt"), causes);
}

#[test]
fn a_forbidden_change_is_shown_as_by_a_genuine_server() {
    let kinds = Kinds::new(|_| TableId(0));
    let catalog = kinds.catalog();
    let mut all = catalog.all();
    let pods = all.find(|each| each.group.is_empty() && each.plural == "pods");
    let pods = pods.expect("the kind is built in");
    let old = json!({"metadata": {"name": "a", "namespace": "vdt"}, "spec": {
        "serviceAccountName": "default", "automountServiceAccountToken": false,
        "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "b"}]}],
    }});
    let change = r#"/spec/containers/0/env/1 {"name":"X","value":"y"} ; /spec/hostname "h" ; /spec/containers/0/resources {"limits":{"cpu":"1500m"}}"#;
    let new = read(pods, changed(&old, change));
    let old = read(pods, old.as_object().expect("an object").clone());
    let found = validate(pods, &new, Some(&old), Part::Main);
    let found: Vec<String> = found.iter().map(StatusCause::text).collect();
    let (_, found) = found[0].split_once('\n').expect("a difference");
    assert_eq!(found, include_str!("validation/difference.txt"));
}

#[test]
fn causes_come_in_the_order_of_a_genuine_server() {
    check(include_str!("validation/order.txt"), causes_in_order);
}

#[test]
fn clients_are_warned_as_by_a_genuine_server() {
    check(include_str!("validation/warnings.txt"), warnings);
}

//! Metrics as the annotations of version 1 have them.

use lariat_apimachinery::object::Object;
use lariat_apimachinery::quantity::Quantity;
use serde_json::{Value, json};

/// The members of a metric that its kind is described in.
const SOURCES: [&str; 5] = [
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
];

/// Copies a member under another name, if it is there.
fn copy(from: &Value, name: &str, to: &mut Object, as_name: &str) {
    let value = from.get(name).filter(|value| !value.is_null());
    to.extend(value.map(|value| (as_name.to_owned(), value.clone())));
}

/// Copies a member that is no pointer in Go, and written even where nothing is.
fn copy_or(from: &Value, name: &str, to: &mut Object, as_name: &str, zero: &str) {
    to.insert(as_name.to_owned(), zero.into());
    copy(from, name, to, as_name);
}

/// Returns the name of the selector of a metric.
fn selector_of(source: &str) -> &'static str {
    if source == "external" {
        "metricSelector"
    } else {
        "selector"
    }
}

/// Returns the name of a value; that of an object's average has no word before it.
fn flat(source: &str, word: &str, value: &str) -> String {
    match (source, value) {
        ("object", "AverageValue") => "averageValue".to_owned(),
        _ => format!("{word}{value}"),
    }
}

/// Writes a metric as annotations do.
pub(super) fn older(metric: &Value, word: &str) -> Value {
    let mut older = Object::new();
    copy_or(metric, "type", &mut older, "type", "");
    for name in SOURCES {
        if let Some(source) = metric.get(name).filter(|source| source.is_object()) {
            older.insert(name.to_owned(), older_source(name, source, word));
        }
    }
    older.into()
}

fn older_source(name: &str, source: &Value, word: &str) -> Value {
    let mut older = Object::new();
    let to = &mut older;
    let (metric, values) = (&source["metric"], &source[word]);
    let flat = |value| flat(name, word, value);
    let is_current = word == "current";
    if matches!(name, "resource" | "containerResource") {
        copy_or(source, "name", to, "name", "");
        copy(
            values,
            "averageUtilization",
            to,
            &flat("AverageUtilization"),
        );
        if name == "containerResource" {
            copy_or(source, "container", to, "container", "");
        }
    } else {
        copy_or(metric, "name", to, "metricName", "");
        copy(metric, "selector", to, selector_of(name));
    }
    if name == "object" {
        let mut target = Object::new();
        let described = &source["describedObject"];
        copy_or(described, "kind", &mut target, "kind", "");
        copy_or(described, "name", &mut target, "name", "");
        copy(described, "apiVersion", &mut target, "apiVersion");
        to.insert("target".into(), target.into());
    }
    // Which values are no pointers differs, as Go writes the zeros of those.
    match name {
        "object" => copy_or(values, "value", to, &flat("Value"), "0"),
        "external" if is_current => copy_or(values, "value", to, &flat("Value"), "0"),
        "external" => copy(values, "value", to, &flat("Value")),
        _ => {}
    }
    let average = flat("AverageValue");
    match name {
        "pods" => copy_or(values, "averageValue", to, &average, "0"),
        "resource" | "containerResource" if is_current => {
            copy_or(values, "averageValue", to, &average, "0");
        }
        _ => copy(values, "averageValue", to, &average),
    }
    older.into()
}

/// Reads a metric as annotations write it; `None` if it is none.
pub(super) fn newer(metric: &Value, word: &str) -> Option<Value> {
    let mut newer = Object::new();
    if !metric.is_object() && !metric.is_null() {
        return None;
    }
    copy_or(metric, "type", &mut newer, "type", "");
    for name in SOURCES {
        match metric.get(name) {
            None | Some(Value::Null) => {}
            Some(source @ Value::Object(_)) => {
                newer.insert(name.to_owned(), newer_source(name, source, word)?);
            }
            Some(_) => return None,
        }
    }
    Some(newer.into())
}

fn newer_source(name: &str, source: &Value, word: &str) -> Option<Value> {
    let (mut newer, mut values) = (Object::new(), Object::new());
    let flat = |value| flat(name, word, value);
    let is_current = word == "current";
    if matches!(name, "resource" | "containerResource") {
        copy_or(source, "name", &mut newer, "name", "");
        let share = flat("AverageUtilization");
        copy(source, &share, &mut values, "averageUtilization");
        if name == "containerResource" {
            copy_or(source, "container", &mut newer, "container", "");
        }
    } else {
        let mut metric = Object::new();
        copy_or(source, "metricName", &mut metric, "name", "");
        copy(source, selector_of(name), &mut metric, "selector");
        newer.insert("metric".into(), metric.into());
    }
    if name == "object" {
        let target = source.get("target").cloned().unwrap_or(Value::Null);
        let described = if target.is_null() { json!({}) } else { target };
        newer.insert("describedObject".into(), described);
    }
    let average = flat("AverageValue");
    match name {
        "pods" => copy_or(source, &average, &mut values, "averageValue", "0"),
        "resource" | "containerResource" if is_current => {
            copy_or(source, &average, &mut values, "averageValue", "0");
        }
        _ => copy(source, &average, &mut values, "averageValue"),
    }
    let value = flat("Value");
    match name {
        "external" if !is_current => copy(source, &value, &mut values, "value"),
        "object" | "external" => {
            copy_or(source, &value, &mut values, "value", "0");
            // A target that has an average may have no zero beside it, which version 1 cannot leave out.
            if !is_current && values.contains_key("averageValue") && is_zero(&values["value"])? {
                values.remove("value");
            }
        }
        _ => {}
    }
    if !is_current {
        let kind = match name {
            "object" if !values.contains_key("averageValue") => "Value",
            "external" if values.contains_key("value") => "Value",
            "resource" | "containerResource" if values.contains_key("averageUtilization") => {
                "Utilization"
            }
            _ => "AverageValue",
        };
        values.insert("type".into(), kind.into());
    }
    newer.insert(word.to_owned(), values.into());
    Some(newer.into())
}

/// Returns whether a quantity is zero; `None` if it is none.
fn is_zero(quantity: &Value) -> Option<bool> {
    let text = match quantity {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(Quantity::parse(&text)? == Quantity::parse("0")?)
}

//! Formats a line as a JSON object.

use std::fmt::Write;

use jiff::Timestamp;
use serde_json::Value;

use super::fields::Record;

/// The fields of the line itself, which an event's fields must not replace.
const OWN: [&str; 4] = ["timestamp", "level", "target", "spans"];

/// Returns the line of an event, without its end.
///
/// The fields of the event and of the spans around it are on one level. Of two with the same name, the inner one is
/// written.
pub(super) fn line(record: &Record<'_>, now: Timestamp) -> String {
    let metadata = record.metadata;
    let spans = record.spans.iter().rev();
    let names: Vec<Value> = spans.map(|span| span.metadata.name().into()).collect();
    let mut line = String::with_capacity(256);
    let _ = write!(line, "{{\"timestamp\":\"{now:.6}\"");
    put(&mut line, "level", &metadata.level().as_str().into());
    put(&mut line, "target", &metadata.target().into());
    if !names.is_empty() {
        put(&mut line, "spans", &names.into());
    }
    // Each line has a message, even if it is empty: collectors expect one.
    let empty = Value::from("");
    put(
        &mut line,
        "message",
        record.fields.get("message").unwrap_or(&empty),
    );
    for (name, value) in fields(record) {
        if OWN.contains(&name) {
            // An event of the program may have a field such as `level`.
            put(&mut line, &format!("field.{name}"), value);
        } else {
            put(&mut line, name, value);
        }
    }
    line.push('}');
    line
}

/// Returns the fields of the spans, outermost first, and then of the event.
///
/// Each name occurs once.
fn fields<'a>(record: &Record<'a>) -> Vec<(&'static str, &'a Value)> {
    let mut all: Vec<(&'static str, &'a Value)> = Vec::new();
    let spans = record.spans.iter().rev().map(|span| span.fields);
    for (name, value) in spans
        .chain([record.fields])
        .flat_map(|fields| fields.iter())
    {
        match all.iter_mut().find(|(each, _)| *each == name) {
            // It was written already, and a span must not replace it.
            _ if name == "message" => {}
            Some((_, outer)) => *outer = value,
            None => all.push((name, value)),
        }
    }
    all
}

fn put(line: &mut String, name: &str, value: &Value) {
    let _ = write!(line, ",{}:{value}", Value::from(name));
}

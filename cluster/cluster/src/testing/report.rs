//! The report in the error of a wait.

use std::fmt::Write as _;

use http::Request as HttpRequest;
use kube::Client;
use serde_json::Value;

use crate::journal::RecordedRequest;

/// The number of bytes of a status that are shown.
const STATUS: usize = 1000;

/// The number of events that are shown.
const EVENTS: usize = 5;

/// Describes an object: its name, whether it is being deleted, its status and conditions.
///
/// Labels, data and specification are left out, which may be long or secret.
pub(super) fn object(subject: &str, object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let mut lines = format!("  {subject}");
    for (title, pointer) in [
        ("version", "/metadata/resourceVersion"),
        ("uid", "/metadata/uid"),
        ("being deleted since", "/metadata/deletionTimestamp"),
    ] {
        if let Some(value) = text(pointer) {
            add(&mut lines, format_args!(", {title} {value}"));
        }
    }
    if let Some(finalizers) = object.pointer("/metadata/finalizers") {
        add(&mut lines, format_args!(", finalizers {finalizers}"));
    }
    if let Some(status) = object.get("status").and_then(Value::as_object) {
        let mut status = status.clone();
        let conditions = status.remove("conditions");
        let status = Value::Object(status).to_string();
        add(&mut lines, format_args!("\n  status {}", cut(&status)));
        lines.push_str(&conditions_table(conditions.as_ref()));
    }
    lines
}

/// Describes a request.
pub(super) fn request(request: &RecordedRequest) -> String {
    let mut text = format!("{} {}?{}", request.verb, request.path, request.query);
    if !request.faults.is_empty() {
        add(&mut text, format_args!(" met {:?}", request.faults));
    }
    text
}

/// Describes the last events about an object, if they can be read.
pub(super) async fn events(client: &Client, namespace: &str, name: &str) -> Vec<String> {
    let request = HttpRequest::get(format!("/api/v1/namespaces/{namespace}/events"));
    let Ok(request) = request.body(Vec::new()) else {
        return Vec::new();
    };
    let Ok(list) = client.request::<Value>(request).await else {
        return Vec::new();
    };
    let items = list["items"].as_array().into_iter().flatten();
    let about = items.filter(|event| event["involvedObject"]["name"] == name);
    let mut events: Vec<(String, String)> = about.map(event).collect();
    events.sort();
    let shown = events.len().saturating_sub(EVENTS);
    events.drain(shown..).map(|(_, text)| text).collect()
}

/// Returns the time and the text of an event.
fn event(event: &Value) -> (String, String) {
    let text = |name: &str| event[name].as_str().filter(|text| !text.is_empty());
    let time = text("eventTime")
        .or(text("lastTimestamp"))
        .unwrap_or_default();
    let kind = text("type").unwrap_or("Normal");
    let (reason, message) = (
        text("reason").unwrap_or_default(),
        text("message").unwrap_or_default(),
    );
    (time.to_owned(), format!("{kind} {reason}: {message}"))
}

/// Writes conditions as `kubectl describe` does, with aligned columns.
fn conditions_table(conditions: Option<&Value>) -> String {
    let all = conditions.and_then(Value::as_array).into_iter().flatten();
    let rows: Vec<[&str; 4]> = all
        .map(|condition| {
            ["type", "status", "reason", "message"]
                .map(|name| condition[name].as_str().unwrap_or_default())
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = ["CONDITION", "STATUS", "REASON", "MESSAGE"];
    let rows: Vec<[&str; 4]> = std::iter::once(header).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths = [0, 1, 2].map(|column| width(column).unwrap_or(0));
    let mut table = String::new();
    for [kind, status, reason, message] in rows {
        let [first, second, third] = widths;
        let line = format!("  {kind:first$}  {status:second$}  {reason:third$}  {message}");
        add(&mut table, format_args!("\n{}", line.trim_end()));
    }
    table
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(STATUS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(more);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_described_with_conditions_and_without_content() {
        let pod = json!({
            "metadata": {
                "name": "web", "namespace": "shop", "resourceVersion": "7", "finalizers": ["a/b"],
                "deletionTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"password": "hunter2"},
            "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": "False", "reason": "NotReady", "message": "no"},
            ]},
        });
        let expected = "  pods shop/web, version 7, being deleted since 2026-01-01T00:00:00Z, finalizers [\"a/b\"]\n  \
            status {\"phase\":\"Pending\"}\n  \
            CONDITION     STATUS  REASON    MESSAGE\n  \
            PodScheduled  True\n  \
            Ready         False   NotReady  no";
        assert_eq!(object("pods shop/web", &pod), expected);
    }
}

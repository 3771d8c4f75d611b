//! A conversation of client-go with a genuine API server.
//!
//! `client_go.jsonl` has the requests that typed clients and the metadata client of client-go 1.36 made, most of them
//! in protobuf, and what kube-apiserver 1.36.2 answered, in the order of time: a request in each line, bodies in
//! base64. A proxy between the two wrote them down.

use std::collections::BTreeSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use http::Method;
use lariat_apimachinery::protobuf::Envelope;
use serde_json::{Value, json};

use crate::bench::Bench;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Reads a body, whichever form it has.
fn document(content_type: &str, body: &[u8]) -> Value {
    if content_type != PROTOBUF {
        return serde_json::from_slice(body).expect("the answer is JSON");
    }
    let envelope = Envelope::open(body).expect("the answer has an envelope");
    envelope.object().expect("its type is known").into()
}

/// Replaces what no two servers have in common.
fn normal(value: &mut Value) {
    match value {
        Value::Object(members) => {
            // A message that is empty is a zero value for clients of Go, as one that is missing is.
            members.retain(|_, member| !member.is_null());
            for (name, member) in members {
                let is_server_made = match name.as_str() {
                    "uid" | "resourceVersion" => true,
                    _ => member.as_str().is_some_and(is_recent),
                };
                if is_server_made && member.is_string() {
                    *member = json!(format!("<{name}>"));
                }
                normal(member);
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(normal);
            // Entries of one second have no order.
            items.sort_by_key(|item| item["manager"].as_str().map(str::to_owned));
        }
        _ => {}
    }
}

/// Returns where two values differ, with both.
fn differences(found: &Value, expected: &Value, path: &str, all: &mut Vec<String>) {
    if let (Value::Object(found), Value::Object(expected)) = (found, expected) {
        let names: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
        for name in names {
            let found = found.get(name).unwrap_or(&Value::Null);
            let expected = expected.get(name).unwrap_or(&Value::Null);
            differences(found, expected, &format!("{path}/{name}"), all);
        }
    } else if found != expected {
        all.push(format!("{path}: {found} instead of {expected}"));
    }
}

/// Returns whether a text is a time after the recording began.
fn is_recent(text: &str) -> bool {
    let time = text.parse::<jiff::Timestamp>();
    time.is_ok_and(|time| time > "2026-01-01T00:00:00Z".parse().expect("it is a time"))
}

#[tokio::test(start_paused = true)]
async fn client_go_is_answered_as_by_a_genuine_server() {
    let bench = Bench::new().await;
    let text =
        |exchange: &Value, name: &str| exchange[name].as_str().unwrap_or_default().to_owned();
    let bytes = |exchange: &Value, name: &str| BASE64.decode(text(exchange, name)).expect("base64");
    for line in include_str!("client_go.jsonl").lines() {
        let exchange: Value = serde_json::from_str(line).expect("a line is JSON");
        let (method, path) = (text(&exchange, "method"), text(&exchange, "path"));
        let mut headers = vec![("user-agent", "client-go")];
        let recorded = exchange["headers"].as_object().expect("headers");
        headers.extend(
            recorded
                .iter()
                .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))),
        );
        let answer = bench
            .ask(
                Method::from_bytes(method.as_bytes()).expect("a method"),
                &path,
                &headers,
                bytes(&exchange, "body"),
            )
            .await;
        let content_type = text(&exchange, "content_type");
        assert_eq!(
            answer.code.as_u16(),
            exchange["code"],
            "{method} {path}: {}",
            answer.text
        );
        assert_eq!(
            answer.headers["content-type"], content_type,
            "{method} {path}"
        );
        let mut expected = document(&content_type, &bytes(&exchange, "answer"));
        let mut found = document(&content_type, &answer.bytes);
        normal(&mut expected);
        normal(&mut found);
        let mut all = Vec::new();
        differences(&found, &expected, "", &mut all);
        assert!(all.is_empty(), "{method} {path}:\n{}", all.join("\n"));
    }
}

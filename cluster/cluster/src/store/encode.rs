//! Encoding an object with a gap where its resource version will be.

use std::io::{self, Write};
use std::sync::Arc;

use lariat_apimachinery::object::{Object, finalizers};
use lariat_core::{Labels, ObjectKey};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use super::object::Draft;

/// The order in which the API server writes metadata; other members follow.
const METADATA_ORDER: [&str; 4] = ["name", "generateName", "namespace", "uid"];

pub(super) fn draft(object: &Object) -> Draft {
    let empty = Object::new();
    let metadata = object
        .get("metadata")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let text = |name: &str| {
        metadata
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let members = metadata.get("labels").and_then(Value::as_object);
    let labels: Labels = members
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect();
    let (before, metadata_after) = metadata_json(metadata);
    Draft {
        key: ObjectKey::namespaced(text("namespace"), text("name")),
        uid: Arc::from(text("uid")),
        labels,
        deleting: metadata.contains_key("deletionTimestamp"),
        has_finalizers: !finalizers(object).is_empty(),
        head: head_json(object),
        before,
        after: after_json(object, &metadata_after),
        metadata_after: metadata_after.len(),
    }
}

fn head_json(object: &Object) -> Vec<u8> {
    let mut json = vec![b'{'];
    // TypeMeta comes first in Go's structs, so these two lead the JSON of a genuine server.
    for name in ["kind", "apiVersion"] {
        if let Some(value) = object.get(name) {
            member(&mut json, name, value);
        }
    }
    json
}

/// Writes `,"metadata":{…"resourceVersion":"`, and the part after the version.
fn metadata_json(metadata: &Object) -> (Vec<u8>, Vec<u8>) {
    let mut before = br#","metadata":{"#.to_vec();
    for name in METADATA_ORDER {
        if let Some(value) = metadata.get(name) {
            member(&mut before, name, value);
        }
    }
    // The version comes right after the name and the uid, as in objects of kube-apiserver; everything before it and
    // after it is encoded now, outside of the lock, where the version is not known yet.
    if before.last() != Some(&b'{') {
        before.push(b',');
    }
    before.extend_from_slice(br#""resourceVersion":""#);
    let mut after = br#"""#.to_vec();
    for (name, value) in metadata {
        // The sent version is that of the state the writer read; the new one is stamped at the commit.
        if name != "resourceVersion" && !METADATA_ORDER.contains(&name.as_str()) {
            member(&mut after, name, value);
        }
    }
    after.push(b'}');
    (before, after)
}

fn after_json(object: &Object, metadata_after: &[u8]) -> Vec<u8> {
    let mut json = metadata_after.to_vec();
    for (name, value) in object {
        if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            member(&mut json, name, value);
        }
    }
    json.push(b'}');
    json
}

/// Writes `"name":value`, with a comma unless it is the first member.
fn member(json: &mut Vec<u8>, name: &str, value: &Value) {
    if json.last() != Some(&b'{') {
        json.push(b',');
    }
    let write = "writing JSON to memory cannot fail";
    serde_json::to_writer(&mut *json, name).expect(write);
    json.push(b':');
    let mut serializer = Serializer::with_formatter(json, GoNumbers);
    value.serialize(&mut serializer).expect(write);
}

/// Writes JSON without spaces, and numbers as Go does.
///
/// Source: `floatEncoder` in Go's `encoding/json`.
struct GoNumbers;

impl Formatter for GoNumbers {
    fn write_u64<W: ?Sized + Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        // Go reads an integer that does not fit into an `int64` as a `float64`.
        match i64::try_from(value) {
            Ok(value) => self.write_i64(writer, value),
            #[expect(clippy::cast_precision_loss, reason = "Go loses the same digits")]
            Err(_) => self.write_f64(writer, value as f64),
        }
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let size = value.abs();
        if size == 0.0 || (1e-6..1e21).contains(&size) {
            return write!(writer, "{value}");
        }
        let text = format!("{value:e}");
        // Go writes the sign of a positive exponent.
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let sign = if exponent.starts_with('-') { "" } else { "+" };
        write!(writer, "{digits}e{sign}{exponent}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_by_a_genuine_server() {
        // Answers of a kube-apiserver.
        for (sent, shown) in [
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9223372036854776000"),
            ("18446744073709551615", "18446744073709552000"),
            ("-9223372036854775809", "-9223372036854776000"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("123456789012345678901234", "1.2345678901234569e+23"),
            ("1e-6", "0.000001"),
            ("1e-7", "1e-7"),
            ("1.5e-9", "1.5e-9"),
            ("0.1", "0.1"),
            ("4.9e-324", "5e-324"),
        ] {
            let mut json = vec![b'{'];
            member(&mut json, "x", &serde_json::from_str(sent).unwrap());
            assert_eq!(String::from_utf8(json).unwrap(), format!("{{\"x\":{shown}"));
        }
    }
}

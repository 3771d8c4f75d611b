//! Bodies in protobuf.

use std::fs;
use std::io::Result;
use std::path::Path;

use lariat_cluster::fuzzing::{conform, make, read_protobuf, write_protobuf};
use serde_json::{Map, Value};

/// Kinds whose objects are seeds; between them they have every form of field there is.
const KINDS: [(&str, &str); 8] = [
    ("v1", "ConfigMap"),
    ("v1", "Event"),
    ("v1", "Pod"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("coordination.k8s.io/v1", "Lease"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
];

/// How large a seed should be, in bytes: large enough for most forms of fields, small enough to be fast.
const SEED: usize = 600;

/// Writes the seeds that are made rather than written by hand: one of each kind.
///
/// # Errors
///
/// The folder of the corpus cannot be written.
pub fn write_seeds() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/protobuf");
    fs::create_dir_all(&folder)?;
    for (api_version, kind) in KINDS {
        let bodies = (0..200).map(|seed| write_protobuf(&make(api_version, kind, seed)));
        let fitting = bodies.min_by_key(|body| body.len().abs_diff(SEED));
        fs::write(
            folder.join(kind.to_lowercase()),
            fitting.unwrap_or_default(),
        )?;
    }
    Ok(())
}

/// A body in protobuf, or in JSON if it begins with a brace.
pub(crate) fn run(data: &[u8]) {
    if data.starts_with(b"{") {
        return from_json(data);
    }
    let Ok(object) = read_protobuf(data) else {
        return;
    };
    let object = Value::Object(object);
    assert_eq!(again(&object), object, "written and read again");
}

/// Writes an object of a kind, and reads it.
fn again(object: &Value) -> Value {
    let body = write_protobuf(object);
    read_protobuf(&body)
        .expect("what was written can be read")
        .into()
}

fn from_json(data: &[u8]) {
    let Ok(Value::Object(mut object)) = serde_json::from_slice(data) else {
        return;
    };
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let is = (text("apiVersion").to_owned(), text("kind").to_owned());
    let kind = KINDS
        .iter()
        .find(|(api_version, kind)| is.0 == *api_version && is.1 == *kind);
    let Some((api_version, kind)) = kind else {
        return;
    };
    if conform(api_version, kind, &mut object).is_err() {
        return;
    }
    let read = again(&Value::Object(object.clone()));
    let Value::Object(members) = &read else {
        panic!("an object is read as one");
    };
    within("", members, &object);
    assert_eq!(again(&read), read, "the second time nothing is left out");
}

/// Checks that what was read of an object is in it; zeros that mean nothing may be left out.
fn within(path: &str, read: &Map<String, Value>, object: &Map<String, Value>) {
    for (name, value) in read {
        let path = format!("{path}.{name}");
        match (value, object.get(name)) {
            (Value::Object(value), Some(Value::Object(other))) => within(&path, value, other),
            (Value::Array(items), Some(Value::Array(others))) => {
                assert_eq!(items.len(), others.len(), "{path}");
                for (item, other) in items.iter().zip(others) {
                    match (item, other) {
                        (Value::Object(item), Value::Object(other)) => within(&path, item, other),
                        _ => assert_eq!(item, other, "{path}"),
                    }
                }
            }
            // What is no pointer in Go is written although it is empty.
            (Value::Object(empty), None) if empty.is_empty() => {}
            (value, other) => assert_eq!(Some(value), other, "{path}"),
        }
    }
}

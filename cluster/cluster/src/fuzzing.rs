//! Functions that the targets in `cluster/fuzz` test without a request.
//!
//! This is not public API: it is there with the feature `fuzzing` alone, and changes at any time.

use lariat_apimachinery::protobuf::{Envelope, encode, maker};
use lariat_apimachinery::schema::builtin;
use lariat_apimachinery::structural::json_path::JsonPath;
use lariat_apimachinery::structural::{Structural, check_rules};
use serde_json::{Map, Value};

use crate::verbs;
use crate::wire::document::Document;

/// Reads JSON as a request body, with the warnings of duplicate members.
///
/// # Errors
///
/// The document is malformed.
pub fn read_json(bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    let document = Document::json(bytes)?;
    Ok((document.value, document.duplicates.warnings()))
}

/// Reads YAML as a request body.
///
/// # Errors
///
/// The document is malformed.
pub fn read_yaml(bytes: &[u8]) -> Result<Value, String> {
    Document::yaml(bytes).map(|document| document.value)
}

/// Writes YAML as an answer.
#[must_use]
pub fn write_yaml(value: &Value) -> String {
    lariat_core::yaml::write(value)
}

/// Reads an object of a built-in kind from a body in protobuf.
///
/// # Errors
///
/// The message is malformed.
pub fn read_protobuf(body: &[u8]) -> Result<Map<String, Value>, String> {
    let object = Envelope::open(body).and_then(|envelope| envelope.object());
    object.map_err(|error| error.to_string())
}

/// Writes an object of a built-in kind as a body in protobuf.
///
/// # Panics
///
/// If it is no object of a built-in kind.
#[must_use]
pub fn write_protobuf(object: &Value) -> Vec<u8> {
    let object = object.as_object().expect("it is an object");
    encode(object).expect("its kind is a built-in one")
}

/// Makes an object of a built-in kind from a seed.
///
/// # Panics
///
/// If the kind is not a built-in one.
#[must_use]
pub fn make(api_version: &str, kind: &str, seed: u64) -> Value {
    maker::make(api_version, kind, seed)
}

/// Patches an object of a built-in kind.
///
/// # Errors
///
/// The code and the `Status` with which a request is refused.
///
/// # Panics
///
/// If there is no such kind or no such type of patch.
pub fn patch(
    media_type: &str,
    body: &[u8],
    api_version: &str,
    kind: &str,
    object: Map<String, Value>,
) -> Result<Map<String, Value>, (u16, String)> {
    let schema = builtin(api_version, kind).expect("the kind is a built-in one");
    let patched = verbs::patched(media_type, body, schema.root(), object);
    match patched {
        Ok(patched) => Ok(patched.expect("there is such a type of patch")),
        Err(error) => {
            let status = String::from_utf8_lossy(&error.json()).into_owned();
            Err((error.code.as_u16(), status))
        }
    }
}

/// Follows a JSON path to the first value it leads to.
///
/// # Errors
///
/// The path is malformed.
pub fn follow(path: &str, root: &Value) -> Result<Option<Value>, String> {
    Ok(JsonPath::parse(path)?.first(root).cloned())
}

/// Checks a schema's rules as those of a CRD; returns the number of faults.
#[must_use]
pub fn faults_of_rules(schema: &Value) -> usize {
    check_rules(schema, true).faults().count()
}

/// Validates an object, which may replace an old one, against a schema.
///
/// Returns the causes for which it is invalid.
#[must_use]
pub fn validate(schema: &Value, object: &Value, old: Option<&Value>) -> Vec<String> {
    let structural = Structural::compile(schema);
    let causes = structural.validate(object, old, &[]);
    causes.iter().map(|cause| format!("{cause:?}")).collect()
}

/// Reads an object as its built-in kind is read.
///
/// Members that the kind does not have are dropped.
///
/// # Errors
///
/// The object does not have the types of its kind.
///
/// # Panics
///
/// If the kind is not a built-in one.
pub fn conform(
    api_version: &str,
    kind: &str,
    object: &mut Map<String, Value>,
) -> Result<(), String> {
    let schema = builtin(api_version, kind).expect("the kind is a built-in one");
    let read = lariat_apimachinery::schema::decode(schema.root(), object);
    read.map(drop).map_err(|error| error.to_string())
}

//! YAML and JSON bodies, against each other and `serde_json`.

use lariat_apimachinery::schema::read_whole_numbers;
use lariat_cluster::fuzzing::{read_json, read_yaml, write_yaml};
use lariat_core::yaml;
use serde_json::Value;

pub(crate) fn run(data: &[u8]) {
    // The reader of kubectl's words takes any text.
    let _ = yaml::read(&String::from_utf8_lossy(data));
    let json = read_json(data);
    let reference = serde_json::from_slice::<Value>(data);
    if let Ok((value, _)) = &json {
        assert_eq!(
            reference.as_ref().ok().map(whole),
            Some(whole(value)),
            "JSON is what serde_json reads"
        );
        same_as_yaml(value);
    }
    if let Ok(value) = read_yaml(data) {
        if let Ok((json, _)) = &json
            && data.trim_ascii_start().starts_with(b"{")
        {
            assert_eq!(
                whole(&value),
                whole(json),
                "an object in JSON is the same in YAML"
            );
        }
        same_as_yaml(&value);
    }
}

/// Checks that a value is the same when it was written as YAML and read.
fn same_as_yaml(value: &Value) {
    let text = write_yaml(value);
    let again = read_yaml(text.as_bytes());
    assert_eq!(again.as_ref().map(whole), Ok(whole(value)), "{text}");
    let text = yaml::write(value);
    let again = yaml::read(&text);
    assert_eq!(again.as_ref().map(whole), Ok(whole(value)), "{text}");
}

/// Writes floats without a fraction as integers.
///
/// As in Go, `1.0` is an integer in YAML, and `-0` is one in JSON.
fn whole(value: &Value) -> Value {
    let mut value = value.clone();
    read_whole_numbers(&mut value);
    value
}

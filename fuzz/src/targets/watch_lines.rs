//! The lines of a watch, from the bytes on the wire to objects, against `serde_json`.

use lariat_cache::fuzzing::{Event, event, lines};
use serde_json::Value;

use super::metadata::{check, has_duplicates, is_json, pod};

/// Where a chunk of the wire ends; no UTF-8 has this byte.
const CUT: u8 = 0xff;

pub(crate) fn run(data: &[u8]) {
    let chunks: Vec<&[u8]> = data.split(|byte| *byte == CUT).collect();
    let stream = chunks.concat();
    let (read, left) = lines(&chunks);
    let (whole, rest) = match stream.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => (Some(&stream[..at]), &stream[at + 1..]),
        None => (None, &stream[..]),
    };
    let lines = whole
        .into_iter()
        .flat_map(|whole| whole.split(|byte| *byte == b'\n'));
    let expected: Vec<Vec<u8>> = lines
        .map(|line| String::from_utf8_lossy(line).into_owned().into())
        .collect();
    assert_eq!(read, expected, "lines do not depend on chunks");
    assert_eq!(left, rest.len(), "the rest waits for its line feed");
    read.iter().for_each(|line| check_line(line));
    if std::str::from_utf8(rest).is_ok() {
        check_line(rest);
    }
}

fn check_line(line: &[u8]) {
    let read = event(line, &pod());
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        let is_refused = match &read {
            Ok(Event::Added(object) | Event::Modified(object) | Event::Deleted(object)) => {
                !is_json(object.json())
            }
            other => other.is_err(),
        };
        assert!(is_json(line) || is_refused, "it is no JSON: {read:?}");
        return;
    };
    let may_be_refused = has_duplicates(line);
    let object = value.get("object").unwrap_or(&Value::Null);
    let of_type = match &read {
        Ok(Event::Added(_)) => "ADDED",
        Ok(Event::Modified(_)) => "MODIFIED",
        Ok(Event::Deleted(_)) => "DELETED",
        Ok(Event::Bookmark { .. }) => "BOOKMARK",
        Ok(Event::Error(_)) => "ERROR",
        Err(_) => "",
    };
    let event_type = value.as_object().and_then(|line| line.get("type"));
    if read.is_ok() {
        assert_eq!(event_type.and_then(Value::as_str), Some(of_type));
        assert!(object.is_object(), "the object is none: {read:?}");
    }
    match (&read, event_type.and_then(Value::as_str)) {
        (Ok(Event::Added(found) | Event::Modified(found) | Event::Deleted(found)), _) => {
            check(object, Some(found), may_be_refused);
        }
        (Err(_), Some("ADDED" | "MODIFIED" | "DELETED")) => check(object, None, may_be_refused),
        (
            Ok(Event::Bookmark {
                version,
                ends_initial,
            }),
            _,
        ) => {
            let metadata = &object["metadata"];
            assert_eq!(metadata["resourceVersion"], version.to_string().as_str());
            let marker = &metadata["annotations"]["k8s.io/initial-events-end"];
            assert_eq!(*ends_initial, marker == "true");
        }
        _ => {}
    }
}

//! Reading a line of a watch.

use std::borrow::Cow;

use lariat_core::{Gvk, RawObject, RawObjectError, ResourceVersion, without_values};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::{ReflectorError, Status};
use crate::store::{CachedObject, Delta};

/// What a line of a watch says.
#[derive(Debug)]
pub(super) enum WatchEvent {
    /// Something happened to an object, which has this version since.
    Delta(Delta, ResourceVersion),
    /// Something happened to an object, whose state cannot be read.
    Unreadable(RawObjectError),
    /// Everything up to a version has been told.
    Bookmark(ResourceVersion),
    /// The watch cannot go on.
    Error(ReflectorError),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, rename = "type")]
    event: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark<'a> {
    #[serde(borrow)]
    metadata: BookmarkMetadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
}

impl WatchEvent {
    /// Reads a line; the error says what is wrong with it.
    pub(super) fn parse(line: &[u8], gvk: &Gvk) -> Result<Self, String> {
        let envelope: Envelope<'_> =
            serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
        let object = envelope.object.get().as_bytes();
        match &*envelope.event {
            "ADDED" | "MODIFIED" => match RawObject::parse(object, gvk) {
                Ok(object) => Ok(Self::delta(object, Delta::Present)),
                // It is there, so its last readable state is better than none.
                Err(error) if RawObject::key_of(object).is_some() => Ok(Self::Unreadable(error)),
                Err(error) => Err(error.to_string()),
            },
            "DELETED" => {
                let object = RawObject::parse(object, gvk).map_err(|error| error.to_string())?;
                Ok(Self::delta(object, Delta::Gone))
            }
            "BOOKMARK" => {
                let bookmark: Bookmark<'_> =
                    serde_json::from_slice(object).map_err(|error| unreadable(&error))?;
                Ok(Self::Bookmark(ResourceVersion::new(
                    &bookmark.metadata.resource_version,
                )))
            }
            "ERROR" => {
                let status: Status =
                    serde_json::from_slice(object).map_err(|error| unreadable(&error))?;
                Ok(Self::Error(status.into_error("watch")))
            }
            other => Err(format!("unknown event type {other:?}")),
        }
    }

    fn delta(object: RawObject, what: fn(CachedObject) -> Delta) -> Self {
        let version = object.version().clone();
        Self::Delta(what(CachedObject::new(object)), version)
    }
}

fn unreadable(error: &serde_json::Error) -> String {
    without_values(&error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<WatchEvent, String> {
        WatchEvent::parse(line.as_bytes(), &Gvk::new("", "v1", "Pod"))
    }

    #[test]
    fn each_type_is_read() {
        let object = r#"{"metadata":{"name":"a","resourceVersion":"5"}}"#;
        for event in ["ADDED", "MODIFIED", "DELETED"] {
            let parsed = parse(&format!(r#"{{"type":"{event}","object":{object}}}"#)).unwrap();
            let WatchEvent::Delta(delta, version) = parsed else {
                panic!("{event}: {parsed:?}");
            };
            assert_eq!(matches!(delta, Delta::Gone(_)), event == "DELETED");
            assert_eq!(version, ResourceVersion::from(5));
        }
        let bookmark = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#;
        assert!(matches!(parse(bookmark), Ok(WatchEvent::Bookmark(v)) if v == 9.into()));
    }

    #[test]
    fn expiry_is_told_apart_from_other_errors() {
        let error = |status: &str| match parse(&format!(r#"{{"type":"ERROR","object":{status}}}"#))
        {
            Ok(WatchEvent::Error(error)) => error,
            other => panic!("{other:?}"),
        };
        assert!(error(r#"{"code":410,"reason":"Expired"}"#).is_expired());
        assert!(error(r#"{"reason":"Gone"}"#).is_expired());
        let busy = error(r#"{"code":429,"details":{"retryAfterSeconds":3}}"#);
        assert_eq!(busy.retry_after(), Some(std::time::Duration::from_secs(3)));
    }

    #[test]
    fn a_bad_line_says_what_is_wrong() {
        for (line, reason) in [
            ("", "EOF"),
            (r#"{"type":"MOD"#, "EOF"),
            (r#"{"type":"STRANGE","object":{}}"#, "unknown event type"),
            (
                r#"{"type":"ADDED","object":{"metadata":{}}}"#,
                "missing field `name`",
            ),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}

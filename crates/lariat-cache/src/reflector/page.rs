//! Reading a page of a list.

use std::borrow::Cow;

use lariat_core::{ResourceVersion, StrictObject, without_values};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::ReflectorError;

/// One page of a list; its objects are not read yet.
#[derive(Debug)]
pub(super) struct Page<'a> {
    pub(super) version: ResourceVersion,
    pub(super) continue_token: Option<String>,
    /// How many objects follow, if the server says so.
    pub(super) remaining: Option<u64>,
    pub(super) items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    metadata: StrictObject<Metadata<'a>>,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    #[serde(borrow, default, rename = "continue")]
    continue_token: Cow<'a, str>,
    #[serde(default)]
    remaining_item_count: Option<u64>,
}

/// Makes a page valid UTF-8 as Go's encoder does, so that a byte in one object does not take the others with it.
pub(super) fn valid(json: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(json) {
        Ok(json) => json.into_bytes(),
        Err(error) => String::from_utf8_lossy(error.as_bytes())
            .into_owned()
            .into_bytes(),
    }
}

impl<'a> Page<'a> {
    pub(super) fn parse(json: &'a [u8]) -> Result<Self, ReflectorError> {
        let malformed = |detail: String| ReflectorError::Malformed {
            verb: "list",
            detail,
        };
        let StrictObject(envelope) = serde_json::from_slice::<StrictObject<Envelope<'_>>>(json)
            .map_err(|error| malformed(without_values(&error.to_string())))?;
        let StrictObject(metadata) = envelope.metadata;
        if metadata.resource_version.is_empty() {
            return Err(malformed("the list has no resource version".into()));
        }
        Ok(Self {
            version: ResourceVersion::new(&metadata.resource_version),
            continue_token: Some(metadata.continue_token.into_owned()).filter(|t| !t.is_empty()),
            remaining: metadata.remaining_item_count,
            items: envelope.items.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Page<'_>, ReflectorError> {
        Page::parse(json.as_bytes())
    }

    #[test]
    fn a_page_says_where_the_next_one_is() {
        let page = parse(
            r#"{"metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":2},
                "items":[{"metadata":{"name":"a"}},{"metadata":5}]}"#,
        )
        .unwrap();
        assert_eq!(page.items.len(), 2);
        assert_eq!(
            (page.continue_token.as_deref(), page.remaining),
            (Some("t"), Some(2))
        );
    }

    #[test]
    fn go_s_empty_list_is_null() {
        let page = parse(r#"{"metadata":{"resourceVersion":"7","continue":""},"items":null}"#);
        let page = page.unwrap();
        assert!(page.items.is_empty() && page.continue_token.is_none());
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for json in [
            "",
            "[]",
            "{}",
            r#"{"items":[]}"#,
            "<html>",
            r#"[{"resourceVersion":"7"},[]]"#,
            r#"{"metadata":["7"],"items":[]}"#,
        ] {
            assert!(parse(json).is_err(), "{json}");
        }
    }
}

//! Reading a page of a list.

use std::borrow::Cow;

use lariat_core::{Gvk, ObjectKey, RawObject, RawObjectError, ResourceVersion, without_values};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::ReflectorError;
use crate::store::CachedObject;

/// One page of a list.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) version: ResourceVersion,
    pub(super) continue_token: Option<String>,
    /// How many objects follow, if the server says so.
    pub(super) remaining: Option<u64>,
    pub(super) objects: Vec<CachedObject>,
    /// Items that cannot be read, with their key where that can; the others are not affected.
    pub(super) unreadable: Vec<(Option<ObjectKey>, RawObjectError)>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
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

impl Page {
    pub(super) fn parse(json: &[u8], gvk: &Gvk) -> Result<Self, ReflectorError> {
        let malformed = |detail: String| ReflectorError::Malformed {
            verb: "list",
            detail,
        };
        let envelope: Envelope<'_> = serde_json::from_slice(json)
            .map_err(|error| malformed(without_values(&error.to_string())))?;
        let metadata = envelope.metadata;
        if metadata.resource_version.is_empty() {
            return Err(malformed("the list has no resource version".into()));
        }
        let mut page = Self {
            version: ResourceVersion::new(&metadata.resource_version),
            continue_token: Some(metadata.continue_token.into_owned()).filter(|t| !t.is_empty()),
            remaining: metadata.remaining_item_count,
            objects: Vec::new(),
            unreadable: Vec::new(),
        };
        let items = envelope.items.unwrap_or_default();
        page.objects.reserve_exact(items.len());
        for item in items {
            match RawObject::parse(item.get().as_bytes(), gvk) {
                Ok(object) => page.objects.push(CachedObject::new(object)),
                Err(error) => {
                    let key = RawObject::key_of(item.get().as_bytes());
                    page.unreadable.push((key, error));
                }
            }
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Page, ReflectorError> {
        Page::parse(json.as_bytes(), &Gvk::new("", "v1", "Pod"))
    }

    #[test]
    fn a_bad_item_does_not_hide_the_others() {
        let page = parse(
            r#"{"metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":2},
                "items":[{"metadata":{"name":"a"}},{"metadata":5},{"metadata":{"name":"b"}}]}"#,
        )
        .unwrap();
        let names: Vec<&str> = page
            .objects
            .iter()
            .map(|object| object.key().name())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(page.unreadable.len(), 1);
        assert_eq!(
            (page.continue_token.as_deref(), page.remaining),
            (Some("t"), Some(2))
        );
    }

    #[test]
    fn go_s_empty_list_is_null() {
        let page = parse(r#"{"metadata":{"resourceVersion":"7","continue":""},"items":null}"#);
        let page = page.unwrap();
        assert!(page.objects.is_empty() && page.continue_token.is_none());
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for json in ["", "[]", "{}", r#"{"items":[]}"#, "<html>"] {
            assert!(parse(json).is_err(), "{json}");
        }
    }
}

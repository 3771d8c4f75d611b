//! The pages of a list, against `serde_json`.

use lariat_cache::fuzzing::{ListPage, list_page};
use serde_json::Value;

use super::metadata::{check, has_duplicates, is_json, pod};

pub(crate) fn run(data: &[u8]) {
    let page = list_page(data, &pod());
    // A byte that is no UTF-8 is replaced, as Go's decoder does.
    let text = String::from_utf8_lossy(data);
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        let is_damaged = |page: &ListPage| {
            let items = page.items.iter();
            items.flatten().any(|object| !is_json(object.json()))
                || page.items.iter().any(Result::is_err)
        };
        let is_refused = page.as_ref().map_or(true, is_damaged);
        assert!(is_json(text.as_bytes()) || is_refused, "it is no JSON");
        return;
    };
    let may_be_refused = has_duplicates(text.as_bytes());
    let metadata = value.as_object().and_then(|page| page.get("metadata"));
    let version = metadata.and_then(|metadata| metadata.get("resourceVersion"));
    let items = value.get("items").unwrap_or(&Value::Null);
    let Ok(page) = page else {
        let is_page = version
            .is_some_and(|version| version.as_str().is_some_and(|v| !v.is_empty()))
            // Without `items` it is no list; one that names a type may be of another kind.
            && value.get("items").is_some_and(|items| items.is_null() || items.is_array())
            && ["kind", "apiVersion"].iter().all(|member| value.get(member).is_none())
            && metadata.is_some_and(is_usual);
        assert!(!is_page || may_be_refused, "refused: {value}");
        return;
    };
    let metadata = metadata.expect("a page has metadata");
    assert!(metadata.is_object(), "metadata is an object");
    assert_eq!(
        page.version.to_string(),
        version.and_then(Value::as_str).unwrap_or_default()
    );
    let token = metadata
        .get("continue")
        .and_then(Value::as_str)
        .unwrap_or_default();
    assert_eq!(page.continue_token.as_deref().unwrap_or_default(), token);
    let remaining = metadata.get("remainingItemCount").and_then(Value::as_u64);
    assert_eq!(page.remaining, remaining);
    let expected = items.as_array().map_or(&[][..], Vec::as_slice);
    assert_eq!(page.items.len(), expected.len());
    for (item, value) in page.items.iter().zip(expected) {
        check(value, item.as_ref().ok(), may_be_refused);
    }
}

/// Returns whether the other members of a page's metadata are of their types.
fn is_usual(metadata: &Value) -> bool {
    let is_token = metadata.get("continue").is_none_or(Value::is_string);
    let count = metadata.get("remainingItemCount");
    is_token && count.is_none_or(|count| count.is_null() || count.is_u64())
}

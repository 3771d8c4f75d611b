//! Filters beside lists that compare contents.

use super::*;
use crate::content_filter::ContentFilter;

/// A store that keeps the content of objects with the label `mine`, and such an object, in a form of the test's.
fn store() -> Store {
    let (_, never) = tokio::sync::watch::channel(0);
    let filter = ContentFilter::new(never, |_, object| object.labels().get("mine").is_some());
    Store::filtered(Some(filter.of_kind(&gvk())))
}

fn form(labels: &serde_json::Value, value: &str) -> RawObject {
    let metadata = json!({"name": "a", "uid": "u", "resourceVersion": "5", "labels": labels});
    let json = json!({"metadata": metadata, "data": {"value": value}});
    RawObject::parse(json.to_string().as_bytes(), &gvk()).unwrap()
}

/// Returns whether a list that compares contents finds another state of the same version.
fn differs(known: RawObject, listed: RawObject) -> bool {
    let store = store();
    store.apply(vec![Delta::Present(known)], Content::Whole);
    let listing = store.begin_listing(false, Content::Whole, None).comparing();
    let changes = store.list_page(&listing, vec![listed]);
    !changes.is_empty()
}

#[test]
fn a_list_that_compares_looks_at_as_much_as_is_known_of_an_object() {
    let (mine, theirs, other) = (json!({"mine": "yes"}), json!({}), json!({"other": "yes"}));
    assert!(!differs(form(&mine, "x"), form(&mine, "x")));
    assert!(differs(form(&mine, "x"), form(&mine, "y")));
    assert!(!differs(form(&theirs, "x"), form(&theirs, "x")));
    assert!(differs(form(&theirs, "x"), form(&other, "x")));
    // It comes into the share, or leaves it.
    assert!(differs(form(&theirs, "x"), form(&mine, "x")));
    assert!(differs(form(&mine, "x"), form(&theirs, "x")));
}

//! The metadata pass over one object, against `serde_json`.

use lariat_cluster::fuzzing::read_json;
use lariat_core::{Gvk, Interner, ManagedFields, RawObject, Scan};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::reference::object::Expected;

/// The kind that objects are read as.
pub(crate) fn pod() -> Gvk {
    Gvk::new("", "v1", "Pod")
}

pub(crate) fn run(data: &[u8]) {
    let read = Scan::new(data, &pod())
        .and_then(|scan| scan.into_object(&pod(), &mut Interner::new(), ManagedFields::Cut));
    let key = RawObject::key_of(data);
    if std::str::from_utf8(data).is_err() {
        // Members that are skipped are not checked for it; lines and pages are before they come here.
        return;
    }
    let Ok(value) = serde_json::from_slice::<Value>(data) else {
        // Members that are skipped may hold what a Value cannot: numbers out of range, deep nests, lone surrogates.
        let is_refused = read.as_ref().map_or(true, |object| !is_json(object.json()));
        assert!(
            is_json(data) || (is_refused && key.is_none()),
            "it is no JSON"
        );
        return;
    };
    check(&value, read.as_ref().ok(), has_duplicates(data));
    if let Ok(object) = &read {
        assert_eq!(key.as_ref(), Some(object.key()), "the key of what was read");
    }
}

/// Returns whether a text is JSON. What is kept of one that is none has to be none as well, so that it does not decode:
/// what follows the metadata is looked at by those who decode it.
pub(crate) fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(text).is_ok()
}

/// Checks what was read of an object against what is in it.
///
/// An object that has a member twice may be refused.
pub(crate) fn check(value: &Value, read: Option<&RawObject>, may_be_refused: bool) {
    let expected = Expected::of(value, &pod());
    match (read, expected) {
        (Some(object), expected) => {
            let Some(expected) = expected else {
                // A type that follows the metadata once more is not looked at.
                assert!(may_be_refused, "what has to be refused is not read");
                return;
            };
            // Names have no slash; with one, a key could not be split.
            let (namespace, name) = expected.key();
            if !namespace.contains('/') && !name.contains('/') {
                assert_eq!(Expected::read(object), expected);
            }
            let twice = has_duplicates(object.json());
            assert!(!twice || may_be_refused, "a member is written twice");
        }
        (None, Some(expected)) => assert!(may_be_refused, "refused: {expected:?}"),
        (None, None) => {}
    }
}

/// Returns whether a member is in a JSON text twice.
pub(crate) fn has_duplicates(json: &[u8]) -> bool {
    read_json(json).map_or(true, |(_, duplicates)| !duplicates.is_empty())
}

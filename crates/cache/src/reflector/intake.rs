//! The intake of a reflector: parses bytes to objects in the form that the cache stores.

use lariat_core::{Gvk, Interner, ManagedFields, ObjectKey, RawObject, RawObjectError, Scan};

use super::page::Item;
use crate::store::{Content, Listing, Store};
use crate::transform::Transform;

/// Parses the objects of a kind and reduces them to what its cache stores.
#[derive(Debug)]
pub(crate) struct Intake {
    gvk: Gvk,
    content: Content,
    managed_fields: ManagedFields,
    /// The transform of objects with content.
    transform: Option<Transform>,
    interner: Interner,
    /// The key of the current object; a reused buffer.
    key: String,
}

/// The result of reading a listed object.
#[derive(Debug)]
pub(super) enum Listed {
    /// The store has this state, which is marked as listed.
    Known,
    /// The store does not have this state.
    Changed(RawObject),
    /// The object cannot be parsed; its key is given if that can be.
    Unreadable(Option<ObjectKey>, RawObjectError),
    /// The object is of another kind, so the list is not one of this kind.
    OtherKind,
}

impl Intake {
    pub(crate) fn new(
        gvk: Gvk,
        content: Content,
        managed_fields: ManagedFields,
        transform: Option<Transform>,
    ) -> Self {
        Self {
            gvk,
            content,
            managed_fields,
            transform,
            interner: Interner::new(),
            key: String::new(),
        }
    }

    pub(super) fn content(&self) -> Content {
        self.content
    }

    /// Reads an object.
    pub(crate) fn read(&mut self, json: &[u8]) -> Result<RawObject, RawObjectError> {
        let scan = Scan::new(json, &self.gvk)?.of_kind(&self.gvk)?;
        self.finish(scan)
    }

    /// Reads an object of a watch, which shares the key with a stored one.
    pub(super) fn watched(
        &mut self,
        json: &[u8],
        store: &Store,
    ) -> Result<RawObject, RawObjectError> {
        let scan = Scan::new(json, &self.gvk)?.of_kind(&self.gvk)?;
        self.note_key(&scan);
        // Sharing the key of the cached object saves an allocation for each event.
        let known = store.key_of(&self.key);
        self.finish(scan.with_key(known))
    }

    /// Reads an item of a list.
    #[cfg(feature = "fuzzing")]
    pub(super) fn read_item(&mut self, item: Item<'_>) -> Result<RawObject, RawObjectError> {
        let scan = item.into_scan(&self.gvk)?;
        self.finish(scan)
    }

    /// Reads an item of a list; of a cached state only the metadata is parsed.
    pub(super) fn listed(&mut self, item: Item<'_>, store: &Store, listing: &Listing) -> Listed {
        let json = item.json();
        let scan = item.into_scan(&self.gvk);
        if scan
            .as_ref()
            .is_ok_and(|scan| scan.is_of_another_kind(&self.gvk))
        {
            return Listed::OtherKind;
        }
        let read = scan.and_then(|scan| {
            self.note_key(&scan);
            // On a relist most objects are unchanged: this saves the copy, the transform and a new key.
            if store.is_listed(listing, &scan, &self.key) {
                return Ok(None);
            }
            self.finish(scan).map(Some)
        });
        match read {
            Ok(None) => Listed::Known,
            Ok(Some(object)) => Listed::Changed(object),
            Err(error) => Listed::Unreadable(RawObject::key_of(json), error),
        }
    }

    fn note_key(&mut self, scan: &Scan<'_>) {
        self.key.clear();
        if !scan.namespace().is_empty() {
            self.key.push_str(scan.namespace());
            self.key.push('/');
        }
        self.key.push_str(scan.name());
    }

    fn finish(&mut self, scan: Scan<'_>) -> Result<RawObject, RawObjectError> {
        // Metadata has no content to remove.
        let is_partial = scan.is_partial();
        // A server that does not support metadata requests sends whole objects; their content is dropped here.
        if self.content == Content::MetadataOnly && !is_partial {
            return scan.into_metadata(&self.gvk, &mut self.interner, self.managed_fields);
        }
        let object = scan.into_object(&self.gvk, &mut self.interner, self.managed_fields)?;
        match &self.transform {
            Some(transform) if !is_partial => self.transformed(transform, object),
            _ => Ok(object),
        }
    }

    /// Transforms an object; content that is not JSON is rejected.
    fn transformed(
        &self,
        transform: &Transform,
        object: RawObject,
    ) -> Result<RawObject, RawObjectError> {
        match transform.change(object.json()) {
            Some(json) => Ok(object.with_json(json)),
            // The function has panicked, or the content is not JSON. Only in the first case is the object kept:
            // unchanged, while content that could not be transformed may contain what should be removed.
            None => Scan::whole(object.json(), &self.gvk)
                .map(drop)
                .map(|()| object),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::store::Delta;

    fn intake(content: Content, transform: Option<Transform>) -> Intake {
        let gvk = Gvk::new("", "v1", "Pod");
        Intake::new(gvk, content, ManagedFields::Cut, transform)
    }

    const DAMAGED: &[u8] =
        br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"secret":"hunter2",}}"#;

    #[test]
    fn a_change_shares_the_key_of_the_object_that_is_known() {
        let store = Store::default();
        let text = |key: &ObjectKey| key.as_str().as_ptr();
        for content in [Content::Whole, Content::MetadataOnly] {
            let mut intake = intake(content, None);
            let mut read = |version: u64| {
                let json = format!(
                    r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"a","namespace":"n","uid":"u","resourceVersion":"{version}"}}}}"#
                );
                intake.watched(json.as_bytes(), &store).unwrap()
            };
            let first = read(1);
            assert_eq!(*first.key(), ObjectKey::namespaced("n", "a"));
            store.apply(vec![Delta::Present(first)], content);
            let known = store.get(&ObjectKey::namespaced("n", "a")).unwrap();
            let second = read(2);
            assert_eq!(second.key(), known.key());
            assert_eq!(text(second.key()), text(known.key()));
        }
    }

    #[test]
    fn metadata_is_all_that_is_kept_of_what_a_server_sends_beside_it() {
        let metadata = json!({"name": "a", "labels": {"x": "1"}, "annotations": {"k": "}"}});
        let mut sent = metadata.clone();
        sent["managedFields"] = json!([{"fieldsV1": {"f:spec": {}}}]);
        for (kind, rest) in [("Pod", r#","spec":{"a":["b"]},"status":{}"#), ("Pod", "")] {
            for json in [
                format!(r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{sent}{rest}}}"#),
                format!(r#"{{"metadata":{sent}{rest}}}"#),
                format!(r#"{{"metadata":{sent}{rest},"kind":"{kind}","apiVersion":"v1"}}"#),
                format!(r#"{{"x":1,"apiVersion":"v1","m\u0065tadata":{sent}{rest}}}"#),
            ] {
                let object = intake(Content::MetadataOnly, None)
                    .read(json.as_bytes())
                    .unwrap();
                let content: Value = serde_json::from_slice(object.json()).unwrap();
                let expected = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
                assert_eq!(content, expected, "{json}");
                assert_eq!(object.labels().get("x"), Some("1"));
            }
        }
    }

    #[test]
    fn an_object_whose_content_is_damaged_keeps_its_metadata() {
        let whole = intake(Content::Whole, None).read(DAMAGED).unwrap();
        assert_eq!(whole.json(), DAMAGED);
        let metadata = intake(Content::MetadataOnly, None).read(DAMAGED).unwrap();
        let content: Value = serde_json::from_slice(metadata.json()).unwrap();
        assert_eq!(content["metadata"], json!({"name": "a"}));
    }

    #[test]
    fn nothing_passes_a_transform_that_does_not_understand_it() {
        for transform in [
            Transform::drop(["/spec/secret"]),
            Transform::keep(["/status"]),
            Transform::function(|_| {}),
        ] {
            let mut intake = intake(Content::Whole, Some(transform));
            let error = intake.read(DAMAGED).unwrap_err().to_string();
            assert!(error.starts_with("not a v1 Pod: "), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let panics = Transform::function(|_| panic!("no"));
        let json = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#;
        let object = intake(Content::Whole, Some(panics)).read(json).unwrap();
        assert_eq!(object.json(), json, "it is cached unchanged");
    }
}

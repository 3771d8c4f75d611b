//! Objects that many clusters have, encoded once.

use std::sync::{Arc, LazyLock};

use lariat_apimachinery::object::{Object, metadata_mut};
use lariat_core::{Labels, ObjectKey};
use memchr::memmem::Finder;

use super::object::Draft;

/// The placeholder for the uid of an object.
const UID: &str = "00000000-0000-0000-0000-000000000000";

static UIDS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(UID));
static TIMES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(Template::TIME));

/// An encoded object without its uid and its time.
#[derive(Debug)]
pub(crate) struct Template {
    key: ObjectKey,
    labels: Labels,
    has_finalizers: bool,
    head: Vec<u8>,
    /// The pieces around the uid.
    before: Vec<Vec<u8>>,
    /// The pieces around each time, up to the end of the metadata.
    metadata: Vec<Vec<u8>>,
    /// The pieces around each time behind the metadata.
    content: Vec<Vec<u8>>,
}

impl Template {
    /// A text in an object that stands for the time at which it is created.
    pub(crate) const TIME: &str = "0000-00-00T00:00:00Z";

    /// Encodes an object; its uid and its time of creation are set.
    pub(crate) fn new(mut object: Object) -> Self {
        let metadata = metadata_mut(&mut object);
        // Only marks, at which the encoded object is split.
        metadata.insert("uid".into(), UID.into());
        metadata.insert("creationTimestamp".into(), Self::TIME.into());
        let draft = Draft::new(&object);
        let (metadata, content) = draft.after.split_at(draft.metadata_after);
        Self {
            before: split(&draft.before, &UIDS),
            metadata: split(metadata, &TIMES),
            content: split(content, &TIMES),
            key: draft.key,
            labels: draft.labels,
            has_finalizers: draft.has_finalizers,
            head: draft.head,
        }
    }

    /// Returns the key of the object.
    pub(crate) fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Makes an object of the template.
    pub(crate) fn draft(&self, uid: &str, now: &str) -> Draft {
        // The parts are what was around the time, so joining them with it fills every gap.
        let mut after = self.metadata.join(now.as_bytes());
        let metadata_after = after.len();
        after.extend(self.content.join(now.as_bytes()));
        Draft {
            key: self.key.clone(),
            uid: Arc::from(uid),
            labels: self.labels.clone(),
            deleting: false,
            has_finalizers: self.has_finalizers,
            head: self.head.clone(),
            before: self.before.join(uid.as_bytes()),
            after,
            metadata_after,
        }
    }
}

/// Splits bytes at each occurrence of a text.
fn split(bytes: &[u8], at: &Finder<'_>) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let mut start = 0;
    for found in at.find_iter(bytes) {
        parts.push(bytes[start..found].to_vec());
        start = found + at.needle().len();
    }
    parts.push(bytes[start..].to_vec());
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::EventType;

    #[test]
    fn a_template_makes_what_encoding_the_object_makes() {
        let (uid, now) = (
            "d6e2c1c2-7c1a-4a5e-9a51-1c1a0f0e7d11",
            "2026-01-02T03:04:05Z",
        );
        let object = |time: &str| {
            let object = json!({
                "kind": "Thing", "apiVersion": "v1",
                "metadata": {"name": "a", "namespace": "b", "labels": {"x": "y"}},
                "status": {"since": time, "until": [time]},
            });
            object.as_object().unwrap().clone()
        };
        let template = Template::new(object(Template::TIME));
        let mut expected = object(now);
        let metadata = metadata_mut(&mut expected);
        metadata.insert("uid".into(), uid.into());
        metadata.insert("creationTimestamp".into(), now.into());
        let stamp = |draft: Draft| draft.stamp(7, EventType::Added);
        let (made, expected) = (
            stamp(template.draft(uid, now)),
            stamp(Draft::new(&expected)),
        );
        assert_eq!(made.json(), expected.json());
        assert_eq!(made.metadata(), expected.metadata());
        assert_eq!(made.uid(), uid);
        assert_eq!(made.labels(), expected.labels());
        assert_eq!(made.key(), expected.key());
    }
}

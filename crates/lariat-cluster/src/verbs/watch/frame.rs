//! The lines of a watch.

use bytes::Bytes;

use crate::api::negotiate::Shape;
use crate::api::status::ApiError;
use crate::kinds::Resource;
use crate::store::{EventType, METADATA_HEAD, Stored};

/// Writes the lines of one watch.
#[derive(Debug)]
pub(super) struct Framer {
    /// `"kind":…,"apiVersion":…` of the watched version, or of bare metadata.
    head: String,
    only_metadata: bool,
    /// Whether the end of the initial state is marked.
    pub(super) mark_end: bool,
}

impl Framer {
    pub(super) fn new(resource: &Resource, shape: Shape) -> Self {
        let only_metadata = shape != Shape::Whole;
        Self {
            head: match only_metadata {
                true => METADATA_HEAD.to_owned(),
                false => resource.head(),
            },
            only_metadata,
            mark_end: false,
        }
    }

    /// Announces a state; the stored bytes as they are, unless another version is watched.
    pub(super) fn event(&self, stored: &Stored, event: EventType) -> Bytes {
        if self.only_metadata {
            return stored.metadata_frame(event);
        }
        if stored.head() == self.head.as_bytes() {
            return stored.frame(event);
        }
        let opening = format!(r#"{{"type":"{}","object":{{{}"#, event.as_str(), self.head);
        [opening.as_bytes(), stored.content(), b"}\n"]
            .concat()
            .into()
    }

    /// Tells that everything up to a revision was sent.
    pub(super) fn bookmark(&self, revision: u64) -> Bytes {
        self.bookmark_with(revision, "")
    }

    /// Marks the end of the initial state.
    pub(super) fn initial_end(&self, revision: u64) -> Bytes {
        self.bookmark_with(
            revision,
            r#","annotations":{"k8s.io/initial-events-end":"true"}"#,
        )
    }

    fn bookmark_with(&self, revision: u64, more: &str) -> Bytes {
        let head = &self.head;
        let metadata =
            format!(r#"{{"resourceVersion":"{revision}","creationTimestamp":null{more}}}"#);
        format!("{{\"type\":\"BOOKMARK\",\"object\":{{{head},\"metadata\":{metadata}}}}}\n").into()
    }

    /// Reports an error inside the stream.
    pub(super) fn error(error: &ApiError) -> Bytes {
        [br#"{"type":"ERROR","object":"#, &error.json()[..], b"}\n"]
            .concat()
            .into()
    }
}

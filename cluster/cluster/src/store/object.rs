//! One stored state of one object, already encoded.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use lariat_apimachinery::object::Object;

use super::encode;
use bytes::Bytes;
use lariat_core::{Labels, ObjectKey};

/// The type of a change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
}

impl EventType {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// The type of an object of which only the metadata is shown, in JSON.
pub(crate) const METADATA_HEAD: &str =
    r#""kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1""#;

/// An immutable state, kept once: as the watch event that announced it.
///
/// The bytes are `{"type":"ADDED","object":{"kind":…,"apiVersion":…,"metadata":{…},…}}` and a line
/// feed. A watcher that saw the change sends them as they are; a GET sends the slice that is the
/// object, a list the slice behind the type. Nothing is encoded twice.
#[derive(Debug)]
pub(crate) struct Stored {
    key: ObjectKey,
    uid: Arc<str>,
    labels: Labels,
    revision: u64,
    deleting: bool,
    has_finalizers: bool,
    event: EventType,
    encoded: Encoded,
    /// The event with only the metadata, made when it is first watched.
    metadata_frame: OnceLock<Bytes>,
}

/// The memory of a state beside its line: itself, its key, its labels.
const PARTS: usize = 384;

/// A line of a watch, with the places of its parts.
#[derive(Debug)]
struct Encoded {
    frame: Bytes,
    /// The start of `,"metadata"`, behind the type of the object.
    content: usize,
    /// The place of the digits of the resource version.
    version: Range<usize>,
    /// The end of the metadata.
    metadata_end: usize,
}

/// An encoded object that waits for its revision.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(super) key: ObjectKey,
    pub(super) uid: Arc<str>,
    pub(super) labels: Labels,
    pub(super) deleting: bool,
    pub(super) has_finalizers: bool,
    /// `{"kind":…,"apiVersion":…`
    pub(super) head: Vec<u8>,
    /// `,"metadata":{…"resourceVersion":"`
    pub(super) before: Vec<u8>,
    /// `"…}`
    pub(super) after: Vec<u8>,
    /// The length of the part of `after` that is metadata.
    pub(super) metadata_after: usize,
}

impl Draft {
    /// Encodes an object; its `metadata.resourceVersion` is ignored.
    pub(crate) fn new(object: &Object) -> Self {
        encode::draft(object)
    }

    /// Sets the revision of the object, and the type of the event it makes.
    pub(crate) fn stamp(self, revision: u64, event: EventType) -> Stored {
        let parts = Parts {
            head: &self.head,
            before: &self.before,
            after: &self.after,
            metadata_after: self.metadata_after,
        };
        Stored {
            encoded: parts.assemble(revision, event),
            key: self.key,
            uid: self.uid,
            labels: self.labels,
            revision,
            deleting: self.deleting,
            has_finalizers: self.has_finalizers,
            event,
            metadata_frame: OnceLock::new(),
        }
    }
}

#[derive(PartialEq, Eq)]
struct Parts<'a> {
    head: &'a [u8],
    before: &'a [u8],
    after: &'a [u8],
    metadata_after: usize,
}

impl Parts<'_> {
    fn assemble(&self, revision: u64, event: EventType) -> Encoded {
        let opening = opening(event);
        let digits = revision.to_string();
        let length = opening.len() + self.head.len() + self.before.len() + digits.len();
        let mut frame = Vec::with_capacity(length + self.after.len() + CLOSING.len());
        frame.extend_from_slice(opening.as_bytes());
        frame.extend_from_slice(self.head);
        let content = frame.len();
        frame.extend_from_slice(self.before);
        let version = frame.len()..frame.len() + digits.len();
        frame.extend_from_slice(digits.as_bytes());
        frame.extend_from_slice(self.after);
        frame.extend_from_slice(CLOSING.as_bytes());
        Encoded {
            frame: frame.into(),
            content,
            metadata_end: version.end + self.metadata_after,
            version,
        }
    }
}

const CLOSING: &str = "}\n";

fn opening(event: EventType) -> &'static str {
    match event {
        EventType::Added => r#"{"type":"ADDED","object":"#,
        EventType::Modified => r#"{"type":"MODIFIED","object":"#,
        EventType::Deleted => r#"{"type":"DELETED","object":"#,
    }
}

impl Stored {
    pub(crate) fn key(&self) -> &ObjectKey {
        &self.key
    }

    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    pub(crate) fn shared_uid(&self) -> Arc<str> {
        Arc::clone(&self.uid)
    }

    pub(crate) fn labels(&self) -> &Labels {
        &self.labels
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the size of its encoded form, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.encoded.frame.len()
    }

    /// Returns about how much memory it takes.
    pub(super) fn weight(&self) -> usize {
        let metadata = self.metadata_frame.get().map_or(0, Bytes::len);
        PARTS + self.size() + metadata
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.deleting
    }

    pub(crate) fn has_finalizers(&self) -> bool {
        self.has_finalizers
    }

    /// Returns the object's JSON.
    pub(crate) fn json(&self) -> Bytes {
        let frame = &self.encoded.frame;
        frame.slice(opening(self.event).len()..frame.len() - CLOSING.len())
    }

    /// Returns the object's JSON behind its type, from the comma on.
    pub(crate) fn content(&self) -> &[u8] {
        let frame = &self.encoded.frame;
        &frame[self.encoded.content..frame.len() - CLOSING.len()]
    }

    /// Returns the same up to the end of the metadata: `,"metadata":{…}`.
    pub(crate) fn metadata(&self) -> &[u8] {
        &self.encoded.frame[self.encoded.content..self.encoded.metadata_end]
    }

    /// Returns the type of the object: `"kind":…,"apiVersion":…`, without braces.
    // Without the opening brace, which a list and a metadata frame write themselves.
    pub(crate) fn head(&self) -> &[u8] {
        &self.encoded.frame[opening(self.event).len() + 1..self.encoded.content]
    }

    /// Decodes the object.
    pub(crate) fn object(&self) -> Object {
        serde_json::from_slice(&self.json()).expect("a stored object was encoded by this crate")
    }

    /// Returns the watch event of some type about this state.
    pub(crate) fn frame(&self, event: EventType) -> Bytes {
        // The type differs from that of the commit in an initial state, which is all ADDED, and where an object enters
        // or leaves the selection of a watch. Only then the frame is encoded again.
        if event == self.event {
            self.encoded.frame.clone()
        } else {
            self.encode(self.revision, event).frame
        }
    }

    /// Returns the watch event of some type about the metadata of this state.
    pub(crate) fn metadata_frame(&self, event: EventType) -> Bytes {
        let make = || {
            let opening = [opening(event), "{", METADATA_HEAD].concat();
            let closing = ["}", CLOSING].concat();
            let frame = [opening.as_bytes(), self.metadata(), closing.as_bytes()];
            Bytes::from(frame.concat())
        };
        // The usual type is kept for the next watcher of metadata. Others are rare, and would need one cell for each
        // type.
        if event == self.event {
            self.metadata_frame.get_or_init(make).clone()
        } else {
            make()
        }
    }

    /// Returns this state under another revision, for events of deletion.
    pub(crate) fn with_version(&self, revision: u64, event: EventType) -> Self {
        Self {
            key: self.key.clone(),
            uid: Arc::clone(&self.uid),
            labels: self.labels.clone(),
            revision,
            deleting: self.deleting,
            has_finalizers: self.has_finalizers,
            event,
            encoded: self.encode(revision, event),
            // Not that of the old revision: it has the old version in it.
            metadata_frame: OnceLock::new(),
        }
    }

    /// Returns whether another state differs in nothing but its version.
    pub(crate) fn has_content_of(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }

    fn encode(&self, revision: u64, event: EventType) -> Encoded {
        self.parts().assemble(revision, event)
    }

    fn parts(&self) -> Parts<'_> {
        let Encoded {
            frame,
            content,
            version,
            metadata_end,
        } = &self.encoded;
        Parts {
            // With the opening brace, unlike `head`.
            head: &frame[opening(self.event).len()..*content],
            before: &frame[*content..version.start],
            after: &frame[version.end..frame.len() - CLOSING.len()],
            metadata_after: metadata_end - version.end,
        }
    }
}

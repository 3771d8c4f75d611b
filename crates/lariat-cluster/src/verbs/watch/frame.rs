//! The lines of a watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use lariat_apimachinery::kinds::Resource;

use crate::printers::Table;
use crate::status::ApiError;
use crate::store::{EventType, METADATA_HEAD, Stored};
use crate::strategy::view;
use crate::verbs::call::Call;
use crate::wire::negotiate::Shape;

/// Writes the lines of one watch.
#[derive(Debug)]
pub(super) struct Framer {
    /// `"kind":…,"apiVersion":…` of the watched version, or of bare metadata.
    head: String,
    only_metadata: bool,
    /// Writes every object as a table with one row instead.
    table: Option<Table>,
    /// Whether a table was sent; only the first defines the columns.
    columns_sent: AtomicBool,
    /// Whether the end of the initial state is marked.
    pub(super) mark_end: bool,
    resource: Arc<Resource>,
}

impl Framer {
    pub(super) fn new(call: &Call) -> Self {
        let only_metadata = call.shape != Shape::Whole;
        Self {
            head: if only_metadata {
                call.metadata_head()
            } else {
                call.resource.head()
            },
            only_metadata,
            table: (call.shape == Shape::Table).then(|| call.table()),
            columns_sent: AtomicBool::new(false),
            mark_end: false,
            resource: Arc::clone(&call.resource),
        }
    }

    /// Announces a state; the stored bytes as they are, unless another version is watched.
    pub(super) fn event(&self, stored: &Stored, event: EventType) -> Bytes {
        if let Some(table) = &self.table {
            let reread = view::reread(&self.resource, stored);
            let stored = reread.as_ref().unwrap_or(stored);
            return self.table_event(table, stored, event.as_str());
        }
        if self.only_metadata && self.head == METADATA_HEAD {
            return stored.metadata_frame(event);
        }
        let reread = view::reread(&self.resource, stored);
        let stored = reread.as_ref().unwrap_or(stored);
        if !self.only_metadata && stored.head() == self.head.as_bytes() {
            return stored.frame(event);
        }
        let opening = format!(r#"{{"type":"{}","object":{{{}"#, event.as_str(), self.head);
        let (content, closing) = if self.only_metadata {
            (stored.metadata(), &b"}}\n"[..])
        } else {
            (stored.content(), &b"}\n"[..])
        };
        [opening.as_bytes(), content, closing].concat().into()
    }

    fn table_event(&self, table: &Table, stored: &Stored, event: &str) -> Bytes {
        let is_first = !self.columns_sent.swap(true, Ordering::Relaxed);
        let opening = format!(r#"{{"type":"{event}","object":"#);
        let table = table.single(stored, is_first);
        [opening.as_bytes(), &table, b"}\n"].concat().into()
    }

    /// Tells that everything up to a revision was sent.
    pub(super) fn bookmark(&self, revision: u64) -> Bytes {
        self.bookmark_with(revision, false)
    }

    /// Marks the end of the initial state.
    pub(super) fn initial_end(&self, revision: u64) -> Bytes {
        self.bookmark_with(revision, true)
    }

    fn bookmark_with(&self, revision: u64, ends_state: bool) -> Bytes {
        if let Some(table) = &self.table {
            let stored = table.bookmark(revision, ends_state);
            return self.table_event(table, &stored, "BOOKMARK");
        }
        let more = if ends_state {
            r#","annotations":{"k8s.io/initial-events-end":"true"}"#
        } else {
            ""
        };
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

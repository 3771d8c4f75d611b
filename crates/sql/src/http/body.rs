//! The body of a list or an object, encoded while it is sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use lariat_core::Gvk;
use serde_json::json;

use super::bytes::AnswerBytes;
use super::room::RoomPermit;
use crate::cache::{Count, FoundObject, QueryResult};
use crate::query::{Query, Subject};

/// The approximate number of bytes that are encoded at a time.
const CHUNK: usize = 64 * 1024;

const LIST_END: &[u8] = b"]}\n";

/// Objects as JSON, which hold their permits until everything is sent.
///
/// The objects are moved out of the answer as they are sent, so that they are not all copied at once.
#[derive(Debug)]
pub(super) struct ObjectsBody {
    /// The part before the objects, until it is sent.
    head: Vec<u8>,
    objects: std::vec::IntoIter<FoundObject>,
    is_first: bool,
    end: &'static [u8],
    left: u64,
    _permits: Permits,
}

/// The permits of a request, and of the bytes of its answer.
#[derive(Debug)]
#[expect(dead_code, reason = "they are held until they are dropped")]
pub(super) struct Permits {
    pub(super) request: RoomPermit,
    pub(super) bytes: Arc<AnswerBytes>,
}

impl ObjectsBody {
    pub(super) fn list(head: Vec<u8>, objects: Vec<FoundObject>, permits: Permits) -> Self {
        Self::new(head, objects, LIST_END, permits)
    }

    pub(super) fn object(object: FoundObject, permits: Permits) -> Self {
        Self::new(Vec::new(), vec![object], b"", permits)
    }

    fn new(head: Vec<u8>, objects: Vec<FoundObject>, end: &'static [u8], permits: Permits) -> Self {
        let bytes: usize = objects.iter().map(|found| found.json.len()).sum();
        let commas = objects.len().saturating_sub(1);
        // The exact length goes into Content-Length, so a client notices an answer that is cut off.
        let left = head.len() + bytes + commas + end.len();
        Self {
            head,
            objects: objects.into_iter(),
            is_first: true,
            end,
            left: u64::try_from(left).unwrap_or(u64::MAX),
            _permits: permits,
        }
    }
}

/// Writes the part of a list before the objects.
pub(super) fn head(kind: &Gvk, query: &Query, revision: &str, answer: &QueryResult) -> Vec<u8> {
    let by = query.summaries.iter().zip(&answer.summaries);
    let summaries: Vec<_> = by.map(|(by, counts)| summary(by, counts)).collect();
    let fields = json!({
        "kind": kind.kind(), "apiVersion": kind.api_version(), "revision": revision,
        "total": answer.total, "continue": answer.next, "summaries": summaries,
    });
    let mut head = fields.to_string().into_bytes();
    // The closing brace follows the objects.
    head.pop();
    head.extend_from_slice(b",\"objects\":[");
    head
}

fn summary(by: &Subject, counts: &[Count]) -> serde_json::Value {
    let counts: Vec<_> = counts
        .iter()
        .map(|count| match &count.namespace {
            None => json!({"value": count.value, "objects": count.objects}),
            Some(namespace) => {
                json!({"value": count.value, "namespace": namespace, "objects": count.objects})
            }
        })
        .collect();
    json!({"by": by.to_string(), "counts": counts})
}

impl Body for ObjectsBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut chunk = std::mem::take(&mut self.head);
        while chunk.len() < CHUNK {
            let Some(found) = self.objects.next() else {
                chunk.extend_from_slice(self.end);
                break;
            };
            if !std::mem::take(&mut self.is_first) {
                chunk.push(b',');
            }
            // As it is in the database: it is JSON already and is not parsed again.
            chunk.extend_from_slice(&found.json);
        }
        let sent = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        self.left = self.left.saturating_sub(sent);
        Poll::Ready(Some(Ok(Frame::data(chunk.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

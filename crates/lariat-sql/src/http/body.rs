//! The body of a list, encoded while it is sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use lariat_core::Gvk;
use serde_json::json;

use super::room::RoomPermit;
use crate::cache::{Count, FoundObject, QueryResult};
use crate::query::{Query, Subject};

/// The approximate number of bytes that are encoded at a time.
const CHUNK: usize = 64 * 1024;

const END: &[u8] = b"]}\n";

/// A list as JSON.
///
/// The objects are moved out of the answer as they are sent, so that they are not all copied at once.
#[derive(Debug)]
pub(super) struct ListBody {
    /// The part before the objects, until it is sent.
    head: Vec<u8>,
    objects: std::vec::IntoIter<FoundObject>,
    is_first: bool,
    left: u64,
    /// The permit of the request, until everything is sent.
    _place: RoomPermit,
}

impl ListBody {
    pub(super) fn new(
        kind: &Gvk,
        query: &Query,
        mut answer: QueryResult,
        place: RoomPermit,
    ) -> Self {
        let objects = std::mem::take(&mut answer.objects);
        let head = head(kind, query, &answer);
        let bytes: usize = objects.iter().map(|found| found.json.len()).sum();
        let commas = objects.len().saturating_sub(1);
        // The exact length goes into Content-Length, so a client notices a list that is cut off.
        let left = head.len() + bytes + commas + END.len();
        Self {
            head,
            objects: objects.into_iter(),
            is_first: true,
            left: u64::try_from(left).unwrap_or(u64::MAX),
            _place: place,
        }
    }
}

/// Writes the part before the objects.
fn head(kind: &Gvk, query: &Query, answer: &QueryResult) -> Vec<u8> {
    let by = query.summaries.iter().zip(&answer.summaries);
    let summaries: Vec<_> = by.map(|(by, counts)| summary(by, counts)).collect();
    let fields = json!({
        "kind": kind.kind(), "apiVersion": kind.api_version(), "revision": answer.revision.to_string(),
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

impl Body for ListBody {
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
                chunk.extend_from_slice(END);
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

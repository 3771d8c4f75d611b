//! Faults that damage, cut off or slow down the body of an answer.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use http::StatusCode;
use http::header::HeaderValue;
use http_body_util::BodyExt;
use tokio::time;

use crate::wire::body::ResponseBody;
use crate::wire::reply::Reply;

pub(super) const HTML: HeaderValue = HeaderValue::from_static("text/html");

const PAGE: &str = "<html><body><h1>Please log in</h1></body></html>\n";

/// Neither JSON nor the beginning of any.
const GARBAGE: &[u8] = b"{\"kind\":\x00\xff\xfe <!garbage!> ]}";

/// The number of pieces that a slow body sends in a second.
const PIECES: u64 = 10;

/// Answers 200 and a page for people.
pub(super) fn page() -> Reply {
    Reply::new(StatusCode::OK, HTML, ResponseBody::whole(PAGE))
}

/// Keeps everything of a reply but its body.
pub(super) fn garble(reply: Reply) -> Reply {
    reply.map(|_| ResponseBody::whole(Bytes::from_static(GARBAGE)))
}

/// Ends a body after some bytes.
pub(super) fn truncate(body: ResponseBody, bytes: usize) -> ResponseBody {
    let cut = stream::unfold((pieces(body), bytes), |(mut pieces, left)| async move {
        if left == 0 {
            return None;
        }
        let whole = pieces.next().await?;
        let piece = whole.map(|mut whole| whole.split_to(whole.len().min(left)));
        let sent = piece.as_ref().map_or(0, Bytes::len);
        Some((piece, (pieces, left - sent)))
    });
    ResponseBody::stream(cut)
}

/// Breaks the connection after some bytes of a body.
///
/// A shorter body is sent whole.
pub(super) fn cut(body: ResponseBody, bytes: usize) -> ResponseBody {
    let cut = stream::unfold(Some((pieces(body), bytes)), |rest| async move {
        // Behind the break there is nothing, and what made the rest is dropped.
        let (mut pieces, left) = rest?;
        if left == 0 {
            // A connection sends what it has when a body makes it wait, and drops it when a body fails.
            tokio::task::yield_now().await;
            let broken = io::Error::new(io::ErrorKind::ConnectionReset, "the body is cut");
            return Some((Err(broken), None));
        }
        let whole = pieces.next().await?;
        let piece = whole.map(|mut whole| whole.split_to(whole.len().min(left)));
        let sent = piece.as_ref().map_or(0, Bytes::len);
        Some((piece, Some((pieces, left - sent))))
    });
    ResponseBody::stream(cut)
}

/// Sends a body with so many bytes a second.
pub(super) fn throttle(body: ResponseBody, rate: u64) -> ResponseBody {
    let rate = rate.max(1);
    let size = usize::try_from((rate / PIECES).max(1)).unwrap_or(usize::MAX);
    let pieces = pieces(body).flat_map(move |piece| split(piece, size));
    ResponseBody::stream(pieces.then(move |piece| async move {
        let bytes = piece.as_ref().map_or(0, Bytes::len);
        time::sleep(Duration::from_secs_f64(bytes as f64 / rate as f64)).await;
        piece
    }))
}

/// Cuts a piece into smaller ones.
fn split(piece: io::Result<Bytes>, size: usize) -> impl Stream<Item = io::Result<Bytes>> {
    let mut rest = Some(piece);
    stream::iter(std::iter::from_fn(move || match rest.take()? {
        Ok(mut bytes) if bytes.len() > size => {
            let first = bytes.split_to(size);
            rest = Some(Ok(bytes));
            Some(Ok(first))
        }
        last => Some(last),
    }))
}

fn pieces(body: ResponseBody) -> BoxStream<'static, io::Result<Bytes>> {
    body.into_data_stream().boxed()
}

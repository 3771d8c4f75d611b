//! Bodies: reading a request's, streaming a response's.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{io, iter};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::delivery::Delivery;
use super::gzip::{Gzip, THRESHOLD};
use crate::idle_timeout::IdleTimeout;
use crate::status::ApiError;

/// The largest request body, as on a real server.
// MaxRequestBodyBytes in apiserver's config.
const LIMIT: usize = 3 * 1024 * 1024;

/// The body of a response: whole, in pieces made on the way, or a stream.
#[derive(Debug)]
pub struct ResponseBody {
    kind: Kind,
    /// The delivery that records its progress, if it is watched.
    delivery: Option<Delivery>,
    /// The rest of a delivery that the client has not read; empty without one.
    rest: Bytes,
}

/// The largest piece whose delivery is watched: a frame of HTTP/2.
///
/// A slow client takes a large one piece by piece.
const PIECE: usize = 16 * 1024;

enum Kind {
    Whole(Option<Bytes>),
    Pieces(Box<dyn Iterator<Item = Bytes> + Send>),
    Stream(BoxStream<'static, io::Result<Bytes>>),
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(bytes) => f.debug_tuple("Whole").field(bytes).finish(),
            Self::Pieces(_) => f.write_str("Pieces"),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl ResponseBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::of(Kind::Whole(
            Some(bytes.into()).filter(|bytes: &Bytes| !bytes.is_empty()),
        ))
    }

    /// Sends pieces that need no waiting.
    pub(crate) fn pieces(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self::of(Kind::Pieces(Box::new(pieces)))
    }

    /// Streams pieces as they come; an error breaks the connection off.
    pub(crate) fn stream(pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        // A body may be asked again after its end.
        Self::of(Kind::Stream(Box::pin(pieces.fuse())))
    }

    fn of(kind: Kind) -> Self {
        Self {
            kind,
            delivery: None,
            rest: Bytes::new(),
        }
    }

    /// Shows how it is sent.
    pub(crate) fn delivered_by(mut self, delivery: Delivery) -> Self {
        // The head of the response is there to be taken before any piece is asked for.
        delivery.offer();
        self.delivery = Some(delivery);
        self
    }

    /// Returns the whole body, or the body itself if it is a stream.
    pub(crate) fn into_bytes(self) -> Result<Bytes, Self> {
        match self.kind {
            Kind::Whole(bytes) => Ok(bytes.unwrap_or_default()),
            Kind::Pieces(pieces) => Ok(pieces.collect::<Vec<Bytes>>().concat().into()),
            stream @ Kind::Stream(_) => Err(Self::of(stream)),
        }
    }

    /// Keeps a value until a stream was sent; otherwise drops it at once.
    pub(crate) fn keep(self, kept: impl Send + 'static) -> Self {
        match self.kind {
            Kind::Stream(pieces) => Self::stream(pieces.map(move |piece| {
                // Moves it into the closure, which is dropped with the stream.
                let _kept = &kept;
                piece
            })),
            ready => Self::of(ready),
        }
    }

    /// [Keeps](Self::keep) a value that only a stream needs.
    pub(crate) fn keep_with<K: Send + 'static>(self, kept: impl FnOnce() -> K) -> Self {
        match self.kind {
            Kind::Stream(_) => self.keep(kept()),
            Kind::Whole(_) | Kind::Pieces(_) => self,
        }
    }

    /// Compresses the body if it is large; returns whether it did.
    ///
    /// A stream is never compressed.
    pub(crate) fn gzip(self) -> (Self, bool) {
        let mut pieces = match self.kind {
            Kind::Whole(Some(bytes)) if bytes.len() >= THRESHOLD => {
                return (Self::pieces(Gzip::new(iter::once(bytes))), true);
            }
            Kind::Pieces(pieces) => pieces,
            small @ (Kind::Whole(_) | Kind::Stream(_)) => return (Self::of(small), false),
        };
        // Read ahead until it is known whether the answer is large.
        let (mut first, mut length) = (Vec::new(), 0);
        while length < THRESHOLD
            && let Some(piece) = pieces.next()
        {
            length += piece.len();
            first.push(piece);
        }
        if length < THRESHOLD {
            return (Self::pieces(first.into_iter()), false);
        }
        (
            Self::pieces(Gzip::new(first.into_iter().chain(pieces))),
            true,
        )
    }
}

impl ResponseBody {
    /// Returns the next piece, which is small, and records that it was offered.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.rest.is_empty() {
            let next = self.kind.poll_next(cx);
            // The sender asks for more, so the client has taken all that was there.
            if let (Poll::Pending, Some(delivery)) = (&next, &self.delivery) {
                delivery.rest();
            }
            match ready!(next) {
                Some(Ok(bytes)) => self.rest = bytes,
                end => return Poll::Ready(end),
            }
        }
        if let Some(delivery) = &self.delivery {
            delivery.offer();
        }
        let size = self.rest.len().min(PIECE);
        Poll::Ready(Some(Ok(self.rest.split_to(size))))
    }
}

impl Kind {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(Ok)),
            Self::Pieces(pieces) => Poll::Ready(pieces.next().map(Ok)),
            Self::Stream(pieces) => pieces.as_mut().poll_next(cx),
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = if self.delivery.is_some() {
            ready!(self.poll_piece(cx))
        } else {
            ready!(self.kind.poll_next(cx))
        };
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Whole(None)) && self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => {
                let bytes = bytes.as_ref().map_or(0, Bytes::len) + self.rest.len();
                SizeHint::with_exact(bytes as u64)
            }
            Kind::Pieces(_) | Kind::Stream(_) => SizeHint::default(),
        }
    }
}

/// Reads a request's body, up to the limits of size and time.
pub(crate) async fn read<B>(body: B, timeout: Duration) -> Result<Bytes, ApiError>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let read = tokio::select! {
        // A body that is complete counts, even if its time is over at the same moment.
        biased;
        read = Limited::new(body, LIMIT).collect() => read,
        () = IdleTimeout::new(timeout).wait() => return Err(ApiError::timed_out()),
    };
    match read {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large(LIMIT)),
        Err(error) => Err(ApiError::bad_request(format!(
            "unable to read the body: {error}"
        ))),
    }
}

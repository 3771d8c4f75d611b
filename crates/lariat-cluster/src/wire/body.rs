//! Bodies: reading a request's, streaming a response's.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::{io, iter};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::gzip::{Gzip, THRESHOLD};
use crate::status::ApiError;

/// The largest request body, as on a real server.
const LIMIT: usize = 3 * 1024 * 1024;

/// The body of a response: whole, in pieces made on the way, or a stream.
#[derive(Debug)]
pub struct ResponseBody(Kind);

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
        Self(Kind::Whole(
            Some(bytes.into()).filter(|bytes: &Bytes| !bytes.is_empty()),
        ))
    }

    /// Sends pieces that need no waiting.
    pub(crate) fn pieces(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Pieces(Box::new(pieces)))
    }

    /// Streams pieces as they come; an error breaks the connection off.
    pub(crate) fn stream(pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        // A body may be asked again after its end.
        Self(Kind::Stream(Box::pin(pieces.fuse())))
    }

    /// Returns the whole body, or the body itself if it is a stream.
    pub(crate) fn into_bytes(self) -> Result<Bytes, Self> {
        match self.0 {
            Kind::Whole(bytes) => Ok(bytes.unwrap_or_default()),
            Kind::Pieces(pieces) => Ok(pieces.collect::<Vec<Bytes>>().concat().into()),
            stream @ Kind::Stream(_) => Err(Self(stream)),
        }
    }

    /// Keeps a value until a stream was sent; otherwise drops it at once.
    pub(crate) fn keep(self, kept: impl Send + 'static) -> Self {
        match self.0 {
            Kind::Stream(pieces) => Self::stream(pieces.map(move |piece| {
                let _kept = &kept;
                piece
            })),
            ready => Self(ready),
        }
    }

    /// Compresses the body if it is large; returns whether it did.
    ///
    /// A stream is never compressed.
    pub(crate) fn gzip(self) -> (Self, bool) {
        let mut pieces = match self.0 {
            Kind::Whole(Some(bytes)) if bytes.len() >= THRESHOLD => {
                return (Self::pieces(Gzip::new(iter::once(bytes))), true);
            }
            Kind::Pieces(pieces) => pieces,
            small @ (Kind::Whole(_) | Kind::Stream(_)) => return (Self(small), false),
        };
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

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Pieces(pieces) => Poll::Ready(pieces.next().map(|piece| Ok(Frame::data(piece)))),
            Kind::Stream(pieces) => pieces
                .as_mut()
                .poll_next(cx)
                .map(|next| next.map(|piece| piece.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Kind::Pieces(_) | Kind::Stream(_) => SizeHint::default(),
        }
    }
}

/// Reads a request's body, up to the limit.
pub(crate) async fn read<B>(body: B) -> Result<Bytes, ApiError>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, LIMIT).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large(LIMIT)),
        Err(error) => Err(ApiError::bad_request(format!(
            "unable to read the body: {error}"
        ))),
    }
}

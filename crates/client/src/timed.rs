//! Bodies of answers that must end in time.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::BoxError;

/// The error of an answer whose body did not end in time.
#[derive(Debug, thiserror::Error)]
#[error("{method} {path}: the answer of the API server ({status}) did not end within {after:?}")]
pub(crate) struct EndlessAnswer {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) status: StatusCode,
    pub(crate) after: Duration,
}

/// The body of an answer, which may have a deadline.
///
/// Reading fails at the deadline of [`Answering`](crate::Answering) if it has not ended.
pub struct AnswerBody {
    body: Body,
    limit: Option<Limit>,
}

/// The deadline of a body.
struct Limit {
    deadline: Pin<Box<Sleep>>,
    /// The error; `None` once it was returned.
    error: Option<EndlessAnswer>,
}

impl AnswerBody {
    /// Returns a body that fails with the error if it has not ended at the deadline.
    pub(crate) fn until(body: Body, until: Instant, error: EndlessAnswer) -> Self {
        let limit = Limit {
            deadline: Box::pin(sleep_until(until)),
            error: Some(error),
        };
        Self {
            limit: (!body.is_end_stream()).then_some(limit),
            body,
        }
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerBody").finish_non_exhaustive()
    }
}

impl From<Body> for AnswerBody {
    /// Returns a body without a deadline.
    fn from(body: Body) -> Self {
        Self { body, limit: None }
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        // Checked also if there is data: one byte now and then must not keep the answer alive.
        if let Some(limit) = &mut self.limit
            && limit.deadline.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(limit.error.take().map(|error| Err(error.into())));
        }
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        frame.map(|frame| frame.map(|frame| frame.map_err(BoxError::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

//! One HTTP/2 connection and its requests.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::BoxError;

use super::health::{Health, Sign, Suspicion};
use super::load::Load;
use super::open::Http2;
use crate::request::{Length, is_watch};

/// A connection is suspect after a request was cancelled that waited so long for its answer, or for the rest of it.
const UNANSWERED: Duration = Duration::from_secs(30);

/// A connection.
pub(super) struct Line {
    send: SendRequest<Body>,
    /// Driven by a task of its own; stored here to query the server's stream limit.
    connection: Arc<Http2>,
    /// The number of the certificates that it was opened with.
    number: u64,
    load: Mutex<Load>,
    /// Cancelled to move the watches to another connection.
    moved: CancellationToken,
}

/// A slot on a connection, reserved for a request until its answer has been read.
pub(super) struct Share {
    line: Arc<Line>,
    length: Length,
}

/// The reason for which a request on a connection failed.
pub(super) enum SendError {
    /// The server did not process the request, so it can be sent again.
    NotProcessed(BoxError),
    Failed(BoxError),
}

impl Line {
    pub(super) fn new(send: SendRequest<Body>, connection: Arc<Http2>, number: u64) -> Arc<Self> {
        Arc::new(Self {
            send,
            connection,
            number,
            load: Mutex::new(Load::new()),
            moved: CancellationToken::new(),
        })
    }

    /// Returns whether the connection is open and has these certificates.
    pub(super) fn is_usable(&self, number: u64) -> bool {
        self.number == number && !self.is_closed()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.send.is_closed()
    }

    /// Returns whether the connection accepts no requests at all.
    pub(super) fn takes_none(&self) -> bool {
        self.is_closed() || self.connection.streams() == 0
    }

    /// Reserves a slot, if there is one.
    pub(super) fn claim(self: &Arc<Self>, length: Length) -> Option<Share> {
        // The server may change its limit at any time.
        let limit = self.connection.streams();
        self.load.lock().claim(length, limit).then(|| Share {
            line: Arc::clone(self),
            length,
        })
    }

    /// Calls a function with the judgement of the connection.
    pub(super) fn health<T>(&self, call: impl FnOnce(&mut Health) -> T) -> T {
        call(self.load.lock().health())
    }

    /// Ends the watches, so that their readers open them again on another connection.
    pub(super) fn move_watches(&self) {
        self.moved.cancel();
    }

    pub(super) fn is_used(&self) -> bool {
        self.load.lock().used() > 0
    }

    /// Returns whether an idle connection is kept for further requests.
    pub(super) fn waits(&self, has_another: bool) -> bool {
        self.load.lock().waits(has_another)
    }
}

impl Share {
    pub(super) async fn send(self, request: Request<Body>) -> Result<Response<Answer>, SendError> {
        let mut send = self.line.send.clone();
        let (length, is_watch) = (self.length, is_watch(&request));
        let mut waiting = Waiting {
            share: Some(self),
            since: Some(Instant::now()),
        };
        match send.try_send_request(request).await {
            Ok(mut response) => {
                let sign = Sign::of(length, response.status());
                waiting.since = None;
                waiting.answered(sign);
                let moved = waiting.moved().filter(|_| is_watch);
                let connection = Connection(waiting.line());
                response.extensions_mut().insert(connection);
                if response.body().is_end_stream() {
                    waiting.end(sign);
                }
                Ok(response.map(|body| Answer {
                    body,
                    waiting,
                    sign,
                    is_brief: length == Length::Brief,
                    moved,
                }))
            }
            Err(mut error) => {
                waiting.since = None;
                let was_sent = error.take_message().is_none();
                let error = error.into_error();
                let refusal = refusal(&error);
                waiting.failed(refusal, was_sent);
                if was_sent && refusal.is_none() {
                    Err(SendError::Failed(error.into()))
                } else {
                    Err(SendError::NotProcessed(error.into()))
                }
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.line.load.lock().give_back(self.length);
    }
}

/// A slot, and since when its request has been waiting.
struct Waiting {
    /// `None` once the answer has ended.
    share: Option<Share>,
    since: Option<Instant>,
}

impl Waiting {
    /// Records the head of an answer.
    fn answered(&self, sign: Sign) {
        // An answer shows that the server works once it was read to its end.
        if let Some(share) = self.share.as_ref().filter(|_| sign == Sign::Fails) {
            share.line.health(|health| health.record(sign));
        }
    }

    /// Returns the wait for a move to another connection.
    fn moved(&self) -> Option<Moved> {
        let share = self.share.as_ref()?;
        Some(Box::pin(share.line.moved.clone().cancelled_owned()))
    }

    /// Records that a request failed.
    fn failed(&self, refusal: Option<Refusal>, was_sent: bool) {
        let Some(share) = &self.share else { return };
        let mut load = share.line.load.lock();
        match refusal {
            Some(Refusal::Stream) => load.refused(),
            Some(Refusal::Connection) => load.retire(),
            None if was_sent => load.health().record(Sign::Fails),
            None => {}
        }
    }

    fn line(&self) -> Weak<Line> {
        let line = self.share.as_ref().map(|share| Arc::downgrade(&share.line));
        line.unwrap_or_default()
    }

    /// Records the end of the answer, and gives the slot back.
    fn end(&mut self, sign: Sign) {
        if let Some(share) = self.share.take() {
            share.line.health(|health| health.record(sign));
        }
    }
}

impl Drop for Waiting {
    /// Judges a request whose sender has given up.
    fn drop(&mut self) {
        let has_waited = self
            .since
            .is_some_and(|since| since.elapsed() >= UNANSWERED);
        if let Some(share) = self.share.take().filter(|_| has_waited) {
            // The next request would wait too.
            let suspect = |health: &mut Health| health.suspect(Suspicion::Failing);
            share.line.health(suspect);
        }
    }
}

/// The connection of an answer, as an extension of its response.
///
/// Only answers over HTTP/2 have it, from clients that were created by [`connect`](crate::connect) or a similar
/// function.
#[derive(Debug, Clone)]
pub struct Connection(Weak<Line>);

impl Connection {
    /// Reports a watch that has been silent for suspiciously long.
    ///
    /// It received nothing new for so long that its server, or the server's watch cache, may have stopped to watch.
    /// The next request opens a fresh connection, if there was none in the last seconds.
    pub fn report_silence(&self) {
        if let Some(line) = self.0.upgrade() {
            line.health(|health| health.suspect(Suspicion::Silent));
        }
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

/// What a server did not process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// One stream above its limit.
    Stream,
    /// All streams after a certain one, because it is about to close the connection.
    Connection,
}

/// Returns what the server did not process, if the error shows that.
fn refusal(error: &hyper::Error) -> Option<Refusal> {
    let error = error.source()?.downcast_ref::<h2::Error>()?;
    match error.reason()? {
        h2::Reason::REFUSED_STREAM => Some(Refusal::Stream),
        // Answers to earlier requests are still read to the end.
        h2::Reason::NO_ERROR if error.is_go_away() && error.is_remote() => {
            Some(Refusal::Connection)
        }
        _ => None,
    }
}

/// The error of a watch that is moved to another connection.
#[derive(Debug, thiserror::Error)]
#[error("the server behind the connection fails, and another connection works")]
struct MovedAway;

type Moved = Pin<Box<WaitForCancellationFutureOwned>>;

/// The body of an answer; keeps its slot until it was read or dropped.
pub(crate) struct Answer {
    body: Incoming,
    waiting: Waiting,
    /// What the answer shows about the server, once it was read.
    sign: Sign,
    is_brief: bool,
    /// The wait for a move; only watches are moved.
    moved: Option<Moved>,
}

impl Answer {
    fn frame(
        &mut self,
        frame: Option<Result<Frame<Bytes>, hyper::Error>>,
    ) -> Option<Result<Frame<Bytes>, BoxError>> {
        self.waiting.since = None;
        match &frame {
            // A reader may stop once the body says that nothing follows.
            Some(Ok(_)) if !self.body.is_end_stream() => {}
            Some(Err(_)) => self.waiting.end(Sign::Fails),
            // A failure was recorded with the head.
            _ if self.sign == Sign::Fails => self.waiting.end(Sign::Nothing),
            _ => self.waiting.end(self.sign),
        }
        frame.map(|frame| frame.map_err(BoxError::from))
    }

    /// Waits for a move of the watch; notes since when a brief answer has been waiting.
    fn poll_moved(&mut self, cx: &mut Context<'_>) -> Poll<BoxError> {
        let Some(moved) = &mut self.moved else {
            if self.is_brief {
                self.waiting.since.get_or_insert_with(Instant::now);
            }
            return Poll::Pending;
        };
        ready!(moved.poll_unpin(cx));
        self.waiting.end(Sign::Nothing);
        Poll::Ready(MovedAway.into())
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(self.frame(frame)),
            Poll::Pending => self.poll_moved(cx).map(|error| Some(Err(error))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

//! One HTTP/2 connection and its requests.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::BoxError;

use super::super::request::Length;
use super::open::{Http2, streams};

/// How many requests share a connection at most.
///
/// The flow-control windows are sized for that many.
const SHARED_BY: usize = 100;

/// How long a connection may be idle, unless it is the only one.
const IDLE_FOR: Duration = Duration::from_secs(90);
/// A connection accepts no more requests after one was cancelled so late. The time counts from the request, without an
/// answer: the connection may be dead.
const UNANSWERED: Duration = Duration::from_secs(30);

/// A connection.
pub(super) struct Line {
    send: SendRequest<Body>,
    /// Driven by a task of its own; stored here to query the server's stream limit.
    connection: Arc<Http2>,
    /// The number of the certificates that it was opened with.
    number: u64,
    load: Mutex<Load>,
}

/// The requests of a connection.
struct Load {
    brief: usize,
    lasting: usize,
    /// The limit that follows from refused streams.
    most: usize,
    /// Whether it accepts no more requests, and is closed when the last one has ended.
    is_retired: bool,
    idle_since: Instant,
}

/// A slot on a connection, reserved for a request until its answer has been read.
pub(super) struct Share {
    line: Arc<Line>,
    length: Length,
    asked: Instant,
    is_answered: bool,
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
        self.is_closed() || streams(&self.connection) == 0
    }

    /// Reserves a slot, if there is one.
    pub(super) fn claim(self: &Arc<Self>, length: Length) -> Option<Share> {
        // The server may change its limit at any time.
        let limit = streams(&self.connection);
        let asked = Instant::now();
        self.load.lock().claim(length, limit).then(|| Share {
            line: Arc::clone(self),
            length,
            asked,
            is_answered: false,
        })
    }

    pub(super) fn is_used(&self) -> bool {
        self.load.lock().used() > 0
    }

    /// Returns whether an idle connection is kept for further requests.
    pub(super) fn waits(&self, has_another: bool) -> bool {
        let load = self.load.lock();
        !load.is_retired && (!has_another || load.idle_since.elapsed() < IDLE_FOR)
    }
}

impl Load {
    fn new() -> Self {
        Self {
            brief: 0,
            lasting: 0,
            most: SHARED_BY,
            is_retired: false,
            idle_since: Instant::now(),
        }
    }

    fn used(&self) -> usize {
        self.brief + self.lasting
    }

    fn claim(&mut self, length: Length, limit: usize) -> bool {
        let limit = limit.min(self.most);
        let kept_free = match length {
            Length::Brief => 0,
            Length::Lasting => reserve(limit).saturating_sub(self.brief),
        };
        if self.is_retired || self.used() + kept_free >= limit {
            return false;
        }
        match length {
            Length::Brief => self.brief += 1,
            Length::Lasting => self.lasting += 1,
        }
        true
    }

    /// Records that a request has ended.
    ///
    /// `unanswered` is how long it waited for an answer that did not come.
    fn give_back(&mut self, length: Length, unanswered: Option<Duration>) {
        // The next request would wait for an answer too.
        self.is_retired |= unanswered.is_some_and(|waited| waited >= UNANSWERED);
        match length {
            Length::Brief => self.brief -= 1,
            Length::Lasting => self.lasting -= 1,
        }
        if self.used() == 0 {
            self.idle_since = Instant::now();
        }
    }

    /// Records that the server refused a stream.
    fn refused(&mut self) {
        self.most = self.used().saturating_sub(1);
        self.is_retired |= self.most == 0;
    }
}

/// Returns how many slots watches leave to other requests.
///
/// Otherwise every other request would need a further connection.
fn reserve(limit: usize) -> usize {
    if limit > 1 { limit.div_ceil(10) } else { 0 }
}

impl Share {
    pub(super) async fn send(
        mut self,
        request: Request<Body>,
    ) -> Result<Response<Answer>, SendError> {
        let mut send = self.line.send.clone();
        match send.try_send_request(request).await {
            Ok(response) => {
                self.is_answered = true;
                Ok(response.map(|body| Answer {
                    body,
                    share: Some(self),
                }))
            }
            Err(mut error) => {
                self.is_answered = true;
                let was_sent = error.take_message().is_none();
                let error = error.into_error();
                let refusal = refusal(&error);
                if refusal == Some(Refusal::Stream) {
                    self.line.load.lock().refused();
                } else if refusal == Some(Refusal::Connection) {
                    self.line.load.lock().is_retired = true;
                }
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
        let unanswered = (!self.is_answered).then(|| self.asked.elapsed());
        self.line.load.lock().give_back(self.length, unanswered);
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

/// The body of an answer; keeps its slot until it was read or dropped.
pub(in crate::client) struct Answer {
    body: Incoming,
    share: Option<Share>,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = &frame {
            self.share = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts how many requests of a length a connection takes.
    fn taken(load: &mut Load, length: Length, limit: usize) -> usize {
        (0..1_000).take_while(|_| load.claim(length, limit)).count()
    }

    #[tokio::test]
    async fn watches_leave_places_to_others() {
        for (limit, watches, others) in [(1, 1, 0), (2, 1, 1), (20, 18, 2), (250, 90, 10)] {
            let mut load = Load::new();
            assert_eq!(taken(&mut load, Length::Lasting, limit), watches, "{limit}");
            assert_eq!(taken(&mut load, Length::Brief, limit), others, "{limit}");
        }
    }

    #[tokio::test]
    async fn short_requests_use_all_places_and_leave_none_idle() {
        let mut load = Load::new();
        assert_eq!(taken(&mut load, Length::Brief, 20), 20);
        for _ in 0..10 {
            load.give_back(Length::Brief, None);
        }
        assert_eq!(taken(&mut load, Length::Lasting, 20), 10);
    }

    #[tokio::test]
    async fn what_was_refused_is_not_sent_there_again() {
        let mut load = Load::new();
        assert_eq!(taken(&mut load, Length::Brief, 100), 100);
        load.refused();
        load.give_back(Length::Brief, None);
        assert!(!load.claim(Length::Brief, 100), "it had 99 when it refused");
        load.give_back(Length::Brief, None);
        assert!(load.claim(Length::Brief, 100));
    }

    #[tokio::test]
    async fn a_connection_without_answers_gets_no_more_requests() {
        for (unanswered, expected) in [
            (None, true),
            (Some(Duration::from_secs(29)), true),
            (Some(Duration::from_secs(30)), false),
        ] {
            let mut load = Load::new();
            assert!(load.claim(Length::Brief, 100));
            load.give_back(Length::Brief, unanswered);
            assert_eq!(load.claim(Length::Brief, 100), expected, "{unanswered:?}");
        }
    }
}

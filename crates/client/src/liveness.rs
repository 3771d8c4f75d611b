//! Liveness: detecting a network that passes nothing on, over HTTP/1.1.
//!
//! TCP keepalive tests the other end of a connection. That may be a proxy or load balancer that accepts everything and
//! passes nothing on. HTTP/2 has pings for that. HTTP/1.1 has none, so a small request takes their place.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use http::{Request, Uri};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use tokio::time::{self, Instant, Sleep};
use tower::BoxError;

use crate::credentials::Credentials;
use crate::pool::{PING_AFTER, PING_TIMEOUT};
use crate::single::Single;

/// The silence before a test, and the timeout of its answer, as for HTTP/2.
const TEST_AFTER: Duration = PING_AFTER;
const TEST_TIMEOUT: Duration = PING_TIMEOUT;

/// The path of the test: small, and readable for every user. Any answer counts, also an error.
pub(crate) const TEST_PATH: &str = "/version";

/// How many bytes of the answer are read at most.
///
/// A connection is reused only if its answer was read to the end.
const READ: usize = 64 * 1024;

/// The error of a server that no longer answers.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum NotAlive {
    #[error("the API server did not answer a liveness test within {TEST_TIMEOUT:?}: GET {url}")]
    NotAnswered { url: Uri },
    #[error("a liveness test of the API server failed: GET {url}")]
    Failed {
        url: Uri,
        source: Arc<dyn Error + Send + Sync>,
    },
}

type Test = Shared<BoxFuture<'static, Result<(), NotAlive>>>;

/// Tests whether a server still answers: once for all HTTP/1.1 connections of a client.
///
/// Bytes on any connection show that the network works, so the server is tested only if none arrived on all of them.
/// They say nothing about a particular other connection: a silent one whose other end does not exist any more is left
/// to TCP keepalive. The test uses an idle connection if there is one, which is likely to be as old as the watches.
pub(crate) struct Liveness {
    credentials: Arc<Credentials>,
    /// The request of the test, without credentials.
    request: Request<()>,
    created: Instant,
    /// When something last arrived on any connection, in milliseconds since `created`.
    last_received: AtomicU64,
    test: Single<Result<(), NotAlive>>,
}

impl Liveness {
    pub(crate) fn new(credentials: Arc<Credentials>, request: Request<()>) -> Arc<Self> {
        Arc::new(Self {
            credentials,
            request,
            created: Instant::now(),
            last_received: AtomicU64::new(0),
            test: Single::new(),
        })
    }

    /// Records that something arrived from the server.
    pub(crate) fn received(&self) {
        let now = u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_received.store(now, Ordering::Relaxed);
    }

    /// Returns when the server will be tested if nothing arrives.
    fn due(&self) -> Instant {
        self.created
            + Duration::from_millis(self.last_received.load(Ordering::Relaxed))
            + TEST_AFTER
    }

    /// Returns the running test, or starts one; it runs as long as a body waits for it.
    fn test(self: &Arc<Self>) -> Test {
        self.test.join((), || {
            let liveness = Arc::clone(self);
            async move { liveness.run().await }.boxed()
        })
    }

    async fn run(&self) -> Result<(), NotAlive> {
        let before = self.last_received.load(Ordering::Relaxed);
        let url = || self.request.uri().clone();
        let error = match time::timeout(TEST_TIMEOUT, self.ask()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => NotAlive::Failed {
                url: url(),
                source: Arc::from(error),
            },
            Err(_) => NotAlive::NotAnswered { url: url() },
        };
        // The idle connections are likely to be dead too; the next request opens a new one.
        if let Some(login) = self.credentials.known() {
            login.transport.forget_idle();
        }
        // A slow server may have sent something on another connection meanwhile.
        if self.last_received.load(Ordering::Relaxed) == before {
            Err(error)
        } else {
            Ok(())
        }
    }

    /// Sends the request of the test and reads its answer.
    async fn ask(&self) -> Result<(), BoxError> {
        let login = self.credentials.at_hand().await?;
        let request = || self.request.clone().map(|()| Body::empty());
        // A request without credentials is answered too, if only with an error.
        let signed = login.sign(request()).await.unwrap_or_else(|_| request());
        let answer = login.transport.http1.get().request(signed).await?;
        self.received();
        let _ = Limited::new(answer.into_body(), READ).collect().await;
        Ok(())
    }
}

/// The body of an HTTP/1.1 answer; fails if the server does not answer any more.
///
/// The time counts while the body is being read. One timer is created by the first wait, and reused.
pub(crate) struct TestedBody<B> {
    body: B,
    liveness: Arc<Liveness>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The test that this body waits for.
    test: Option<Test>,
}

impl<B> TestedBody<B> {
    pub(crate) fn new(body: B, liveness: Arc<Liveness>) -> Self {
        Self {
            body,
            liveness,
            timer: None,
            test: None,
        }
    }

    /// Waits until a test of the server fails.
    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<NotAlive> {
        loop {
            if let Some(test) = &mut self.test {
                let result = ready!(test.poll_unpin(cx));
                self.test = None;
                if let Err(error) = result {
                    return Poll::Ready(error);
                }
            }
            let due = self.liveness.due();
            let new = || Box::pin(time::sleep_until(due));
            let timer = self.timer.get_or_insert_with(new);
            ready!(timer.as_mut().poll(cx));
            // Something may have arrived on another connection since the timer was set.
            if due > Instant::now() {
                timer.as_mut().reset(due);
            } else {
                self.test = Some(self.liveness.test());
            }
        }
    }
}

impl<B> HttpBody for TestedBody<B>
where
    B: HttpBody<Data = Bytes, Error = hyper::Error> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            return self.poll_lost(cx).map(|error| Some(Err(error.into())));
        };
        self.test = None;
        if let Some(Ok(_)) = &frame {
            self.liveness.received();
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

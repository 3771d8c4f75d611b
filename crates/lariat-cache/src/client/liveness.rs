//! Noticing a network that passes nothing on, over HTTP/1.1.
//!
//! TCP tests whether the other end of a connection is there. That may be a proxy or load balancer that accepts
//! everything and passes nothing on. HTTP/2 has pings for that; HTTP/1.1 has none, so a small request takes their
//! place.

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

use super::credentials::Credentials;
use super::pool::{PING_AFTER, PING_TIMEOUT};
use super::single::Single;

/// How long nothing may come before the server is tested, and how long the answer may take: as over HTTP/2.
const TEST_AFTER: Duration = PING_AFTER;
const TEST_TIMEOUT: Duration = PING_TIMEOUT;

/// What is asked for: every user may read it, and it is small. Any answer will do, a refusal too.
pub(super) const TEST_PATH: &str = "/version";

/// How much of an answer is read. A connection whose answer was not read to its end is not used again.
const READ: usize = 64 * 1024;

/// A server that is not reached any more.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum NotAlive {
    #[error("the API server has not answered a liveness test for {TEST_TIMEOUT:?}: GET {url}")]
    NotAnswered { url: Uri },
    #[error("the API server is not reached by a liveness test: GET {url}")]
    Failed {
        url: Uri,
        source: Arc<dyn Error + Send + Sync>,
    },
}

type Test = Shared<BoxFuture<'static, Result<(), NotAlive>>>;

/// Tests whether a server is still reached: once for all HTTP/1.1 connections of a client.
///
/// Bytes on any connection show that the network works, so a test is made only after none came on all of them. They do
/// not show that each other connection works: a quiet one whose other end is gone is found by TCP keepalive. The test
/// uses an idle connection where there is one, which is likely to be as old as the watches.
pub(super) struct Liveness {
    credentials: Arc<Credentials>,
    /// The request of a test, without credentials.
    request: Request<()>,
    created: Instant,
    /// When something came last on any connection, in milliseconds since `created`.
    heard: AtomicU64,
    test: Single<Result<(), NotAlive>>,
}

impl Liveness {
    pub(super) fn new(credentials: Arc<Credentials>, request: Request<()>) -> Arc<Self> {
        Arc::new(Self {
            credentials,
            request,
            created: Instant::now(),
            heard: AtomicU64::new(0),
            test: Single::new(),
        })
    }

    /// Notes that something came from the server.
    pub(super) fn heard(&self) {
        let now = u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(now, Ordering::Relaxed);
    }

    /// Returns when the server is to be tested if nothing comes.
    fn due(&self) -> Instant {
        self.created + Duration::from_millis(self.heard.load(Ordering::Relaxed)) + TEST_AFTER
    }

    /// Returns the test under way, or starts one. It goes on as long as a body waits for it.
    fn test(self: &Arc<Self>) -> Test {
        self.test.join((), || {
            let liveness = Arc::clone(self);
            async move { liveness.run().await }.boxed()
        })
    }

    async fn run(&self) -> Result<(), NotAlive> {
        let before = self.heard.load(Ordering::Relaxed);
        let url = || self.request.uri().clone();
        let error = match time::timeout(TEST_TIMEOUT, self.ask()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => NotAlive::Failed {
                url: url(),
                source: Arc::from(error),
            },
            Err(_) => NotAlive::NotAnswered { url: url() },
        };
        // The idle connections go the same way: the next request opens one of its own.
        if let Some(login) = self.credentials.known() {
            login.transport.forget_idle();
        }
        // A server that answers slowly may have shown on another connection meanwhile that it is there.
        if self.heard.load(Ordering::Relaxed) == before {
            Err(error)
        } else {
            Ok(())
        }
    }

    /// Sends the request, and reads its answer.
    async fn ask(&self) -> Result<(), BoxError> {
        let login = self.credentials.at_hand().await?;
        let request = || self.request.clone().map(|()| Body::empty());
        // Without credentials there is an answer too.
        let signed = login.sign(request()).await;
        let signed = signed.unwrap_or_else(|_| request());
        let answer = login.transport.http1.get().request(signed).await?;
        self.heard();
        let _ = Limited::new(answer.into_body(), READ).collect().await;
        Ok(())
    }
}

/// The body of an answer over HTTP/1.1. When nothing comes, it ends with an error if the server is not reached.
///
/// Time counts while the body is being read. It has one timer, from the first wait on.
pub(super) struct TestedBody<B> {
    body: B,
    liveness: Arc<Liveness>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The test that this body waits for.
    test: Option<Test>,
}

impl<B> TestedBody<B> {
    pub(super) fn new(body: B, liveness: Arc<Liveness>) -> Self {
        Self {
            body,
            liveness,
            timer: None,
            test: None,
        }
    }

    /// Waits until the server is not reached any more.
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
            // Something may have come on another connection since the timer was set.
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
            self.liveness.heard();
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

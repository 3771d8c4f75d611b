//! Answers: timeouts, retries of refused requests, fences.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use lariat_core::{Fence, while_open};
use tokio::time::{self, Instant};
use tower::{BoxError, Service};

use crate::explained::{asked_for, explained, read};
use crate::multiplex;
use crate::request::{self, Length};
use crate::requests::CountedClient;
use crate::timed::{AnswerBody, EndlessAnswer};

/// How often a refused request is retried, as in client-go.
const RETRIES: usize = 10;

/// The longest `Retry-After` that is followed.
///
/// An answer with a longer one is returned to the caller.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// The error of a request that was sent and not answered in time.
#[derive(Debug, thiserror::Error)]
#[error("{method} {path}: no answer from the API server within {after:?}{more}")]
struct NoAnswer {
    method: Method,
    path: String,
    after: Duration,
    more: &'static str,
}

/// Sends requests until they are answered, refused for good, or out of time.
///
/// A request that is refused with `Retry-After` is sent again after that delay, up to ten times, within the timeout:
/// after 429, because the API server did nothing, and after any 5xx if the request is a read. A longer delay than 30
/// seconds is left to the caller: the `Status` of an error contains the delay, and
/// [`retry_after`](crate::retry_after) reads it. The body of an error that is not a `Status` is replaced by one.
///
/// The timeout is for the whole answer, head and body. Watches, followed logs, and calls into pods have none. A
/// request to a `proxy` subresource or into a pod is sent once, and its answer is returned unchanged: a 429 or 404 may
/// come from the program behind it.
///
/// A request with a [`Fenced`] extension is sent while its fence is open.
///
/// ```no_run
/// use std::time::Duration;
///
/// use kube::Client;
/// use lariat_client::{Answering, CountedClient};
///
/// # fn example(client: Client) {
/// let answering = Answering::new(CountedClient::new(client), Duration::from_secs(10));
/// let client = Client::new(answering, "default");
/// # drop(client); }
/// ```
#[derive(Clone, Debug)]
pub struct Answering {
    client: CountedClient,
    limit: Duration,
}

/// The fence of a request, as an extension of it.
///
/// [`Answering`] asks it before each attempt, and whenever an attempt continues after a wait: for credentials, a
/// connection, a free stream, or the answer. When it closes, the attempt is dropped, or the wait for the next one ends.
/// A request that has left the process by then may be carried out all the same.
///
/// ```
/// use lariat_client::{Fence, Fenced};
///
/// fn fence(request: &mut http::Request<kube::client::Body>, fence: Box<dyn Fence>) {
///     request.extensions_mut().insert(Fenced::new(fence, "delete v1 Pod shop/web"));
/// }
/// # let _ = fence;
/// ```
#[derive(Clone)]
pub struct Fenced {
    fence: Arc<dyn Fence>,
    /// The request, for errors.
    subject: Arc<str>,
}

/// The error of a request without an answer.
///
/// Its text and source are those of the [inner error](Self::into_inner).
#[derive(Debug)]
pub struct Unanswered {
    error: BoxError,
    was_sent: bool,
}

impl Answering {
    /// The default timeout of an answer: 65 seconds.
    ///
    /// The timeout is a little more than the API server's own timeout (`--request-timeout`, a minute).
    pub const TIMEOUT: Duration = Duration::from_secs(65);

    /// Creates the service over a client, with a timeout for answers.
    ///
    /// Zero means no timeout.
    #[must_use]
    pub fn new(client: CountedClient, timeout: Duration) -> Self {
        let limit = timeout;
        Self { client, limit }
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    ///
    /// Fails if the request cannot be sent, is not answered in time, or its fence closes. A refusal of the API server
    /// is an answer.
    ///
    /// # Cancel safety
    ///
    /// A request whose future is dropped may have been sent.
    pub async fn send(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<AnswerBody>, Unanswered> {
        let fenced = request.extensions_mut().remove::<Fenced>();
        let (client, fenced) = (&self.client, fenced.as_ref());
        if request::is_passed_on(request.uri().path()) {
            let answer = attempt(client, request, fenced).await?;
            return Ok(answer.map(AnswerBody::from));
        }
        let is_limited = !self.limit.is_zero() && Length::of(&request) == Length::Brief;
        // A timeout that overflows the clock is none.
        let until = is_limited
            .then(|| Instant::now().checked_add(self.limit))
            .flatten();
        let Some(until) = until else {
            let answer = tries(client, request, fenced, None).await?;
            return Ok(explained(answer.map(AnswerBody::from)).await);
        };
        let unanswered = NoAnswer::to(&request, self.limit);
        let answer = tries(client, request, fenced, Some(until));
        let Ok(answer) = time::timeout_at(until, answer).await else {
            return Err(Unanswered {
                error: unanswered.into(),
                was_sent: true,
            });
        };
        let answer = answer?;
        let endless = unanswered.without_end(answer.status());
        Ok(explained(answer.map(|body| AnswerBody::until(body, until, endless))).await)
    }
}

impl Service<Request<Body>> for Answering {
    type Response = Response<AnswerBody>;
    type Error = Unanswered;
    type Future = BoxFuture<'static, Result<Response<AnswerBody>, Unanswered>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unanswered>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { this.send(request).await })
    }
}

impl Fenced {
    /// Creates the extension; `subject` names the request in errors.
    #[must_use]
    pub fn new(fence: Box<dyn Fence>, subject: impl Into<Arc<str>>) -> Self {
        Self {
            fence: Arc::from(fence),
            subject: subject.into(),
        }
    }

    fn closed(&self, was_sent: bool) -> Unanswered {
        Unanswered {
            error: self.fence.error(&self.subject, was_sent),
            was_sent,
        }
    }
}

impl fmt::Debug for Fenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fenced").field(&self.subject).finish()
    }
}

impl Unanswered {
    /// Returns whether the request may have been carried out.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.was_sent
    }

    /// Returns the error of the fence, the client or the timeout.
    #[must_use]
    pub fn into_inner(self) -> BoxError {
        self.error
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for Unanswered {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// Sends a request, and again after each refusal that asks for it.
async fn tries(
    client: &CountedClient,
    mut request: Request<Body>,
    fenced: Option<&Fenced>,
    until: Option<Instant>,
) -> Result<Response<Body>, Unanswered> {
    let mut retries = RETRIES;
    loop {
        let copy = request::copy(&request);
        let method = request.method().clone();
        let response = attempt(client, request, fenced).await?;
        let delay = delay(&method, &response).filter(|_| retries > 0);
        let (Some(copy), Some(delay)) = (copy, delay.filter(|delay| is_before(*delay, until)))
        else {
            return Ok(response);
        };
        let status = response.status();
        tracing::debug!(%status, ?delay, path = copy.uri().path(), "refused; retrying");
        let wait = async {
            // A connection is reused only if its answer was read to the end.
            read(response.into_body()).await;
            time::sleep(delay).await;
        };
        while_admitted(fenced, false, wait).await?;
        request = copy;
        retries -= 1;
    }
}

/// Sends a request once.
async fn attempt(
    client: &CountedClient,
    request: Request<Body>,
    fenced: Option<&Fenced>,
) -> Result<Response<Body>, Unanswered> {
    let sent = while_admitted(fenced, true, client.send(request)).await?;
    sent.map_err(|error| Unanswered {
        was_sent: !was_not_sent(&error),
        error: error.into(),
    })
}

/// Runs a future while the fence is open; `sends` is whether the future sends the request.
async fn while_admitted<T>(
    fenced: Option<&Fenced>,
    sends: bool,
    future: impl Future<Output = T>,
) -> Result<T, Unanswered> {
    let Some(fenced) = fenced else {
        return Ok(future.await);
    };
    if !fenced.fence.is_open() {
        return Err(fenced.closed(false));
    }
    let done = while_open(&*fenced.fence, future).await;
    done.ok_or_else(|| fenced.closed(sends))
}

/// Returns whether a failed request did not reach the API server.
///
/// True if no connection was established or signing failed. Any other request may have been carried out.
fn was_not_sent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Auth(_)) || multiplex::was_not_sent(error)
}

impl NoAnswer {
    fn to(request: &Request<Body>, after: Duration) -> Self {
        let is_read = is_read(request.method());
        Self {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            after,
            more: if is_read {
                ""
            } else {
                "; the request may have been carried out nevertheless"
            },
        }
    }

    /// Returns the error of an answer that began in time and did not end.
    fn without_end(self, status: StatusCode) -> EndlessAnswer {
        EndlessAnswer {
            method: self.method,
            path: self.path,
            status,
            after: self.after,
        }
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Returns whether a delay ends before the timeout.
fn is_before(delay: Duration, until: Option<Instant>) -> bool {
    // In this order: a header may contain more seconds than an `Instant` can add without a panic.
    delay <= LONGEST_DELAY && until.is_none_or(|until| Instant::now() + delay < until)
}

/// Returns the `Retry-After` of a response if the request may be retried.
fn delay<B>(method: &Method, response: &Response<B>) -> Option<Duration> {
    let status = response.status();
    let is_safe =
        status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() && is_read(method);
    is_safe.then(|| asked_for(response)).flatten()
}

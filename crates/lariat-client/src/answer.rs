//! Answers: timeouts, retries of refused requests, fences, and errors.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Collected, Limited};
use kube::client::Body;
use lariat_core::{Fence, while_open};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{self, Instant};
use tower::BoxError;

use super::gate::Described;
use super::multiplex;
use super::request::{self, Length};
use super::timed::{AnswerBody, EndlessAnswer};
use crate::requests::CountedClient;

/// The default timeout of an answer.
///
/// It is a little more than the API server's own timeout (`--request-timeout`, a minute).
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(65);

/// How often a refused request is retried, as in client-go.
const RETRIES: usize = 10;

/// The longest `Retry-After` that is followed.
///
/// An answer with a longer one is returned to the caller.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// How many bytes of an error's body are read at most.
const READ: usize = 1024 * 1024;

/// How long an error's body is read at most.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// How many characters of a body that is not a `Status` an error shows.
const SHOWN: usize = 300;

/// The error of a request that was sent and not answered in time.
#[derive(Debug, thiserror::Error)]
#[error("{method} {path}: no answer from the API server within {after:?}{more}")]
pub(super) struct NoAnswer {
    method: Method,
    path: String,
    after: Duration,
    more: &'static str,
}

/// The fence of a write.
pub(super) struct Fenced<'a> {
    pub(super) fence: &'a dyn Fence,
    /// The write, for errors.
    pub(super) write: Described<'a>,
}

/// The error of a request without an answer.
pub(super) struct Unanswered {
    pub(super) error: BoxError,
    /// Whether the request may have been carried out.
    pub(super) was_sent: bool,
}

/// Sends a request and waits for the head of its answer.
///
/// A request that is refused with `Retry-After` is retried after that delay, within the timeout: after 429, because the
/// API server did nothing, and after any 5xx if the request is a read. The `Status` of the last error contains its
/// delay. The timeout is for the body of the answer too.
///
/// A request to a `proxy` subresource or into a pod is sent once, and its answer is returned unchanged: a 429 or 404
/// may come from the program behind it.
///
/// The fence is asked before each attempt and whenever the attempt continues after a wait: for credentials, a
/// connection, a free stream, or the answer. When it closes, the attempt is dropped, or the wait for the next one ends.
pub(super) async fn send(
    client: &CountedClient,
    request: Request<Body>,
    limit: Duration,
    fenced: Option<Fenced<'_>>,
) -> Result<Response<AnswerBody>, Unanswered> {
    if request::is_passed_on(request.uri().path()) {
        let answer = attempt(client, request, fenced.as_ref()).await?;
        return Ok(answer.map(AnswerBody::from));
    }
    let is_limited = !limit.is_zero() && Length::of(&request) == Length::Brief;
    // A timeout that overflows the clock is none.
    let until = is_limited
        .then(|| Instant::now().checked_add(limit))
        .flatten();
    let Some(until) = until else {
        let answer = tries(client, request, fenced.as_ref(), None).await?;
        return Ok(explained(answer.map(AnswerBody::from)).await);
    };
    let unanswered = NoAnswer::to(&request, limit);
    let answer = tries(client, request, fenced.as_ref(), Some(until));
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

/// Sends a request, and again after each refusal that asks for it.
async fn tries(
    client: &CountedClient,
    mut request: Request<Body>,
    fenced: Option<&Fenced<'_>>,
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
    fenced: Option<&Fenced<'_>>,
) -> Result<Response<Body>, Unanswered> {
    let sent = while_admitted(fenced, true, client.send(request)).await?;
    sent.map_err(|error| Unanswered {
        was_sent: !was_not_sent(&error),
        error: error.into(),
    })
}

/// Runs a future while the fence is open; `sends` is whether the future sends the request.
async fn while_admitted<T>(
    fenced: Option<&Fenced<'_>>,
    sends: bool,
    future: impl Future<Output = T>,
) -> Result<T, Unanswered> {
    let Some(Fenced { fence, write }) = fenced else {
        return Ok(future.await);
    };
    let refused = |was_sent| Unanswered {
        error: fence.error(write, was_sent),
        was_sent,
    };
    if !fence.is_open() {
        return Err(refused(false));
    }
    let done = while_open(*fence, future).await;
    done.ok_or_else(|| refused(sends))
}

/// Returns whether a failed request did not reach the API server.
///
/// True if no connection was established or signing failed. Any other request may have been carried out.
fn was_not_sent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Auth(_)) || multiplex::was_not_sent(error)
}

/// Returns the delay that the API server requests in an error.
///
/// It is `retryAfterSeconds` of the `Status` in the error or in one of its sources; `None` if there is none.
///
/// ```
/// # use std::time::Duration;
/// let status = r#"{"code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 7}}"#;
/// let status: kube::core::Status = serde_json::from_str(status).unwrap();
/// let error = kube::Error::Api(Box::new(status));
/// assert_eq!(lariat::cache::retry_after(&error), Some(Duration::from_secs(7)));
/// ```
#[must_use]
pub fn retry_after(error: &(dyn Error + 'static)) -> Option<Duration> {
    let mut causes = std::iter::successors(Some(error), |each| (**each).source());
    let seconds = causes.find_map(|each| {
        // The source of an error that boxes another one is the box.
        let boxed = each.downcast_ref::<Box<kube::Error>>().map(|each| &**each);
        match each.downcast_ref().or(boxed) {
            Some(kube::Error::Api(status)) => Some(status.details.as_ref()?.retry_after_seconds),
            _ => None,
        }
    });
    let seconds = seconds.filter(|seconds| *seconds > 0)?;
    Some(Duration::from_secs(seconds.into()))
}

/// Returns whether an error means that the object does not exist.
///
/// Code 404 alone does not mean that. An API server also answers 404 if it does not serve the kind or the path, which
/// happens while it starts and has not read its CRDs, and a proxy may answer 404 to every request. If an object is
/// missing, the answer is a `Status` that names the object. This function returns true for such a `Status` only.
///
/// The same `Status` is the answer for a subresource that the kind does not have, and for a namespace that does not
/// exist.
///
/// ```
/// # let error = |status: &str| kube::Error::Api(serde_json::from_str(status).unwrap());
/// let no_pod = r#"{"code": 404, "reason": "NotFound", "details": {"kind": "pods", "name": "web"}}"#;
/// assert!(lariat::cache::is_missing(&error(no_pod)));
/// let no_path = r#"{"code": 404, "reason": "NotFound", "message": "404 page not found"}"#;
/// assert!(!lariat::cache::is_missing(&error(no_path)));
/// ```
#[must_use]
pub fn is_missing(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let details = status.details.as_ref();
    let names_one = details.is_some_and(|details| !details.name.is_empty());
    status.code == 404 && status.reason == "NotFound" && names_one
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
}

impl NoAnswer {
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

fn asked_for<B>(response: &Response<B>) -> Option<Duration> {
    let text = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    Some(Duration::from_secs(text.trim().parse().ok()?))
}

/// The field that every `Status` has.
#[derive(Deserialize)]
struct AnyStatus {
    kind: String,
}

/// Replaces the body of an error by a `Status`, unless it is one.
///
/// kube can only parse a `Status`.
async fn explained(response: Response<AnswerBody>) -> Response<AnswerBody> {
    let status = response.status();
    let is_refusal = status.is_client_error() || status.is_server_error();
    if !is_refusal || response.headers().contains_key(header::CONTENT_ENCODING) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = read(body).await;
    let known = serde_json::from_slice::<AnyStatus>(&body);
    if known.is_ok_and(|known| known.kind == "Status") {
        return Response::from_parts(parts, Body::from(body).into());
    }
    let seconds = asked_for(&Response::from_parts(parts.clone(), ())).map(|after| after.as_secs());
    // kube reads the delay of a `Status` as a `u32`.
    let seconds = seconds.map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX));
    let text = message(&parts, &body);
    let made = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": text,
        "reason": reason(status),
        "details": {"retryAfterSeconds": seconds.unwrap_or_default()},
        "code": status.as_u16(),
    });
    let json = header::HeaderValue::from_static("application/json");
    parts.headers.insert(header::CONTENT_TYPE, json);
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(made.to_string().into_bytes()).into())
}

/// Reads the body of an error; empty if it is cut off, too long or too slow.
async fn read<B>(body: B) -> Bytes
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let read = time::timeout(READ_TIMEOUT, Limited::new(body, READ).collect()).await;
    read.ok()
        .and_then(Result::ok)
        .map_or_else(Bytes::new, Collected::to_bytes)
}

/// Returns the text of an answer, unless it is an HTML page.
fn message(parts: &http::response::Parts, body: &Bytes) -> String {
    let kind = parts
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let status = parts.status;
    let body = String::from_utf8_lossy(body);
    let text = body.trim();
    let is_page = kind.starts_with("text/html") || text.starts_with('<');
    if text.is_empty() || is_page {
        return format!("the server, or a proxy before it, answered {status} without a reason");
    }
    let shown: String = text.chars().take(SHOWN).collect();
    shown.replace('\n', " ")
}

/// Returns the reason of a status code: apimachinery's `NewGenericServerResponse`.
fn reason(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "Unauthorized",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::METHOD_NOT_ALLOWED => "MethodNotAllowed",
        StatusCode::NOT_ACCEPTABLE => "NotAcceptable",
        StatusCode::CONFLICT => "Conflict",
        StatusCode::GONE => "Gone",
        StatusCode::PAYLOAD_TOO_LARGE => "RequestEntityTooLarge",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "UnsupportedMediaType",
        StatusCode::UNPROCESSABLE_ENTITY => "Invalid",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::INTERNAL_SERVER_ERROR => "InternalError",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        StatusCode::GATEWAY_TIMEOUT => "Timeout",
        _ => "Unknown",
    }
}

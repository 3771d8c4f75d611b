//! Errors that kube can read: each body of an error becomes a `Status`.

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt, Collected, Limited};
use kube::client::Body;
use serde::Deserialize;
use serde_json::json;
use tokio::time;
use tower::BoxError;

use crate::timed::AnswerBody;

/// How many bytes of an error's body are read at most.
const READ: usize = 1024 * 1024;

/// How long an error's body is read at most.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// How many characters of a body that is not a `Status` an error shows.
const SHOWN: usize = 300;

/// The field that every `Status` has.
#[derive(Deserialize)]
struct AnyStatus {
    kind: String,
}

/// Replaces the body of an error by a `Status`, unless it is one.
///
/// kube can only parse a `Status`.
pub(crate) async fn explained(response: Response<AnswerBody>) -> Response<AnswerBody> {
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
pub(crate) async fn read<B>(body: B) -> Bytes
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

/// Returns the `Retry-After` of a response, in seconds.
pub(crate) fn asked_for<B>(response: &Response<B>) -> Option<Duration> {
    let text = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    Some(Duration::from_secs(text.trim().parse().ok()?))
}

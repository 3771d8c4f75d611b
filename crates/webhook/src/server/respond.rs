//! Answers as HTTP responses.

use axum::body::Body;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use crate::alerts::WebhookAlert;
use crate::wire::Answer;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

impl Answer {
    pub(super) fn not_found(path: &str) -> Self {
        Self::Refused(
            StatusCode::NOT_FOUND,
            format!("there is no webhook at {path}"),
        )
    }

    pub(super) fn method(method: &http::Method) -> Self {
        let message = format!("webhooks accept POST, not {method}");
        Self::Refused(StatusCode::METHOD_NOT_ALLOWED, message)
    }

    pub(super) fn media_type(found: &str) -> Self {
        let message = format!("webhooks accept {JSON}, not {found:?}");
        Self::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    }

    pub(super) fn too_large(limit: usize) -> Self {
        let message = format!("the body is longer than {limit} bytes");
        Self::Refused(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    pub(super) fn busy() -> Self {
        let message = "too many reviews are in progress".to_owned();
        Self::Refused(StatusCode::TOO_MANY_REQUESTS, message)
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Review(_) => StatusCode::OK,
            Self::Refused(status, _) => *status,
        }
    }
}

pub(super) fn respond(answer: Answer) -> Response<Body> {
    let status = answer.status();
    let (media_type, body) = match answer {
        Answer::Review(body) => (JSON, Body::from(body)),
        // API servers quote bodies that are plain text in their errors.
        Answer::Refused(_, message) => (TEXT, Body::from(message)),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

/// The checks of a probe by name, with their results.
pub(super) type Checks<'a> = [(&'a str, Result<(), String>)];

/// Responds to a probe, in the form of API servers.
///
/// Probes need no authentication, so the reasons are withheld. The alerts are listed, and do not count.
pub(super) fn probe(
    name: &str,
    checks: &Checks<'_>,
    alerts: Option<&[WebhookAlert]>,
) -> Response<Body> {
    let is_good = checks.iter().all(|(_, result)| result.is_ok());
    let (status, result) = if is_good {
        (StatusCode::OK, "passed")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "failed")
    };
    let mut text = String::new();
    for (check, result) in checks {
        let line = match result {
            Ok(()) => format!("[+]{check} ok\n"),
            Err(_) => format!("[-]{check} failed: reason withheld\n"),
        };
        text.push_str(&line);
    }
    for alert in alerts.unwrap_or_default() {
        text.push_str(&format!(
            "[-]{} failed: reason withheld, does not count\n",
            alert.name
        ));
    }
    text.push_str(&format!("{name} check {result}\n"));
    if is_good && alerts.is_none() {
        "ok".clone_into(&mut text);
    }
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static(TEXT);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

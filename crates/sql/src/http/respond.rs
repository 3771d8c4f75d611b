//! Responses, and how clients may cache them.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::etag;
use super::visible::View;

pub(super) const JSON: &str = "application/json";

/// Returns an answer as JSON.
///
/// A client may cache it, and must revalidate it each time.
pub(super) fn json_response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let fixed = HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, fixed(JSON));
    kept_by_client(headers);
    response
}

/// Keeps a response about an encrypted kind out of caches.
///
/// Browsers store theirs in plain text.
pub(super) fn about(view: &View, mut response: Response) -> Response {
    if view.is_sealed() {
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

fn kept_by_client(headers: &mut HeaderMap) {
    let fixed = HeaderValue::from_static;
    headers.insert(header::CACHE_CONTROL, fixed("private, no-cache"));
    headers.insert(header::VARY, fixed("Authorization"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff"));
}

pub(super) fn with_tag(mut response: Response, tag: Option<HeaderValue>) -> Response {
    if let Some(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

pub(super) fn not_modified(tag: HeaderValue) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    kept_by_client(response.headers_mut());
    with_tag(response, Some(tag))
}

/// Answers with content that does not change while the service runs.
pub(super) fn fixed(headers: &HeaderMap, content_type: &'static str, content: &Bytes) -> Response {
    let tag = etag::of_content(content);
    if etag::is_known(headers, &tag) {
        return not_modified(tag);
    }
    let mut response = json_response(Body::from(content.clone()));
    let of = HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, of);
    with_tag(response, Some(tag))
}

//! Answers of the API.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::json;

/// A request that is refused, with the reason for the user.
#[derive(Debug)]
pub(super) struct Refusal {
    code: StatusCode,
    message: String,
}

impl Refusal {
    pub(super) fn new(code: StatusCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self { code, message } = self;
        // The reasons of the API server are the names of the codes without spaces, such as `NotFound`.
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": code.canonical_reason().unwrap_or_default().replace(' ', ""),
            "code": code.as_u16(),
        });
        let mut response = reply(code, &status);
        if code == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// Answers a document.
pub(super) fn reply(code: StatusCode, document: &impl Serialize) -> Response {
    let json = serde_json::to_vec(document).expect("what is answered here is JSON");
    let mut response = Response::new(Body::from(json));
    *response.status_mut() = code;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

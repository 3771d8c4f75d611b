//! Responses of the routes.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderValue, header};
use serde::Serialize;

use super::refusal::Refusal;
use super::state::ServerState;

/// The result of a route.
pub(super) type Answered = Result<Response, Refusal>;

/// The server's state, as a route gets it.
pub(super) type Shared = State<Arc<ServerState>>;

/// Returns a response with a body of a content type.
pub(super) fn typed(content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    let content_type = HeaderValue::from_static(content_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

/// Returns a response with a value as JSON.
pub(super) fn json(value: &impl Serialize) -> Answered {
    let text = serde_json::to_string(value);
    let text = text.map_err(|_| Refusal::internal("the answer cannot be written as JSON"))?;
    Ok(typed("application/json", text))
}

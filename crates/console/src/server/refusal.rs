//! Refusals of requests, as `Status` objects like those of the API server.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use lariat_core::Gvk;
use serde_json::json;

use crate::access::Denied;

/// The number of seconds after which a client may try again.
const RETRY_AFTER: u32 = 1;

/// A refusal of a request.
#[derive(Debug)]
pub(super) struct Refusal {
    code: StatusCode,
    reason: &'static str,
    message: String,
    allow: Option<&'static str>,
}

impl Refusal {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            allow: None,
        }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    pub(super) fn no_controller(gvk: &Gvk) -> Self {
        Self::not_found(format!("there is no controller of {gvk}"))
    }

    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message)
    }

    pub(super) fn method(allow: &'static str) -> Self {
        let message = format!("the route accepts {allow} only");
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
        }
    }

    pub(super) fn too_large(limit: usize) -> Self {
        let message = format!("the body is longer than {limit} bytes");
        let reason = "RequestEntityTooLarge";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, reason, message)
    }

    pub(super) fn media_type() -> Self {
        let message = "the body must be JSON, sent as application/json";
        let reason = "UnsupportedMediaType";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason, message)
    }

    pub(super) fn slow() -> Self {
        let message = "the body did not arrive in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "Timeout", message)
    }

    pub(super) fn long_url(limit: usize) -> Self {
        let message = format!("the URL is longer than {limit} bytes");
        Self::new(StatusCode::URI_TOO_LONG, "RequestURITooLong", message)
    }

    pub(super) fn host() -> Self {
        Self::forbidden(
            "the Host header may be the name of another site: use an IP address, localhost or the name of a Service, \
            or allow the name with `Console::host`",
        )
    }

    pub(super) fn busy(what: &str, limit: usize) -> Self {
        let message = format!("the limit of {limit} concurrent {what} is reached: try again");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        let code = StatusCode::INTERNAL_SERVER_ERROR;
        Self::new(code, "InternalError", message)
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Closed => Self::forbidden(
                "the program allows no access to its console on this address; it has to set `token`, \
                `token_reviews` or `open_to_everyone`, or listen on a loopback address",
            ),
            Denied::Unauthenticated(why) => {
                Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", why)
            }
            Denied::Forbidden { user, permission } => {
                let (verb, path) = permission.rule();
                let message = format!(
                    "user {user:?} may not {verb} {path}; a role with nonResourceURLs can allow it"
                );
                Self::forbidden(message)
            }
            Denied::Unavailable(why) => {
                let code = StatusCode::SERVICE_UNAVAILABLE;
                Self::new(code, "ServiceUnavailable", why)
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code.as_u16(),
        });
        let mut response = Response::new(Body::from(status.to_string()));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        let fixed = HeaderValue::from_static;
        headers.insert(header::CONTENT_TYPE, fixed("application/json"));
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, fixed(allow));
        }
        match self.code {
            // Without `WWW-Authenticate`, 401 is not a valid response. Browsers show no dialog for `Bearer`.
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, fixed("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, RETRY_AFTER.into());
            }
            _ => {}
        }
        response
    }
}

//! Error responses of servers and of proxies in front of them.

use std::time::Duration;

use http::StatusCode;

/// An error response: status code, body, and `Retry-After`.
///
/// ```
/// use std::time::Duration;
/// use lariat::cluster::faults::{ErrorBody, Refusal, StatusCode};
///
/// // What a load balancer says while the API server restarts.
/// let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE)
///     .body(ErrorBody::Html)
///     .retry_after(Duration::from_secs(5));
/// assert!(refusal.is_legal());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a refusal does nothing until it is part of a rule"]
pub struct Refusal {
    pub(crate) code: StatusCode,
    pub(crate) body: ErrorBody,
    pub(crate) retry_after: Option<u64>,
}

/// The body of an error response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorBody {
    /// A `Status` object, as from the API itself.
    #[default]
    Status,
    /// Plain text, as from the API server's flow control.
    Text,
    /// A small page of HTML, as from a proxy.
    Html,
}

impl Refusal {
    /// Answers a code with a `Status`.
    pub fn new(code: StatusCode) -> Self {
        Self {
            code,
            body: ErrorBody::default(),
            retry_after: None,
        }
    }

    /// Answers 429 in plain text with `Retry-After: 1`, as an overloaded API server.
    pub fn too_many_requests() -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS)
            .body(ErrorBody::Text)
            .retry_after(Duration::from_secs(1))
    }

    /// Sets the body (default [`ErrorBody::Status`]).
    pub fn body(self, body: ErrorBody) -> Self {
        Self { body, ..self }
    }

    /// Sets `Retry-After`, in whole seconds, rounded up.
    ///
    /// By default the header is absent.
    pub fn retry_after(self, time: Duration) -> Self {
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// Returns whether a correct API server may answer this to any request.
    ///
    /// Proxies in front of it may answer it too. The legal codes are 429 and 5xx.
    #[must_use]
    pub fn is_legal(&self) -> bool {
        self.code == StatusCode::TOO_MANY_REQUESTS || self.code.is_server_error()
    }
}

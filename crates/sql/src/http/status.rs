//! The response to a refused request: a `Status`, as from the API server.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use lariat_http::AuthError;
use serde_json::{Value as Json, json};

use super::error::VisibleError;
use crate::cache::SqlError;
use crate::query::{QueryError, UrlError};
use crate::sql::StorageError;
use crate::watch::WatchError;

/// The number of seconds after which a client may retry.
const RETRY_AFTER: u32 = 1;

/// The reason why a request is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    code: StatusCode,
    reason: &'static str,
    message: String,
    /// The invalid parameter.
    field: Option<String>,
    retry_after: Option<u32>,
}

impl Refusal {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            field: None,
            retry_after: None,
        }
    }

    fn later(self) -> Self {
        self.after(RETRY_AFTER)
    }

    /// Sets the pause after which to retry, rounded up to whole seconds.
    fn after_time(self, after: Duration) -> Self {
        self.after(
            u32::try_from(after.as_secs())
                .unwrap_or(u32::MAX)
                .saturating_add(1),
        )
    }

    fn after(self, seconds: u32) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// Creates the refusal of an invalid parameter.
    pub(super) fn parameter(name: &str, message: impl Into<String>) -> Self {
        Self {
            field: Some(name.to_owned()),
            ..Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
        }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", message)
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    pub(super) fn method() -> Self {
        let message = "the service is read-only: send GET or HEAD";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    pub(super) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    pub(super) fn long_url(limit: usize) -> Self {
        let message = format!(
            "the URL is longer than {limit} bytes: shorten the filters, or send several requests"
        );
        Self::new(StatusCode::URI_TOO_LONG, "RequestURITooLong", message)
    }

    pub(super) fn host() -> Self {
        let message = "the Host header may be the name of another site: use an IP address, localhost or the name of \
            a Service, or allow the name with `SqlService::host`";
        Self::forbidden(message)
    }

    /// Creates the refusal at the limit of concurrent requests or watches.
    pub(super) fn busy(what: &str, limit: usize) -> Self {
        Self::too_many(format!(
            "the limit of {limit} concurrent {what} is reached: try again later"
        ))
    }

    /// Creates the refusal at a user's limit of concurrent requests or watches.
    pub(super) fn busy_user(what: &str, limit: usize) -> Self {
        Self::too_many(format!(
            "your limit of {limit} concurrent {what} is reached: try again later"
        ))
    }

    /// Creates the refusal at the limit of bytes in answers.
    pub(super) fn full(limit: u64) -> Self {
        Self::too_many(format!(
            "the answers that clients have not read yet leave no room: the limit is {limit} bytes; try again later"
        ))
    }

    /// Creates the refusal at a user's limit of bytes in answers.
    pub(super) fn full_user(limit: u64) -> Self {
        Self::too_many(format!(
            "the answers that you have not read yet leave no room: your limit is {limit} bytes; read them, or try again later"
        ))
    }

    fn too_many(message: String) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message).later()
    }

    pub(super) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    fn internal(error: &dyn std::error::Error) -> Self {
        // Not sent to the client: the error may contain file names.
        let text = lariat_core::describe(error);
        tracing::warn!(error = text, "the SQL cache cannot be read");
        let message = "the cache cannot be read; the log of the program says why";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// Returns the `Status` object.
    pub(super) fn status(&self) -> Json {
        let mut details = serde_json::Map::new();
        if let Some(field) = &self.field {
            let cause =
                json!({"reason": "FieldValueInvalid", "field": field, "message": self.message});
            details.insert("causes".into(), json!([cause]));
        }
        if let Some(seconds) = self.retry_after {
            details.insert("retryAfterSeconds".into(), seconds.into());
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code.as_u16(),
        });
        if !details.is_empty() {
            status["details"] = details.into();
        }
        status
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.status().to_string()));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        let fixed = HeaderValue::from_static;
        headers.insert(header::CONTENT_TYPE, fixed("application/json"));
        // An error ends as soon as its cause does; a proxy must not repeat it.
        headers.insert(header::CACHE_CONTROL, fixed("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        match self.code {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, fixed("Bearer"));
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                headers.insert(header::ALLOW, fixed("GET, HEAD, OPTIONS"));
            }
            _ => {}
        }
        response
    }
}

impl From<UrlError> for Refusal {
    fn from(error: UrlError) -> Self {
        // This parameter is removed before a query is read, so the error does not list it.
        let more = match &error {
            UrlError::Unknown { .. } => ", watch",
            _ => "",
        };
        let message = format!("{error}{more}");
        match error.parameter() {
            Some(parameter) => Self::parameter(parameter, message),
            None => Self::bad_request(message),
        }
    }
}

impl From<QueryError> for Refusal {
    fn from(error: QueryError) -> Self {
        let message = error.to_string();
        match error {
            // The revision is not written yet, so the same request can succeed later. The revision that was reached may
            // be of a change that the user may not see.
            QueryError::Behind { kind, wanted, .. } => {
                let message = format!("{kind} did not reach {wanted} in time");
                Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).later()
            }
            QueryError::UnknownField { field, .. } | QueryError::Unsortable { field, .. } => {
                Self::parameter(&field, message)
            }
            QueryError::Value { subject, .. } | QueryError::Operator { subject, .. } => {
                Self::parameter(&subject, message)
            }
            QueryError::ManyCounts { .. } | QueryError::LargeCounts { .. } => {
                Self::parameter("summary", message)
            }
            QueryError::LargePage { .. } => Self::parameter("pagesize", message),
            QueryError::Cursor(_) => Self::parameter("continue", message),
            QueryError::Search { .. } => Self::parameter("search", message),
            _ => Self::bad_request(message),
        }
    }
}

impl From<SqlError> for Refusal {
    fn from(error: SqlError) -> Self {
        let unavailable = |message| {
            Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "ServiceUnavailable",
                message,
            )
        };
        match error {
            SqlError::Query(error) => error.into(),
            SqlError::UnknownKind { .. } => Self::not_found(error.to_string()),
            // The service replaces it by the limit that is reached.
            SqlError::NoRoom { .. } => Self::too_many(error.to_string()),
            SqlError::Timeout { .. } => {
                Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", error.to_string())
            }
            SqlError::NotSynced { .. } | SqlError::Stopped => {
                unavailable(error.to_string()).later()
            }
            // The database server cannot be reached, or is busy. Clients must not learn its name.
            SqlError::Storage(StorageError::Server { .. } | StorageError::Postgres { .. }) => {
                tracing::warn!(%error, "a query of the SQL cache failed");
                unavailable("the database of the SQL cache cannot be read now".to_owned()).later()
            }
            error => Self::internal(&error),
        }
    }
}

impl From<WatchError> for Refusal {
    fn from(error: WatchError) -> Self {
        let message = error.to_string();
        match error {
            WatchError::Query(error) => error.into(),
            // 410, as of a watch of Kubernetes: the client has to list again. Revisions are left out, because they may
            // be of changes that the user may not see.
            WatchError::TooOld { kind, .. } => Self::expired(format!(
                "the changes of {kind} after the revision are not available: it is too old, or from another cache; list again"
            )),
            WatchError::TooSlow { kind, .. } => Self::expired(format!(
                "the next changes of {kind} are no longer available: the watch is too slow, or a namespace that was forbidden has become readable; list again"
            )),
            WatchError::Stopped { .. } | WatchError::Elsewhere { .. } => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "ServiceUnavailable",
                message,
            )
            .later(),
        }
    }
}

impl From<AuthError> for Refusal {
    fn from(error: AuthError) -> Self {
        let message = error.to_string();
        match error {
            AuthError::Unauthenticated(_) => Self::unauthorized(message),
            AuthError::Busy { after } => Self::too_many(message).after_time(after),
            _ => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "ServiceUnavailable",
                message,
            )
            .later(),
        }
    }
}

impl From<VisibleError> for Refusal {
    fn from(error: VisibleError) -> Self {
        let message = error.to_string();
        if let Some(after) = error.spent() {
            return Self::too_many(message).after_time(after);
        }
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            message,
        )
        .later()
    }
}

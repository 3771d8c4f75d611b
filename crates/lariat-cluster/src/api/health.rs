//! The health endpoints.

use http::StatusCode;

use crate::status::ApiError;
use crate::wire::reply::Reply;

/// The checks of a server; none of them can fail here.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];

/// Answers `/healthz`, `/livez` and `/readyz`, or one check below them.
pub(crate) fn health(endpoint: &str, check: &str, verbose: bool) -> Result<Reply, ApiError> {
    if !check.is_empty() && !CHECKS.contains(&check) {
        return Err(ApiError::page_not_found());
    }
    if !verbose || !check.is_empty() {
        return Ok(Reply::text(StatusCode::OK, "ok"));
    }
    let checks: String = CHECKS
        .iter()
        .map(|check| format!("[+]{check} ok\n"))
        .collect();
    let text = format!("{checks}{endpoint} check passed\n");
    Ok(Reply::text(StatusCode::OK, text))
}

//! The health endpoints.

use std::collections::BTreeSet;

use http::StatusCode;

use crate::status::ApiError;
use crate::wire::query::Query;
use crate::wire::reply::Reply;

/// The checks of a server; none of them can fail here.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];

/// Answers `/healthz`, `/livez` and `/readyz`, or one check below them.
pub(crate) fn health(endpoint: &str, check: &str, query: &Query) -> Result<Reply, ApiError> {
    if !check.is_empty() && !CHECKS.contains(&check) {
        return Err(ApiError::page_not_found());
    }
    if !query.has("verbose") || !check.is_empty() {
        return Ok(Reply::text(StatusCode::OK, "ok"));
    }
    let excluded: BTreeSet<&str> = query.all("exclude").iter().map(String::as_str).collect();
    let checks = CHECKS.iter().map(|check| {
        let how = if excluded.contains(check) {
            " excluded:"
        } else {
            ""
        };
        format!("[+]{check}{how} ok\n")
    });
    let mut text: String = checks.collect();
    let unknown = excluded.iter().filter(|each| !CHECKS.contains(each));
    let unknown: Vec<String> = unknown.map(|each| format!("{each:?}")).collect();
    if !unknown.is_empty() {
        let names = unknown.join(",");
        let warning = "some health checks cannot be excluded: no matches for";
        text.push_str(&format!("warn: {warning} {names}\n"));
    }
    text.push_str(&format!("{endpoint} check passed\n"));
    Ok(Reply::text(StatusCode::OK, text))
}

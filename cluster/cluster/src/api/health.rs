//! The health endpoints.

use std::collections::BTreeSet;

use http::StatusCode;

use crate::status::ApiError;
use crate::wire::query::Query;
use crate::wire::reply::Reply;

/// The checks of a live server; none of them can fail here.
const LIVE: [&str; 5] = [
    "ping",
    "log",
    "loopback-serving-certificate",
    "etcd",
    "autoregister-completion",
];

/// The checks of a server that is ready for requests.
const READY: [&str; 7] = [
    "ping",
    "log",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    "autoregister-completion",
    "shutdown",
];

/// Answers `/healthz`, `/livez` and `/readyz`, or one check below them.
pub(crate) fn health(endpoint: &str, check: &str, query: &Query) -> Result<Reply, ApiError> {
    let checks: &[&str] = if endpoint == "readyz" { &READY } else { &LIVE };
    if !check.is_empty() && !checks.contains(&check) {
        return Err(ApiError::page_not_found());
    }
    if !query.has("verbose") || !check.is_empty() {
        return Ok(Reply::text(StatusCode::OK, "ok"));
    }
    let excluded: BTreeSet<&str> = query.all("exclude").iter().map(String::as_str).collect();
    let lines = checks.iter().map(|check| {
        let how = if excluded.contains(check) {
            " excluded:"
        } else {
            ""
        };
        format!("[+]{check}{how} ok\n")
    });
    let mut text: String = lines.collect();
    let unknown = excluded.iter().filter(|each| !checks.contains(each));
    let unknown: Vec<String> = unknown.map(|each| format!("{each:?}")).collect();
    if !unknown.is_empty() {
        let names = unknown.join(",");
        let warning = "some health checks cannot be excluded: no matches for";
        text.push_str(&format!("warn: {warning} {names}\n"));
    }
    text.push_str(&format!("{endpoint} check passed\n"));
    Ok(Reply::text(StatusCode::OK, text))
}

//! Asking gates, and making dry runs of writes.

use bytes::Bytes;
use http::{Request, Uri, header};
use kube::client::Body;
use serde_json::{Map, Value, json};
use tower::BoxError;

use super::gate::{GateDecision, WriteGate, WriteReceipt, WriteResult};
use super::pending::PendingWrite;
use super::write::{Write, WriteObserver};

/// The error of a write that cannot be sent as a dry run.
#[derive(Debug, thiserror::Error)]
#[error("{write} cannot be sent as a dry run: {reason}")]
struct NoDryRun {
    write: String,
    reason: &'static str,
}

/// Calls the gate and changes the request accordingly.
///
/// `options` is the body of a deletion.
pub(super) fn pass(
    gate: &dyn WriteGate,
    observer: &dyn WriteObserver,
    write: &mut Write,
    request: &mut Request<Body>,
    options: Option<&Bytes>,
) -> Result<Option<Box<dyn WriteReceipt>>, BoxError> {
    if write.is_question() {
        return Ok(None);
    }
    let pending = PendingWrite::of(write, request, observer);
    let receipt = match gate.admit(&pending) {
        GateDecision::Pass => return Ok(None),
        GateDecision::Send(receipt) => return Ok(Some(receipt)),
        GateDecision::Refuse(error) => return Err(error),
        GateDecision::DryRun(receipt) => receipt,
    };
    let text = pending.to_string();
    match make_dry_run(write, request, options) {
        Ok(()) => Ok(Some(receipt)),
        Err(reason) => {
            receipt.ended(&WriteResult::NotSent);
            Err(NoDryRun {
                write: text,
                reason,
            }
            .into())
        }
    }
}

/// Changes a request to a dry run.
fn make_dry_run(
    write: &mut Write,
    request: &mut Request<Body>,
    options: Option<&Bytes>,
) -> Result<(), &'static str> {
    if write.is_passed_on() {
        return Err("the request is passed on to a program");
    }
    // The caller's own dry run stores nothing as it is.
    if write.is_dry_run {
        return Ok(());
    }
    write.is_dry_run = true;
    // If a deletion has a body, the API server ignores its query.
    match options.filter(|options| !options.is_empty()) {
        Some(options) => {
            let not_json = "the options of the deletion are not JSON";
            let mut options: Map<String, Value> =
                serde_json::from_slice(options).map_err(|_| not_json)?;
            options.insert("dryRun".to_owned(), json!(["All"]));
            let options = serde_json::to_vec(&options).map_err(|_| not_json)?;
            *request.body_mut() = Body::from(options);
            request.headers_mut().remove(header::CONTENT_LENGTH);
        }
        None => *request.uri_mut() = with_dry_run(request.uri()).ok_or("the URI is too long")?,
    }
    Ok(())
}

/// Adds the dry-run parameter to a URI.
fn with_dry_run(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let target = match uri.query().filter(|query| !query.is_empty()) {
        Some(query) => format!("{path}?{query}&dryRun=All"),
        None => format!("{path}?dryRun=All"),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dry_run_parameter_is_added_to_the_query() {
        for (uri, expected) in [
            ("/api/v1/pods", "/api/v1/pods?dryRun=All"),
            ("/api/v1/pods?", "/api/v1/pods?dryRun=All"),
            (
                "/api/v1/pods?force=true",
                "/api/v1/pods?force=true&dryRun=All",
            ),
            (
                "http://x:1/api/v1/pods",
                "http://x:1/api/v1/pods?dryRun=All",
            ),
        ] {
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(with_dry_run(&uri).unwrap().to_string(), expected);
        }
    }
}

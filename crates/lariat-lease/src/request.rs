//! Sending a request about a lease.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease as Object;
use tokio::time;

/// What came of a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The object as the server has it.
    Object(Box<Object>),
    /// There is none of that name.
    Absent,
    /// A newer version than the one that was sent exists, or the name is taken.
    Conflict,
    /// Another error, or no answer: the request may have had an effect.
    Failed,
}

/// Waits for the answer to a request; one that takes too long has failed.
pub(crate) async fn answer(
    lease: &str,
    timeout: Duration,
    sent: impl Future<Output = kube::Result<Object>>,
) -> Answer {
    match time::timeout(timeout, sent).await {
        Ok(Ok(lease)) => Answer::Object(Box::new(lease)),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 && status.reason == "NotFound" => {
            Answer::Absent
        }
        Ok(Err(kube::Error::Api(status))) if status.code == 409 => Answer::Conflict,
        Ok(Err(error)) => {
            tracing::debug!(%lease, "a request about the lease failed: {error}");
            Answer::Failed
        }
        Err(_) => Answer::Failed,
    }
}

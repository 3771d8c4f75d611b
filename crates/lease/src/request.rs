//! Sends requests about leases and classifies their answers.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease as Object;
use lariat_core::describe;
use tokio::time;

/// The answer to a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The object as stored by the server.
    Object(Box<Object>),
    /// There is no object with that name.
    Absent,
    /// The object has a newer version than the one that was sent, or already exists.
    Conflict,
    /// Another error, or no answer. The request may have taken effect.
    Failed,
}

/// Whether a refusal by the API server has been logged as a warning.
///
/// Requests are repeated every few seconds, so further refusals are logged at debug level until one request succeeds.
#[derive(Debug, Default)]
pub(crate) struct Refusals(AtomicBool);

impl Refusals {
    /// Waits for the answer to a request; after the timeout it counts as failed.
    pub(crate) async fn answer(
        &self,
        lease: &str,
        timeout: Duration,
        sent: impl Future<Output = kube::Result<Object>>,
    ) -> Answer {
        let error = match time::timeout(timeout, sent).await {
            Ok(Ok(lease)) => {
                self.0.store(false, Ordering::Relaxed);
                return Answer::Object(Box::new(lease));
            }
            Ok(Err(error)) => error,
            Err(_) => return Answer::Failed,
        };
        match &error {
            kube::Error::Api(status) if status.code == 404 && status.reason == "NotFound" => {
                Answer::Absent
            }
            kube::Error::Api(status) if status.code == 409 => Answer::Conflict,
            _ => {
                self.failed(lease, &error);
                Answer::Failed
            }
        }
    }

    /// Logs the failure of a request.
    pub(crate) fn failed(&self, lease: &str, error: &kube::Error) {
        match error {
            // This does not resolve by itself: an RBAC rule is missing, or the name or the namespace is wrong.
            kube::Error::Api(status)
                if (400..500).contains(&status.code) && ![409, 410, 429].contains(&status.code) =>
            {
                self.refused(lease, &describe(error));
            }
            _ => tracing::debug!(%lease, "a request about the lease failed: {}", describe(error)),
        }
    }

    /// Logs a refusal: the first one as a warning.
    fn refused(&self, lease: &str, error: &str) {
        if self.0.swap(true, Ordering::Relaxed) {
            tracing::debug!(%lease, "the API server refuses a request about the lease: {error}");
        } else {
            tracing::warn!(
                %lease,
                "the API server refuses a request about the lease, so it cannot be held: {error} \
                 (logged once; it is retried)"
            );
        }
    }
}

//! The twin of `metrics` without the feature `metrics`: nothing is counted.

use std::time::Duration;

use http::StatusCode;

#[derive(Debug, Clone)]
pub(crate) struct WebhookMetrics;

pub(crate) struct InFlight;

impl WebhookMetrics {
    pub(crate) fn new() -> Self {
        Self
    }

    #[allow(clippy::unused_self, reason = "the twin counts")]
    pub(crate) fn begin(&self, _: &str) -> InFlight {
        InFlight
    }

    #[allow(clippy::unused_self, reason = "the twin counts")]
    pub(crate) fn answered(&self, _: &str, _: StatusCode, _: Duration) {}

    #[allow(clippy::unused_self, reason = "the twin counts")]
    pub(crate) fn alert(&self, _: &str, _: bool) {}
}

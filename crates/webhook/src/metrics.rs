//! Metrics of webhooks for Prometheus, with the names of controller-runtime.

use std::time::Duration;

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The upper bounds of the buckets in seconds; API servers wait for 30 at most.
const BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0,
];

/// Metrics of webhooks for Prometheus. Clones share them.
///
/// | series | labels |
/// |---|---|
/// | `controller_runtime_webhook_requests_total` | `webhook`: the path; `code`: of the HTTP response |
/// | `controller_runtime_webhook_latency_seconds` | `webhook` |
/// | `controller_runtime_webhook_requests_in_flight` | `webhook` |
/// | `lariat_webhook_alert` | `alert`: `renewal`, `configurations` or `pruning`; 1 while it is raised |
///
/// Requests to other paths are not counted, so a client cannot create series.
#[derive(Debug, Clone)]
pub struct WebhookMetrics {
    requests: Family<Answered, Counter>,
    latency: Family<Webhook, Histogram>,
    in_flight: Family<Webhook, Gauge>,
    alerts: Family<Alert, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Alert {
    alert: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    webhook: String,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Webhook {
    webhook: String,
}

impl WebhookMetrics {
    pub(crate) fn new() -> Self {
        Self {
            requests: Family::default(),
            latency: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            in_flight: Family::default(),
            alerts: Family::default(),
        }
    }

    /// Registers the metrics in a registry.
    ///
    /// ```no_run
    /// # fn example(webhooks: &lariat::webhook::Webhooks) {
    /// let mut registry = lariat::webhook::prometheus_client::registry::Registry::default();
    /// webhooks.metrics().register(&mut registry);
    /// # }
    /// ```
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "controller_runtime_webhook_requests",
            "Requests to webhooks, by path and status code",
            self.requests.clone(),
        );
        registry.register(
            "controller_runtime_webhook_latency_seconds",
            "Seconds from the head of a request to its answer",
            self.latency.clone(),
        );
        registry.register(
            "controller_runtime_webhook_requests_in_flight",
            "Requests to webhooks that are not yet answered",
            self.in_flight.clone(),
        );
        registry.register(
            "lariat_webhook_alert",
            "Whether a renewal, an apply or a removal failed the last time",
            self.alerts.clone(),
        );
    }

    /// Sets whether an alert is raised.
    pub(crate) fn alert(&self, alert: &'static str, is_raised: bool) {
        let gauge = self.alerts.get_or_create(&Alert { alert });
        gauge.set(i64::from(is_raised));
    }

    /// Counts a request as in flight until the returned guard is dropped.
    pub(crate) fn begin(&self, path: &str) -> InFlight {
        let webhook = Webhook {
            webhook: path.to_owned(),
        };
        let gauge = self.in_flight.get_or_create_owned(&webhook);
        gauge.inc();
        InFlight(gauge)
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, path: &str, code: StatusCode, took: Duration) {
        let webhook = path.to_owned();
        let code = code.as_u16();
        self.requests
            .get_or_create(&Answered { webhook, code })
            .inc();
        let webhook = path.to_owned();
        let latency = self.latency.get_or_create(&Webhook { webhook });
        latency.observe(took.as_secs_f64());
    }
}

/// A request in flight: neither answered nor abandoned by its client.
pub(crate) struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

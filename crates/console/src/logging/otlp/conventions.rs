//! Names of spans and attributes according to OpenTelemetry's semantic conventions.
//!
//! Fields of spans have short names, which log lines show. Here they become attributes. `docs/tracing.md` lists them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// The kinds for whose names there is an attribute: group, kind and attribute.
const NAMED: [(&str, &str, &str); 12] = [
    ("", "Namespace", "k8s.namespace.name"),
    ("", "Node", "k8s.node.name"),
    ("", "Pod", "k8s.pod.name"),
    (
        "",
        "ReplicationController",
        "k8s.replicationcontroller.name",
    ),
    ("", "ResourceQuota", "k8s.resourcequota.name"),
    ("apps", "DaemonSet", "k8s.daemonset.name"),
    ("apps", "Deployment", "k8s.deployment.name"),
    ("apps", "ReplicaSet", "k8s.replicaset.name"),
    ("apps", "StatefulSet", "k8s.statefulset.name"),
    ("autoscaling", "HorizontalPodAutoscaler", "k8s.hpa.name"),
    ("batch", "CronJob", "k8s.cronjob.name"),
    ("batch", "Job", "k8s.job.name"),
];

/// An exporter that gives spans of Lariat their conventional names.
///
/// It also logs when exports begin to fail, and when they succeed again.
#[derive(Debug)]
pub(super) struct Conventional<E> {
    inner: E,
    is_failing: AtomicBool,
}

impl<E> Conventional<E> {
    pub(super) fn new(inner: E) -> Self {
        Self {
            inner,
            is_failing: AtomicBool::new(false),
        }
    }

    /// Logs the first failure of several, and the first success after them.
    fn note(&self, result: &OTelSdkResult) {
        // One log line per change, since an export fails every few seconds while the collector is down.
        let failed = self.is_failing.swap(result.is_err(), Ordering::Relaxed);
        match result {
            Err(error) if !failed => {
                tracing::warn!(%error, "cannot export spans, dropping them until the collector accepts them");
            }
            Ok(()) if failed => tracing::info!("spans are exported again"),
            _ => {}
        }
    }
}

impl<E: SpanExporter> SpanExporter for Conventional<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let batch = batch.into_iter().map(renamed).collect();
        let result = self.inner.export(batch).await;
        self.note(&result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// Renames a span and its attributes, if Lariat made it.
fn renamed(mut span: SpanData) -> SpanData {
    let target = text(&span.attributes, "target");
    let Some(ours) = target.as_deref().and_then(|it| it.strip_prefix("lariat::")) else {
        return span;
    };
    // Lariat's spans are runs of handlers, and requests to the API server.
    let is_request = ours != "run";
    if is_request {
        span.span_kind = SpanKind::Client;
    }
    let fields = std::mem::take(&mut span.attributes);
    let get = |name: &str| text(&fields, name);
    let kind = get("kind").unwrap_or_default();
    let (api, short) = kind.rsplit_once(' ').unwrap_or(("", &kind));
    span.name = match (ours, get("method"), get("handler")) {
        ("write", Some(method), _) => format!("{method} {short}").into(),
        (_, _, Some(handler)) => format!("run {short} {handler}").into(),
        _ => format!("{ours} {short}").into(),
    };
    if let Some(error) = get("error") {
        span.status = Status::error(error);
    } else if let Some(status) = get("status").filter(|status| is_refusal(status)) {
        span.status = Status::error(status);
    }
    if let Status::Error { .. } = span.status {
        let error_type = get("outcome").or(get("status"));
        // The value that the conventions prescribe for an error without a type.
        let error_type = error_type.unwrap_or_else(|| "_OTHER".to_owned());
        span.attributes
            .push(KeyValue::new("error.type", error_type));
    }
    if let Some(key) = get("key") {
        span.attributes.extend(of_object(api, short, &key));
    }
    span.attributes
        .extend(fields.into_iter().filter_map(attribute));
    span
}

fn text(fields: &[KeyValue], name: &str) -> Option<String> {
    let field = fields.iter().find(|field| field.key.as_str() == name)?;
    Some(field.value.as_str().into_owned())
}

/// Returns whether an HTTP status is an error.
fn is_refusal(status: &str) -> bool {
    status.parse::<u16>().is_ok_and(|status| status >= 400)
}

/// Returns the attributes of an object; `api` is its group and version.
fn of_object(api: &str, kind: &str, key: &str) -> Vec<KeyValue> {
    let group = api.split_once('/').map_or("", |(group, _)| group);
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    let mut attributes = Vec::new();
    if !namespace.is_empty() {
        attributes.push(KeyValue::new("k8s.namespace.name", namespace.to_owned()));
    }
    let named = NAMED
        .iter()
        .find(|(of, named, _)| (*of, *named) == (group, kind));
    if let Some((.., attribute)) = named {
        attributes.push(KeyValue::new(*attribute, name.to_owned()));
    }
    attributes
}

/// Returns the attribute for a field of a span.
fn attribute(field: KeyValue) -> Option<KeyValue> {
    let KeyValue { key, value, .. } = field;
    match (key.as_str(), value) {
        // The name of the span contains the target, and the status of the span the error.
        ("target" | "error", _) => None,
        ("method", value) => Some(KeyValue::new("http.request.method", value)),
        ("status", value) => Some(KeyValue::new("http.response.status_code", number(value))),
        ("namespace", value) => Some(KeyValue::new("k8s.namespace.name", value)),
        (_, Value::String(text)) if text.as_str().is_empty() => None,
        (name, value) => Some(KeyValue::new(format!("lariat.{name}"), value)),
    }
}

/// Returns a value as a number, if it is the text of one.
fn number(value: Value) -> Value {
    let parsed = value.as_str().parse();
    parsed.map_or(value, Value::I64)
}

//! Where spans go, and how their export begins and ends.

use std::env;
use std::io;

use http::Uri;
use lariat_core::debug_as_description;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use super::client::CollectorClient;
use super::conventions::Conventional;
use crate::logging::filter::{FilterError, LogFilter};

/// The collector of the machine.
const LOCAL: &str = "http://localhost:4318";

const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

const ANY: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Exports spans to an OpenTelemetry collector, by OTLP over HTTP without TLS.
///
/// A collector beside the program, on its node or in its cluster takes them; it is what speaks TLS to others. Spans are
/// sent in batches by a thread of their own, every 5 seconds or 512 spans; where 2048 wait, further ones are dropped.
///
/// The environment is read as OpenTelemetry defines it: `OTEL_EXPORTER_OTLP_ENDPOINT` (or
/// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`), `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT`,
/// `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_SCHEDULE_DELAY` and so on.
///
/// ```no_run
/// use lariat_console::logging::{Logging, Otlp};
///
/// let _logging = Logging::builder().otlp(Otlp::from_env("shop-operator")).init()?;
/// # Ok::<(), lariat_console::logging::LoggingError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Otlp {
    service: String,
    endpoint: Option<String>,
    filter: String,
}

/// Spans cannot be exported.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The endpoint of the collector is no URL, or one with TLS.
    #[error("the endpoint `{endpoint}` {problem}; an example is `{LOCAL}`")]
    Endpoint {
        /// The endpoint, without a user and password.
        endpoint: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The filter of spans cannot be read.
    #[error("the filter of spans cannot be read")]
    Filter(#[from] FilterError),
    /// The thread that exports cannot have a runtime.
    #[error("no runtime for the export of spans")]
    Runtime(#[from] io::Error),
    /// An environment variable of OpenTelemetry has a value that is not supported.
    #[error("the exporter cannot be set up: {problem}")]
    Exporter {
        /// What is wrong.
        problem: String,
    },
}

debug_as_description!(OtlpError);

/// An export that has begun. Dropping it exports what is left.
pub(crate) struct Exporting(SdkTracerProvider);

impl Otlp {
    /// Exports to the endpoint of the environment, or to `http://localhost:4318`.
    ///
    /// `service` is the name of the program, unless the environment has another.
    pub fn new(service: impl Into<String>) -> Self {
        Self {
            service: service.into(),
            endpoint: None,
            filter: "info,lariat::run=debug".to_owned(),
        }
    }

    /// Exports to the endpoint of the environment; `None` if it has none.
    #[must_use]
    pub fn from_env(service: impl Into<String>) -> Option<Self> {
        let is_set = |variable| env::var(variable).is_ok_and(|value| !value.trim().is_empty());
        (is_set(TRACES) || is_set(ANY)).then(|| Self::new(service))
    }

    /// Sets the endpoint, such as `http://collector.observability:4318`; spans go to its path `/v1/traces`.
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoint = Some(endpoint.into());
        self
    }

    /// Sets which spans and events are exported (default `info,lariat::run=debug`), in the syntax of [`LogFilter`].
    ///
    /// It does not depend on the filter of the log. At the debug level of `lariat::run`, spans of runs have causes.
    pub fn filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = filter.into();
        self
    }

    /// Begins the export.
    pub(crate) fn begin<S>(self) -> Result<(impl Layer<S> + Send + Sync, Exporting), OtlpError>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let filter: LogFilter = self.filter.parse()?;
        let endpoint = self.traces_endpoint(|variable| env::var(variable).ok())?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(CollectorClient::new()?)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .build()
            .map_err(|error| OtlpError::Exporter {
                problem: error.to_string(),
            })?;
        let mut resource = Resource::builder();
        if env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(self.service);
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(Conventional::new(exporter))
            .build();
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("lariat"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(true);
        Ok((layer.with_filter(filter), Exporting(provider)))
    }

    /// Returns the URL that takes spans.
    fn traces_endpoint(&self, env: impl Fn(&str) -> Option<String>) -> Result<String, OtlpError> {
        let env = |variable| env(variable).filter(|value| !value.trim().is_empty());
        let whole = env(TRACES).filter(|_| self.endpoint.is_none());
        if let Some(whole) = whole {
            return checked(&whole);
        }
        let base = self.endpoint.clone().or_else(|| env(ANY));
        let base = base.unwrap_or_else(|| LOCAL.to_owned());
        Ok(format!(
            "{}/v1/traces",
            checked(&base)?.trim_end_matches('/')
        ))
    }
}

impl Drop for Exporting {
    fn drop(&mut self) {
        // A failure was logged by the exporter.
        let _ = self.0.shutdown();
    }
}

fn checked(endpoint: &str) -> Result<String, OtlpError> {
    let wrong = |problem| OtlpError::Endpoint {
        // A user and password are before the last `@`.
        endpoint: endpoint.rsplit('@').next().unwrap_or_default().to_owned(),
        problem,
    };
    let uri: Uri = endpoint.trim().parse().map_err(|_| wrong("is no URL"))?;
    match uri.scheme_str() {
        Some("http") => Ok(endpoint.trim().to_owned()),
        Some("https") => Err(wrong(
            "has TLS, which this program does not speak to collectors; name one in the cluster, which does",
        )),
        _ => Err(wrong("is no URL that begins with `http://`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(otlp: &Otlp, env: &[(&str, &str)]) -> Result<String, String> {
        let find = |variable: &str| {
            let set = env.iter().find(|(name, _)| *name == variable)?;
            Some(set.1.to_owned())
        };
        otlp.traces_endpoint(find)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_endpoint_is_the_program_s_or_the_environment_s() {
        let otlp = Otlp::new("shop");
        let local = Ok("http://localhost:4318/v1/traces".to_owned());
        assert_eq!(endpoint(&otlp, &[]), local);
        assert_eq!(endpoint(&otlp, &[(ANY, " ")]), local);
        let env = [(ANY, "http://a:1/"), (TRACES, "http://b:2/spans")];
        assert_eq!(endpoint(&otlp, &env[..1]).unwrap(), "http://a:1/v1/traces");
        assert_eq!(endpoint(&otlp, &env).unwrap(), "http://b:2/spans");
        let otlp = otlp.endpoint("http://c:3");
        assert_eq!(endpoint(&otlp, &env).unwrap(), "http://c:3/v1/traces");
    }

    #[test]
    fn a_wrong_endpoint_is_named_without_its_password() {
        let error = |text: &str| endpoint(&Otlp::new("shop").endpoint(text), &[]).unwrap_err();
        let tls = error("https://user:canary@c:4317");
        assert!(tls.starts_with("the endpoint `c:4317` has TLS"), "{tls}");
        for text in ["collector:4317", "", "grpc://c:4317", "http:// c"] {
            let error = error(text);
            assert!(error.contains("URL"), "{error}");
            assert!(
                error.ends_with("an example is `http://localhost:4318`"),
                "{error}"
            );
        }
    }
}

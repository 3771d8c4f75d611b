//! Sets up the export of spans, and ends it.

use std::env;
use std::io;
use std::net::IpAddr;

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

/// The default endpoint: a collector on the same machine.
const LOCAL: &str = "http://localhost:4318";

/// The environment variable of the URL for spans.
const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

/// The environment variable of the base URL for all signals.
const ANY: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The environment variables of headers.
const HEADERS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
];

/// Parts of the names of headers that carry credentials.
const CREDENTIALS: [&str; 6] = ["auth", "cookie", "key", "password", "secret", "token"];

/// Exports spans to an OpenTelemetry collector, by OTLP over HTTP without TLS.
///
/// Use a collector in the same pod, node or cluster, which can forward spans with TLS. Spans are sent in batches by a
/// thread of their own, every 5 seconds or 512 spans. While 2,048 spans wait, further ones are dropped.
///
/// The environment is read as OpenTelemetry defines it: `OTEL_EXPORTER_OTLP_ENDPOINT` (or
/// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`), `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT`,
/// `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_SCHEDULE_DELAY` and so on. Headers
/// that carry a credential by their names (with `auth`, `cookie`, `key`, `password`, `secret` or `token` in them) are
/// refused unless the collector is on a loopback address, or [plain text](Self::allow_plain_text) is allowed.
///
/// ```no_run
/// use lariat::console::logging::{Logging, Otlp};
///
/// let _logging = Logging::builder().otlp(Otlp::from_env("shop-operator")).init()?;
/// # Ok::<(), lariat::console::logging::LoggingError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Otlp {
    service: String,
    endpoint: Option<String>,
    filter: String,
    /// Whether credentials may be sent to another machine.
    allows_plain_text: bool,
}

/// The error of setting up the export of spans.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The endpoint of the collector is not a URL, or uses TLS.
    #[error("the endpoint `{endpoint}` {problem}; an example is `{LOCAL}`")]
    Endpoint {
        /// The endpoint, without user and password.
        endpoint: String,
        /// Why it is refused.
        problem: &'static str,
    },
    /// A header with a credential would be sent to another machine in plain text.
    #[error(
        "the header `{header}` of the environment variable {variable} would be sent in plain text, because the export has no TLS: use a collector on a loopback address, leave the header out, or ask for it by Otlp::allow_plain_text"
    )]
    Credential {
        /// The name of the header.
        header: String,
        /// The environment variable that sets it.
        variable: &'static str,
    },
    /// The filter of spans cannot be read.
    #[error("the filter of spans cannot be read")]
    Filter(#[from] FilterError),
    /// The runtime of the exporting thread cannot be created.
    #[error("cannot create a runtime for the export of spans")]
    Runtime(#[from] io::Error),
    /// An environment variable of OpenTelemetry has a value that is not supported.
    #[error("the exporter cannot be set up: {problem}")]
    Exporter {
        /// The problem, as text.
        problem: String,
    },
}

debug_as_description!(OtlpError);

/// A running export. Dropping it exports the remaining spans.
pub(crate) struct Exporting(SdkTracerProvider);

impl Otlp {
    /// Exports to the endpoint of the environment, or else to `http://localhost:4318`.
    ///
    /// `service` is the service name, unless the environment sets one.
    ///
    /// ```
    /// use lariat::console::logging::Otlp;
    ///
    /// let otlp = Otlp::new("shop-operator").endpoint("http://collector.observability:4318");
    /// # let _ = otlp;
    /// ```
    pub fn new(service: impl Into<String>) -> Self {
        Self {
            service: service.into(),
            endpoint: None,
            filter: "info,lariat::run=debug".to_owned(),
            allows_plain_text: false,
        }
    }

    /// Exports to the endpoint of the environment; `None` if it has none.
    #[must_use]
    pub fn from_env(service: impl Into<String>) -> Option<Self> {
        let is_set = |variable| env::var(variable).is_ok_and(|value| !value.trim().is_empty());
        (is_set(TRACES) || is_set(ANY)).then(|| Self::new(service))
    }

    /// Sets the endpoint, such as `http://collector.observability:4318`.
    ///
    /// Spans are sent to its path `/v1/traces`. It takes precedence over the environment.
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoint = Some(endpoint.into());
        self
    }

    /// Sets which spans and events are exported (default `info,lariat::run=debug`).
    ///
    /// The syntax is that of [`LogFilter`]. The log filter has no effect on the export. At debug level of
    /// `lariat::run`, the spans of runs have the causes.
    pub fn filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = filter.into();
        self
    }

    /// Allows headers with credentials in plain text to another machine.
    ///
    /// Everyone on the network in between can then read them. This is for networks that encrypt all traffic.
    pub fn allow_plain_text(mut self) -> Self {
        self.allows_plain_text = true;
        self
    }

    /// Starts the export.
    pub(crate) fn begin<S>(self) -> Result<(impl Layer<S> + Send + Sync, Exporting), OtlpError>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let filter: LogFilter = self.filter.parse()?;
        let set = |variable: &str| env::var(variable).ok();
        let endpoint = self.traces_endpoint(set)?;
        self.check_credentials(&endpoint, set)?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(CollectorClient::new()?)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .build()
            .map_err(|error| OtlpError::Exporter {
                problem: error.to_string(),
            })?;
        // The builder reads the environment, which must not be overridden by the program's own name.
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
            // Each of these would add attributes to every span.
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            // `Conventional` recognises Lariat's spans by their target.
            .with_target(true);
        Ok((layer.with_filter(filter), Exporting(provider)))
    }

    /// Returns the URL for spans.
    fn traces_endpoint(&self, env: impl Fn(&str) -> Option<String>) -> Result<String, OtlpError> {
        let env = |variable| env(variable).filter(|value| !value.trim().is_empty());
        // As OpenTelemetry defines it, this variable is the whole URL, while a base URL gets the path of the signal.
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

    /// Fails if a credential would be sent to another machine, and that is not allowed.
    fn check_credentials(
        &self,
        endpoint: &str,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<(), OtlpError> {
        if self.allows_plain_text || is_local(endpoint) {
            return Ok(());
        }
        for variable in HEADERS {
            let set = env(variable).unwrap_or_default();
            let mut names = set
                .split(',')
                .filter_map(|header| Some(header.split_once('=')?.0.trim()));
            if let Some(header) = names.find(|name| is_credential(name)) {
                let header = header.to_owned();
                return Err(OtlpError::Credential { header, variable });
            }
        }
        Ok(())
    }
}

impl Drop for Exporting {
    fn drop(&mut self) {
        // The exporter has logged a failure.
        let _ = self.0.shutdown();
    }
}

/// Returns whether an endpoint is on a loopback address.
fn is_local(endpoint: &str) -> bool {
    let uri = endpoint.parse::<Uri>().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

fn is_credential(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    CREDENTIALS.iter().any(|part| header.contains(part))
}

/// Checks that an endpoint is a URL without TLS.
fn checked(endpoint: &str) -> Result<String, OtlpError> {
    let wrong = |problem| OtlpError::Endpoint {
        // The error must not contain user and password, which are before the last `@`.
        endpoint: endpoint.rsplit('@').next().unwrap_or_default().to_owned(),
        problem,
    };
    let uri: Uri = endpoint.trim().parse().map_err(|_| wrong("is not a URL"))?;
    match uri.scheme_str() {
        Some("http") => Ok(endpoint.trim().to_owned()),
        Some("https") => Err(wrong(
            "uses TLS, which is not supported; use a collector in the cluster, which can forward spans with TLS",
        )),
        _ => Err(wrong("is not a URL that begins with `http://`")),
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
        assert!(tls.starts_with("the endpoint `c:4317` uses TLS"), "{tls}");
        for text in ["collector:4317", "", "grpc://c:4317", "http:// c"] {
            let error = error(text);
            assert!(error.contains("URL"), "{error}");
            assert!(
                error.ends_with("an example is `http://localhost:4318`"),
                "{error}"
            );
        }
    }

    #[test]
    fn credential_is_sent_to_loopback_only_unless_allowed() {
        let check = |otlp: &Otlp, endpoint: &str, variable: &str, headers: &str| {
            let find = |of: &str| (of == variable).then(|| headers.to_owned());
            otlp.check_credentials(endpoint, find)
                .map_err(|error| error.to_string())
        };
        let otlp = Otlp::new("shop");
        let other = "http://collector.observability:4318/v1/traces";
        for variable in HEADERS {
            for header in ["Authorization", "x-api-key", "Cookie", "DD-Token"] {
                let headers = format!("a=b, {header} = canary-77");
                let error = check(&otlp, other, variable, &headers).unwrap_err();
                assert!(
                    error.contains(&format!("the header `{header}` of")),
                    "{error}"
                );
                assert!(error.contains(variable), "{error}");
                assert!(!error.contains("canary"), "{error}");
                for local in [
                    "http://localhost:4318",
                    "http://127.0.0.1",
                    "http://[::1]:4318/v1",
                ] {
                    assert_eq!(check(&otlp, local, variable, &headers), Ok(()));
                }
                let allowed = otlp.clone().allow_plain_text();
                assert_eq!(check(&allowed, other, variable, &headers), Ok(()));
            }
            assert_eq!(
                check(&otlp, other, variable, "X-Scope-OrgID=tenant"),
                Ok(())
            );
        }
        assert!(check(&otlp, "http://localhost.example", HEADERS[0], "token=a").is_err());
    }
}

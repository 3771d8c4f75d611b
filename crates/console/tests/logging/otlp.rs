//! The spans that a collector receives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use lariat_console::logging::{Logging, LoggingError, Otlp, OtlpError};
use lariat_controller::{Context, Outcome};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::json;

use crate::support::{Log, Program, settle};

/// A collector in a thread, which answers each request with a status.
struct Collector {
    endpoint: String,
    received: Arc<Mutex<Vec<Received>>>,
}

struct Received {
    head: String,
    body: Vec<u8>,
}

impl Collector {
    fn begin(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let all = Arc::clone(&received);
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                while let Some(request) = read(&mut reader) {
                    all.lock().expect("not poisoned").push(request);
                    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                    if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                        break;
                    }
                }
            }
        });
        Self {
            endpoint: format!("http://{address}"),
            received,
        }
    }

    /// Returns what was received, decoded.
    fn exported(&self) -> Exported {
        let received = self.received.lock().expect("not poisoned");
        let mut exported = Exported::default();
        for request in &*received {
            let decoded = ExportTraceServiceRequest::decode(&request.body[..]);
            for of_service in decoded.expect("a request of OTLP").resource_spans {
                let resource = of_service.resource.expect("a resource");
                let name = text(&resource.attributes, "service.name");
                exported.services.push(name.expect("a name").to_owned());
                let scopes = of_service.scope_spans.into_iter();
                exported.spans.extend(scopes.flat_map(|it| it.spans));
            }
        }
        exported
    }
}

/// The requests that a collector has received.
#[derive(Default)]
struct Exported {
    services: Vec<String>,
    spans: Vec<Span>,
}

impl Exported {
    /// Returns the spans of a name.
    fn named(&self, name: &str) -> Vec<&Span> {
        self.spans.iter().filter(|span| span.name == name).collect()
    }
}

/// Returns an attribute.
fn value<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    let found = attributes.iter().find(|it| it.key == key)?;
    let AnyValue { value } = found.value.as_ref()?;
    value.as_ref()
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    match value(attributes, key)? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let length = reader.read_line(&mut head).ok()?;
        if length == 0 {
            return None;
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Received { head, body })
}

/// Runs a program whose handler patches three objects.
async fn run_program() {
    let program = Program::new().await;
    let handler = |cx: Context<ConfigMap>| async move {
        let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
        let patch = Patch::Merge(json!({"data": {"seen": "yes"}}));
        api.patch(cx.key().name(), &PatchParams::default(), &patch)
            .await?;
        Ok(Outcome::done())
    };
    for name in ["a", "b", "c"] {
        program.create(name).await;
    }
    program
        .config_maps
        .register_handler("mark", handler)
        .expect("registered");
    program.factory.start(1).await.expect("started");
    settle().await;
    program.factory.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn spans_are_exported_by_conventional_names_when_logging_ends() {
    let collector = Collector::begin("200 OK");
    let otlp = Otlp::new("shop-operator").endpoint(&collector.endpoint);
    let log = Log::begin("off", Logging::builder().otlp(otlp));
    run_program().await;
    // In the only thread of the runtime, as at the end of `main`.
    log.logging.shutdown();
    let exported = collector.exported();
    assert!(exported.services.iter().all(|name| name == "shop-operator"));
    let runs = exported.named("run ConfigMap mark");
    assert!(runs.len() >= 3, "{} runs", runs.len());
    for run in &runs {
        let attributes = &run.attributes;
        assert_eq!(text(attributes, "k8s.namespace.name"), Some("default"));
        assert_eq!(text(attributes, "lariat.handler"), Some("mark"));
        assert!(text(attributes, "lariat.causes").is_some(), "{run:?}");
        assert!(run.end_time_unix_nano >= run.start_time_unix_nano);
    }
    let patches = exported.named("PATCH ConfigMap");
    assert_eq!(patches.len(), runs.len(), "each patches once");
    for patch in patches {
        let run = runs.iter().find(|run| run.span_id == patch.parent_span_id);
        let run = run.expect("a write is a child of its run");
        assert_eq!(patch.trace_id, run.trace_id);
        let attributes = &patch.attributes;
        assert_eq!(text(attributes, "http.request.method"), Some("PATCH"));
        let status = value(attributes, "http.response.status_code");
        assert_eq!(status, Some(&Value::IntValue(200)));
    }
    let reads = ["list ConfigMap", "watch ConfigMap"].map(|name| exported.named(name).len());
    assert!(reads.iter().sum::<usize>() >= 1, "{reads:?}");
    let received = collector.received.lock().expect("not poisoned");
    let head = &received[0].head;
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert!(
        head.contains("content-type: application/x-protobuf"),
        "{head}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_refuses_does_not_hold_up_the_end() {
    let collector = Collector::begin("400 Bad Request");
    let otlp = Otlp::new("shop-operator").endpoint(&collector.endpoint);
    let log = Log::begin("info", Logging::builder().otlp(otlp));
    run_program().await;
    log.logging.shutdown();
    assert_eq!(
        collector.received.lock().expect("not poisoned").len(),
        1,
        "not retried"
    );
}

#[test]
fn only_spans_that_pass_their_filter_are_exported() {
    let collector = Collector::begin("200 OK");
    let otlp = Otlp::new("shop-operator").endpoint(&collector.endpoint);
    let otlp = otlp.filter("warn,mine=info");
    let log = Log::begin("trace", Logging::builder().otlp(otlp));
    tracing::info_span!(target: "mine", "wanted").in_scope(|| tracing::trace!("line"));
    tracing::info_span!(target: "other", "unwanted").in_scope(|| tracing::trace!("line"));
    log.logging.shutdown();
    let exported = collector.exported();
    let names = exported.spans.iter().map(|span| &span.name[..]);
    assert_eq!(names.collect::<Vec<_>>(), ["wanted"]);
}

#[test]
fn what_cannot_be_exported_to_is_an_error() {
    let build = |otlp: Otlp| Logging::builder().otlp(otlp).build().err();
    let error = build(Otlp::new("shop").endpoint("https://collector:4318"));
    assert!(matches!(
        error,
        Some(LoggingError::Otlp(OtlpError::Endpoint { .. }))
    ));
    let error = build(Otlp::new("shop").filter("lariat=loud")).map(|error| format!("{error:?}"));
    let error = error.unwrap_or_default();
    assert!(
        error.contains("the filter of spans cannot be read: `lariat=loud`"),
        "{error}"
    );
}

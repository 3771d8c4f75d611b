//! The spans of runs, writes, lists and watches.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::pending;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_console::logging::{Format, Logging};
use lariat_controller::{Context, HandlerResult, Outcome};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Subscriber, dispatcher};
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::support::{Log, Program, config_map, settle};

/// The fields of a span, with its name and its parent's as fields too.
type Fields = BTreeMap<String, String>;

/// The spans that began and that ended.
#[derive(Debug, Clone, Default)]
struct Spans(Arc<Mutex<(Vec<Fields>, Vec<Fields>)>>);

struct Reader<'a>(&'a mut Fields);

impl Spans {
    fn began(&self, name: &str) -> Vec<Fields> {
        named(&self.0.lock().expect("not poisoned").0, name)
    }

    fn ended(&self, name: &str) -> Vec<Fields> {
        named(&self.0.lock().expect("not poisoned").1, name)
    }
}

fn named(spans: &[Fields], name: &str) -> Vec<Fields> {
    let named = spans.iter().filter(|fields| fields["span"] == name);
    named.cloned().collect()
}

impl Visit for Reader<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: LayerContext<'_, S>) {
        let span = context.span(id).expect("the span exists");
        let mut fields = Fields::new();
        attributes.record(&mut Reader(&mut fields));
        fields.insert("span".to_owned(), span.name().to_owned());
        if let Some(parent) = span.parent() {
            fields.insert("parent".to_owned(), parent.name().to_owned());
        }
        self.0.lock().expect("not poisoned").0.push(fields.clone());
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: LayerContext<'_, S>) {
        let span = context.span(id).expect("the span exists");
        let mut extensions = span.extensions_mut();
        values.record(&mut Reader(extensions.get_mut().expect("inserted")));
    }

    fn on_close(&self, id: Id, context: LayerContext<'_, S>) {
        let span = context.span(&id).expect("the span exists");
        let fields: Fields = span.extensions_mut().remove().expect("inserted");
        self.0.lock().expect("not poisoned").1.push(fields);
    }
}

fn check(fields: &Fields, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        let found = fields.get(*name).map(String::as_str);
        assert_eq!(found, Some(*value), "{name} of {fields:?}");
    }
}

/// Creates a ConfigMap, changes its own, and changes one that does not exist.
async fn writes(cx: Context<ConfigMap>) -> HandlerResult {
    if cx.key().name() != "a" {
        return Ok(Outcome::done());
    }
    let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
    api.create(&PostParams::default(), &config_map("made"))
        .await?;
    let patch = Patch::Merge(json!({"data": {"seen": "yes"}}));
    let missing = api.patch("missing", &PatchParams::default(), &patch).await;
    assert!(missing.is_err());
    Err("after writing".into())
}

#[tokio::test(start_paused = true)]
async fn a_write_is_in_the_span_of_its_run() {
    let spans = Spans::default();
    let guard = dispatcher::set_default(&Dispatch::new(Registry::default().with(spans.clone())));
    let program = Program::new().await;
    program.create("a").await;
    program
        .config_maps
        .register_handler("scale", writes)
        .expect("registered");
    program.factory.start(1).await.expect("started");
    settle().await;
    let run = &spans.ended("run")[0];
    let expected = [
        ("kind", "v1 ConfigMap"),
        ("key", "default/a"),
        ("handler", "scale"),
        ("run", "1"),
        ("attempt", "1"),
        ("outcome", "failed"),
        ("error", "after writing"),
    ];
    check(run, &expected);
    assert!(run["causes"].starts_with("added at "), "{run:?}");
    let writes = spans.ended("write");
    let created = [
        ("parent", "run"),
        ("method", "POST"),
        ("kind", "v1 ConfigMap"),
        ("key", "default/made"),
        ("status", "201"),
    ];
    check(&writes[0], &created);
    let refused = [
        ("method", "PATCH"),
        ("key", "default/missing"),
        ("status", "404"),
    ];
    check(&writes[1], &refused);
    let list = spans.began("list").into_iter().chain(spans.began("watch"));
    let list: Vec<_> = list.collect();
    assert!(!list.is_empty());
    list.iter()
        .for_each(|list| check(list, &[("kind", "v1 ConfigMap")]));
    program.factory.stop().await.expect("stopped");
    let count = |name: &str| (spans.began(name).len(), spans.ended(name).len());
    for name in ["run", "write", "list", "watch"] {
        let (began, ended) = count(name);
        assert_eq!(began, ended, "spans of {name}");
    }
    let watches = spans.ended("watch");
    assert!(watches.iter().all(|watch| watch["kind"] == "v1 ConfigMap"));
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn the_span_of_a_cancelled_handler_closes_without_an_outcome() {
    let spans = Spans::default();
    let _guard = dispatcher::set_default(&Dispatch::new(Registry::default().with(spans.clone())));
    let program = Program::new().await;
    program.create("a").await;
    let stuck = |_: Context<ConfigMap>| async { pending::<HandlerResult>().await };
    program
        .config_maps
        .register_handler("stuck", stuck)
        .expect("registered");
    program.factory.start(1).await.expect("started");
    settle().await;
    assert_eq!((spans.began("run").len(), spans.ended("run").len()), (1, 0));
    assert!(program.factory.stop().await.is_err(), "the call is dropped");
    let ended = spans.ended("run");
    assert_eq!(ended.len(), 1);
    check(&ended[0], &[("handler", "stuck")]);
    assert_eq!(ended[0].get("outcome"), None, "{:?}", ended[0]);
}

#[tokio::test(start_paused = true)]
async fn lines_of_a_handler_have_what_it_is_about() {
    let log = Log::begin(
        "info,lariat::write=trace",
        Logging::builder().format(Format::Json),
    );
    let program = Program::new().await;
    let handler = |cx: Context<ConfigMap>| async move {
        let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
        let patch = Patch::Merge(json!({"data": {"seen": "yes"}}));
        api.patch(cx.key().name(), &PatchParams::default(), &patch)
            .await?;
        tracing::info!(step = "last", "marked");
        Ok(Outcome::done())
    };
    program.create("a").await;
    program
        .config_maps
        .register_handler("mark", handler)
        .expect("registered");
    program.factory.start(1).await.expect("started");
    settle().await;
    let written = &log.json("lariat::write")[0];
    assert_eq!(written["spans"], json!(["run", "write"]));
    assert_eq!(written["handler"], "mark");
    assert_eq!(
        (&written["method"], &written["status"]),
        (&json!("PATCH"), &json!(200))
    );
    let marked = &log.json("logging::spans")[0];
    let fields = ["kind", "key", "handler", "step"].map(|name| marked[name].as_str());
    let expected = ["v1 ConfigMap", "default/a", "mark", "last"].map(Some);
    assert_eq!(fields, expected);
    assert!(marked["run"].is_u64(), "{marked}");
    program.factory.stop().await.expect("stopped");
}

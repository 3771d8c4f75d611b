//! Gates of handlers: for which writes they are asked.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use lariat_cache::{GateDecision, WriteReceipt, WriteResult};
use lariat_controller::{
    Context, ControllerOptions, Gate, GatedWrite, HandlerOptions, HandlerResult, Outcome,
};
use parking_lot::Mutex;
use serde_json::json;

use crate::bench::{Bench, settle};

type Log = Arc<Mutex<Vec<String>>>;

/// A gate that records the writes that it is asked for, and always decides in the same way.
#[derive(Clone)]
struct Scribe {
    name: &'static str,
    answer: Answer,
    log: Log,
}

#[derive(Clone, Copy)]
enum Answer {
    Pass,
    Send,
    DryRun,
    Refuse,
}

impl Scribe {
    fn new(name: &'static str, answer: Answer, log: &Log) -> Self {
        let log = Arc::clone(log);
        Self { name, answer, log }
    }

    fn decision(&self) -> GateDecision {
        match self.answer {
            Answer::Pass => GateDecision::Pass,
            Answer::Send => GateDecision::Send(Box::new(self.clone())),
            Answer::DryRun => GateDecision::DryRun(Box::new(self.clone())),
            Answer::Refuse => GateDecision::Refuse("no".into()),
        }
    }

    fn note(&self, text: &str) {
        self.log.lock().push(format!("{}: {text}", self.name));
    }
}

impl Gate for Scribe {
    fn admit(&self, write: &GatedWrite<'_>) -> GateDecision {
        let (Some(handler), Some(kind), Some(key)) = (write.handler(), write.gvk(), write.key())
        else {
            self.note(&format!("outside: {}", write.write()));
            return self.decision();
        };
        let version = write.object().is_some();
        self.note(&format!(
            "{handler} of {kind} {key} ({version}): {}",
            write.write()
        ));
        self.decision()
    }
}

impl WriteReceipt for Scribe {
    fn ended(self: Box<Self>, end: &WriteResult<'_>) {
        let text = match end {
            WriteResult::Answered {
                is_dry_run: true, ..
            } => format!("dry run, {end:?}"),
            end => format!("{end:?}"),
        };
        self.note(&text);
    }
}

/// Labels the object, and ignores a refusal.
async fn label(cx: Context<ConfigMap>) -> HandlerResult {
    let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
    let patch = Patch::Merge(json!({"metadata": {"labels": {cx.handler(): "yes"}}}));
    let _ = api
        .patch(cx.key().name(), &PatchParams::default(), &patch)
        .await;
    Ok(Outcome::done())
}

/// Registers a handler with these gates that labels `a`; returns the gates' records, and whether the label was set.
async fn run(answers: &[Answer]) -> (Vec<String>, bool) {
    let bench = Bench::new().await;
    let log = Log::default();
    let names = ["first", "second"];
    let mut options = HandlerOptions::default();
    for (name, answer) in names.into_iter().zip(answers) {
        options = options.gate(Scribe::new(name, *answer, &log));
    }
    let maps = &bench.config_maps;
    maps.register_handler("labels", options.handler(label))
        .expect("registered");
    bench.create("a").await;
    bench.start().await;
    settle().await;
    let object = bench.api.get("a").await.expect("there");
    let mut lines = log.lock().clone();
    // A change calls the handler once more, which then changes nothing.
    lines.truncate(4);
    (lines, object.metadata.labels.is_some())
}

const ASKED: &str = "labels of v1 ConfigMap default/a (true): patch v1 ConfigMap default/a";

fn asked(names: &[&str]) -> Vec<String> {
    names
        .iter()
        .map(|name| format!("{name}: {ASKED}"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn all_gates_are_asked_and_notified_of_the_end() {
    let (lines, is_labelled) = run(&[Answer::Send, Answer::Send]).await;
    let mut expected = asked(&["first", "second"]);
    expected.extend(["first", "second"].map(|name| format!("{name}: Answered(200)")));
    assert_eq!(lines, expected);
    assert!(is_labelled);
    let (lines, is_labelled) = run(&[Answer::Pass, Answer::Pass]).await;
    assert_eq!(lines[..2], asked(&["first", "second"]));
    assert!(is_labelled);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_decides_and_gates_before_it_are_notified() {
    let (lines, is_labelled) = run(&[Answer::Send, Answer::Refuse]).await;
    let mut expected = asked(&["first", "second"]);
    expected.push("first: NotSent".to_owned());
    assert_eq!(lines, expected);
    assert!(!is_labelled);
    let (lines, is_labelled) = run(&[Answer::Refuse, Answer::Send]).await;
    assert_eq!(lines, asked(&["first"]));
    assert!(!is_labelled);
}

#[tokio::test(start_paused = true)]
async fn one_that_wants_a_dry_run_makes_it_one_for_all() {
    let (lines, is_labelled) = run(&[Answer::Send, Answer::DryRun]).await;
    assert!(!is_labelled);
    assert_eq!(lines[2], "first: dry run, Answered(200)");
    assert_eq!(lines[3], "second: dry run, Answered(200)");
}

#[tokio::test(start_paused = true)]
async fn gates_add_up_and_see_no_other_handler() {
    let log = Log::default();
    let every = Scribe::new("every", Answer::Pass, &log);
    let handlers = HandlerOptions::default().gate(every);
    let options = ControllerOptions::default().handlers(handlers);
    let bench = Bench::with(|builder| builder.default_options(options)).await;
    let own = HandlerOptions::default().gate(Scribe::new("own", Answer::Refuse, &log));
    let maps = &bench.config_maps;
    maps.register_handler("one", own.handler(label)).unwrap();
    maps.register_handler("two", label).unwrap();
    bench.create("a").await;
    bench.start().await;
    settle().await;
    let lines = log.lock().clone();
    let of = |gate: &str, handler: &str| {
        let begin = format!("{gate}: {handler} of");
        lines.iter().filter(|line| line.starts_with(&begin)).count()
    };
    assert!(
        of("every", "one") > 0 && of("every", "two") > 0,
        "{lines:?}"
    );
    assert_eq!(
        (of("own", "one"), of("own", "two")),
        (of("every", "one"), 0)
    );
    let labels = bench.api.get("a").await.unwrap().metadata.labels.unwrap();
    assert_eq!(labels.keys().collect::<Vec<_>>(), ["two"]);
}

#[tokio::test(start_paused = true)]
async fn deletions_are_asked_about_with_the_last_state_and_what_is_outside_is_not() {
    let bench = Bench::new().await;
    let log = Log::default();
    let options = HandlerOptions::default().gate(Scribe::new("g", Answer::Refuse, &log));
    let deletes = |cx: Context<ConfigMap>| async move {
        if cx.deleted()?.is_some() {
            let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
            let _ = api.delete("other", &DeleteParams::default()).await;
        }
        Ok(Outcome::done())
    };
    let maps = &bench.config_maps;
    maps.register_handler("deletes", options.handler(deletes))
        .unwrap();
    bench.create("a").await;
    bench.create("other").await;
    bench.start().await;
    let outside: Api<ConfigMap> = Api::namespaced(bench.factory.client(), "default");
    outside.delete("a", &DeleteParams::default()).await.unwrap();
    settle().await;
    let expected = "g: deletes of v1 ConfigMap default/a (true): delete v1 ConfigMap default/other";
    assert_eq!(*log.lock(), [expected]);
    assert!(bench.api.get("other").await.is_ok());
}

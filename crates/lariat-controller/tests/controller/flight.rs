//! The records of the flight recorder.

use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use lariat_cache::FlightRecorder;
use lariat_controller::{Context, ControllerOptions, HandlerOptions, HandlerResult, Outcome};
use lariat_flight::{
    CallEnd, Controlled, EntryBody, FactoryStep, Queued, Record, Recording, RecordingEntry,
    Reflected, Stored,
};
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, key};

/// A temporary folder, which is removed with the value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let name = format!("flight-{}", fastrand::u64(..));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir(&path).expect("the folder is new");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    fn file(&self) -> PathBuf {
        self.0.join("op.flight")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that is left behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn recorded(folder: &Folder) -> Bench {
    Bench::with(|builder| builder.flight_recorder(FlightRecorder::file(folder.file()))).await
}

/// Returns a word for each record whose order a test checks.
fn words(recording: &Recording) -> Vec<String> {
    let word = |entry: RecordingEntry<'_>| {
        let EntryBody::Record(record) = entry.body else {
            panic!("nothing is missing: {entry:?}");
        };
        Some(match record {
            Record::Factory { step, .. } => format!("factory {}", step.as_str()),
            Record::Reflector { what, .. } => match what {
                Reflected::Loaded { objects, .. } => format!("loaded {objects}"),
                Reflected::Line { line, key, .. } => format!("{} {key}", line.as_str()),
                _ => return None,
            },
            Record::Store { what, .. } => match what {
                Stored::Changed { change, key, .. } => format!("{} {key}", change.as_str()),
                _ => return None,
            },
            Record::Queue { what, .. } => match what {
                Queued::Added { key, cause, .. } => format!("queued {key} {}", cause.as_str()),
                Queued::Dequeued { key, .. } => format!("dequeued {key}"),
                Queued::Finished { key, .. } => format!("back {key}"),
                _ => return None,
            },
            Record::Controller { what, .. } => match what {
                Controlled::CallBegan {
                    handler, attempt, ..
                } => format!("{handler} called {attempt}"),
                Controlled::CallEnded { handler, end, .. } => {
                    format!("{handler} {}", end.as_str())
                }
                _ => return None,
            },
        })
    };
    recording.entries().filter_map(word).collect()
}

#[tokio::test(start_paused = true)]
async fn the_path_of_a_change_is_recorded_in_its_order() {
    let folder = Folder::new();
    let bench = recorded(&folder).await;
    bench.on("fails once", |call| async move {
        match call.attempt {
            1 => Err("not yet".into()),
            _ => Ok(Outcome::done()),
        }
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(5 * SECOND).await;
    bench.factory.stop().await.unwrap();
    let recording = Recording::read(&folder.file()).unwrap();
    let words = words(&recording);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(
        words,
        [
            "factory started",
            "loaded 0",
            "ADDED default/a",
            "added default/a",
            "queued default/a added",
            "dequeued default/a",
            "fails once called 1",
            "fails once failed",
            "back default/a",
            "dequeued default/a",
            "fails once called 2",
            "fails once done",
            "back default/a",
            "factory stopping",
            "factory stopped",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_that_is_in_an_object_is_in_the_file() {
    let folder = Folder::new();
    let bench = recorded(&folder).await;
    let fail = |cx: Context<Secret>| async move {
        let secret = cx.object()?.and_then(|secret| secret.data.clone());
        Err::<Outcome, _>(format!("hunter2 cannot be used: {secret:?}").into()) as HandlerResult
    };
    let secrets = bench.factory.for_object::<Secret>();
    secrets.register_handler("fail", fail).unwrap();
    bench.start().await;
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {
            "name": "login", "labels": {"team": "label-hunter2"},
            "annotations": {"note": "note-hunter2"}, "finalizers": ["demo.dev/finalizer-hunter2"],
        },
        "stringData": {"password": "hunter2"},
    }))
    .unwrap();
    let api: Api<Secret> = Api::namespaced(bench.factory.client(), "default");
    let written = api.create(&PostParams::default(), &secret).await.unwrap();
    time::sleep(30 * SECOND).await;
    bench.factory.stop().await.unwrap();

    let bytes = fs::read(folder.file()).unwrap();
    let has = |text: &str| {
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    assert!(has("default/login") && has("v1 Secret") && has("fail"));
    let uid = written.metadata.uid.unwrap();
    // The second is the first as the API server sends it.
    for secret in [
        "hunter2",
        "aHVudGVyMg",
        "team",
        "note",
        "password",
        "cannot be used",
        &uid,
    ] {
        assert!(!has(secret), "{secret:?} is in the file");
    }
}

#[tokio::test(start_paused = true)]
async fn a_recorder_that_cannot_write_disturbs_nothing() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no such folder/op.flight");
    let bench = Bench::with(|builder| builder.flight_recorder(FlightRecorder::file(file))).await;
    let calls = bench.record("log");
    bench.start().await;
    bench.create("a").await;
    time::sleep(5 * SECOND).await;
    bench.factory.stop().await.unwrap();
    assert_eq!(calls.len(), 1);
    let flight = bench.factory.caches().flight().expect("it is on");
    assert!(flight.failed() > 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_and_a_start_are_recorded_one_after_the_other() {
    let folder = Folder::new();
    let bench = recorded(&folder).await;
    bench.record("log");
    for round in 0..2 {
        bench.start().await;
        bench.create(&format!("o{round}")).await;
        time::sleep(5 * SECOND).await;
        bench.factory.stop().await.unwrap();
        let recording = Recording::read(&folder.file()).unwrap();
        let last = recording.entries().last().unwrap().body;
        let step = FactoryStep::Stopped;
        let workers = None;
        assert_eq!(last, EntryBody::Record(Record::Factory { step, workers }));
    }
}

#[tokio::test(start_paused = true)]
async fn the_outcomes_of_calls_are_recorded() {
    let folder = Folder::new();
    let bench = Bench::with(|builder| {
        let handlers = HandlerOptions::default().timeout(2 * SECOND);
        let options = ControllerOptions::default().handlers(handlers);
        let builder = builder.default_options(options);
        builder.flight_recorder(FlightRecorder::file(folder.file()))
    })
    .await;
    bench.on("panics", |_| async { panic!("on purpose") });
    bench.on("hangs", |_| std::future::pending());
    bench.on("requeues", |_| async {
        Ok(Outcome::requeue_after(9 * SECOND))
    });
    bench.on("fails", |_| async { Err("it does not work".into()) });
    bench.start().await;
    bench.config_maps.enqueue(&key("none"));
    time::sleep(3 * SECOND).await;
    bench.factory.stop().await.unwrap();

    let recording = Recording::read(&folder.file()).unwrap();
    let mut ends = std::collections::BTreeMap::new();
    for entry in recording.entries() {
        if let EntryBody::Record(Record::Controller {
            what:
                Controlled::CallEnded {
                    handler,
                    end,
                    again,
                    ..
                },
            ..
        }) = entry.body
        {
            assert!(again.is_some(), "{handler} is called again");
            ends.insert(handler, end);
        }
    }
    let expected = [
        ("fails", CallEnd::Failed),
        ("hangs", CallEnd::TimedOut),
        ("panics", CallEnd::Panicked),
        ("requeues", CallEnd::Requeued),
    ];
    assert_eq!(Vec::from_iter(ends), expected);
}

//! `lariat replay` on what real programs recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cache::FlightRecorder;
use lariat_cluster::Cluster;
use lariat_controller::{Context, ControllerOptions, Outcome, SharedControllerFactory};
use lariat_core::ObjectKey;
use lariat_flight::{EntryBody, NextStep, Queued, Record, Recorder, Recording, Reflected};
use serde_json::json;
use tokio::time;

/// A folder of the test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        // Not by chance: tests that are seeded alike draw alike.
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("replay-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir(&path).expect("the folder is new");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        let path = self.0.join(name);
        path.into_os_string().into_string().expect("text")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that is left behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs `lariat replay`; returns its code and what it wrote.
fn replay(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lariat"));
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .arg("replay")
        .args(arguments)
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    (status.code(), text(stdout), text(stderr))
}

/// Runs a program for so many rounds, each followed by a pause of at most so many milliseconds, with faults, and
/// records it.
async fn record(flight: FlightRecorder, fair: bool, rounds: u64, pause: u64) {
    let cluster = Cluster::builder().start().await.expect("started");
    let options = ControllerOptions::default().fair_namespaces(fair);
    let factory = SharedControllerFactory::builder(cluster.client())
        .default_options(options)
        .flight_recorder(flight)
        .build();
    let maps = factory.for_object::<ConfigMap>();
    let log = |_: Context<ConfigMap>| async { Ok(Outcome::done()) };
    maps.register_handler("log", log).expect("registered");
    let flaky = |cx: Context<ConfigMap>| async move {
        time::sleep(Duration::from_millis(30)).await;
        match (cx.attempt(), fastrand::u8(..4)) {
            (1, 0) => Err("it does not work".into()),
            (_, 1) => Ok(Outcome::requeue_after(Duration::from_secs(2))),
            _ => Ok(Outcome::done()),
        }
    };
    maps.register_handler("flaky", flaky).expect("registered");
    factory.start(3).await.expect("started");
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    for round in 0..rounds {
        let name = format!("o{}", fastrand::u8(..6));
        match fastrand::u8(..9) {
            0 => cluster.cut_watches(),
            1 => cluster.end_watches(),
            2 => {
                // History that expires without a watch makes the next watch end with 410.
                cluster.compact();
                cluster.cut_watches();
            }
            3 => {
                let key = ObjectKey::namespaced("default", &name);
                maps.enqueue_after(&key, Duration::from_millis(fastrand::u64(..4000)));
            }
            4 => drop(api.delete(&name, &DeleteParams::default()).await),
            _ => {
                let map = json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                    "data": {"round": round.to_string()},
                });
                let params = PatchParams::apply("test").force();
                let patch = Patch::Apply(map);
                api.patch(&name, &params, &patch).await.expect("applied");
            }
        }
        // Figures are asked for at any time, which lets delays end.
        drop(factory.status());
        time::sleep(Duration::from_millis(fastrand::u64(..pause))).await;
    }
    factory.stop().await.expect("stopped");
}

/// Writes a recording again, with every record changed by a function.
fn doctor(from: &str, to: &str, mut change: impl FnMut(&mut Record<'_>)) {
    let recording = Recording::read(Path::new(from)).expect("a recording");
    let recorder = Recorder::new(FlightRecorder::file(to).bytes(4 << 20));
    let start = time::Instant::now().into_std();
    for entry in recording.entries() {
        if let EntryBody::Record(mut record) = entry.body {
            change(&mut record);
            recorder.record_at(start + entry.at, &record);
        }
    }
}

/// Records a handler that fails once for each of two objects, and a watch that is cut.
async fn record_two(file: &str) {
    let cluster = Cluster::builder().start().await.expect("started");
    let factory = SharedControllerFactory::builder(cluster.client())
        .flight_recorder(FlightRecorder::file(file))
        .build();
    let maps = factory.for_object::<ConfigMap>();
    let fails_once = |cx: Context<ConfigMap>| async move {
        match cx.attempt() {
            1 => Err("not yet".into()),
            _ => Ok(Outcome::done()),
        }
    };
    maps.register_handler("sync", fails_once)
        .expect("registered");
    factory.start(2).await.expect("started");
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    for name in ["a", "b"] {
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).expect("one");
        api.create(&PostParams::default(), &map)
            .await
            .expect("created");
        time::sleep(Duration::from_secs(3)).await;
    }
    cluster.cut_watches();
    time::sleep(Duration::from_secs(3)).await;
    factory.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn a_timeline_says_what_happened_to_an_object() {
    let folder = Folder::new();
    let file = folder.file("op.flight");
    record_two(&file).await;
    let (code, all, errors) = replay(&[&file]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let first = all.lines().next().expect("a line");
    assert!(first.starts_with("session 1: process "), "{first}");
    assert!(first.ends_with(" UTC"), "{first}");
    for part in [
        "factory    started, 2 workers for each kind",
        "ConfigMap  handler sync was registered",
        "ConfigMap  everything was read: 0 objects at version",
        "ConfigMap  watch: ADDED default/a at ",
        "ConfigMap  cache: added default/a at ",
        "ConfigMap  queued default/a for all handlers, normal: added at ",
        "ConfigMap  dequeued default/a for all handlers, normal, due for ",
        "ConfigMap  run 1: sync is called for default/a",
        "ConfigMap  run 1: sync failed for default/a after ",
        "ConfigMap  default/a came back: sync failed, again in 5.0ms",
        "run 2: sync is called for default/a (attempt 2)",
        "ConfigMap  default/a came back: sync done",
        "ConfigMap  watch ended after ",
        "connection lost",
        "ConfigMap  → resume the watch from the last version",
        "ConfigMap  the server is asked for its history",
        "ConfigMap  the server has the same history",
        "factory    stopped",
    ] {
        assert!(all.contains(part), "{part:?} is not in\n{all}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_can_be_chosen() {
    let folder = Folder::new();
    let file = folder.file("op.flight");
    record_two(&file).await;
    let (_, of_a, _) = replay(&[&file, "--key", "default/a", "--kind", "configmap"]);
    assert!(
        of_a.contains("default/a") && !of_a.contains("default/b"),
        "{of_a}"
    );
    let (_, late, _) = replay(&[&file, "--since", "2s", "--until", "4s", "--handler", "sync"]);
    assert!(
        late.contains("called for default/b") && !late.contains("default/a"),
        "{late}"
    );
    let (_, end, _) = replay(&[&file, "--since", "-1s"]);
    assert!(
        end.contains("stopped") && !end.contains("default/"),
        "{end}"
    );
    let (code, none, _) = replay(&[&file, "--key", "default/c"]);
    assert_eq!(
        (code, none.as_str()),
        (Some(0), "nothing in the recording is like that\n")
    );
}

#[tokio::test(start_paused = true)]
async fn a_summary_counts_calls_and_ends_of_watches() {
    let folder = Folder::new();
    let file = folder.file("op.flight");
    record_two(&file).await;
    let (_, sums, _) = replay(&[&file, "--summary"]);
    for part in [
        "v1 ConfigMap: lists 0, watches 2, lines 2, changes 2, queued 2, dequeued 4",
        "1 × connection lost",
        "v1 ConfigMap, handler sync: calls 4 (2 done, 2 failed)",
        "2 × v1 ConfigMap default/a",
    ] {
        assert!(sums.contains(part), "{part:?} is not in\n{sums}");
    }
}

#[tokio::test(start_paused = true)]
async fn todays_code_decides_as_the_recorded_process_did() {
    for seed in 0..6 {
        fastrand::seed(seed);
        let folder = Folder::new();
        let file = folder.file("op.flight");
        record(FlightRecorder::file(&file), seed % 2 == 0, 150, 400).await;
        let (code, text, errors) = replay(&[&file, "--check"]);
        assert_eq!(
            (code, errors.as_str()),
            (Some(0), ""),
            "seed {seed}: {text}"
        );
        let said = text.lines().next().expect("a line");
        let dequeues = said
            .split_once(": ")
            .and_then(|(_, rest)| rest.split_once(" dequeues"));
        let dequeues: usize = dequeues.expect("a number").0.parse().expect("a number");
        assert!(
            said.starts_with("no difference in ") && dequeues > 50,
            "seed {seed}: {text}"
        );
        assert!(
            !text.contains("could not be compared"),
            "seed {seed}: {text}"
        );
    }
}

/// Times of steps are taken before the queue's lock, so with threads they are not in the order of the steps.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_process_of_several_threads_decided_as_todays_code_does() {
    let folder = Folder::new();
    let file = folder.file("op.flight");
    record(FlightRecorder::file(&file), true, 100, 30).await;
    let (code, text, _) = replay(&[&file, "--check"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("no difference in "), "{text}");
}

/// Something is delayed in its queue at any time, so once its beginning is gone its dequeues cannot be compared.
#[tokio::test(start_paused = true)]
async fn a_ring_that_has_come_round_is_checked_as_far_as_it_goes() {
    fastrand::seed(3);
    let folder = Folder::new();
    let file = folder.file("op.flight");
    record(FlightRecorder::file(&file).bytes(0), false, 1500, 400).await;
    let recording = Recording::read(Path::new(&file)).expect("a recording");
    let first = recording.entries().next().expect("an entry");
    assert!(first.at > Duration::from_secs(1), "it has not come round");
    let (code, text, _) = replay(&[&file, "--check"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("could not be compared"), "{text}");
    assert!(!text.contains(" 0 decisions of reflectors"), "{text}");
    let (_, timeline, _) = replay(&[&file]);
    assert!(!timeline.contains("handler #"), "{timeline}");
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_was_made_otherwise_is_found() {
    fastrand::seed(7);
    let folder = Folder::new();
    let (file, doctored) = (folder.file("op.flight"), folder.file("doctored.flight"));
    record(FlightRecorder::file(&file), false, 120, 400).await;

    // Another key than the one that was first in line.
    let mut dequeues = 0;
    doctor(&file, &doctored, |record| {
        if let Record::Queue {
            what: Queued::Dequeued { key, .. },
            ..
        } = record
        {
            dequeues += 1;
            if dequeues == 20 {
                *key = "default/other";
            }
        }
    });
    let (code, text, _) = replay(&[&doctored, "--check"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.starts_with("difference in session 1 at +"), "{text}");
    assert!(
        text.contains("  recorded: default/other is dequeued, "),
        "{text}"
    );
    assert!(text.contains("  today:    default/o"), "{text}");
    fs::remove_file(&doctored).expect("removed");

    // A watch that goes on where everything has to be read again.
    doctor(&file, &doctored, |record| {
        if let Record::Reflector {
            what: Reflected::Decided { next, .. },
            ..
        } = record
            && *next == NextStep::Load
        {
            *next = NextStep::Watch;
        }
    });
    let (code, text, _) = replay(&[&doctored, "--check"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("today:    after 0ns relist"), "{text}");
    assert!(text.contains("(410)"), "{text}");
}

#[test]
fn files_that_are_no_recordings_have_errors_of_their_own() {
    let folder = Folder::new();
    let refused = |name: &str| {
        let (code, out, errors) = replay(&[&folder.file(name)]);
        assert_eq!((code, out.as_str()), (Some(1), ""));
        errors
    };
    let missing = refused("missing");
    assert!(
        missing.starts_with("error: cannot read ") && missing.contains("No such file"),
        "{missing}"
    );
    fs::write(folder.file("foreign"), "kind: Pod").expect("written");
    assert!(refused("foreign").ends_with("is not a flight recording\n"));
    fs::write(folder.file("empty"), "").expect("written");
    assert!(refused("empty").contains("has no records"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (arguments, says) in [
        (&[][..], "<FILE>"),
        (&["a", "b"], "unexpected argument 'b' found"),
        (
            &["a", "--since", "tomorrow"],
            "invalid value 'tomorrow' for '--since <TIME>': it is no time",
        ),
        (&["a", "--check", "--summary"], "cannot be used with"),
        (
            &["a", "--check", "--key", "shop/web-0"],
            "'--check' cannot be used with",
        ),
    ] {
        let (code, _, errors) = replay(arguments);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains(says), "{says:?} is not in {errors}");
    }
}

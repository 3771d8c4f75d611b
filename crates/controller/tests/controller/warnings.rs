//! Warnings about frequent mistakes.

use std::process::Command;
use std::time::SystemTime;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_controller::{Context, Outcome, SharedControllerFactory};
use lariat_core::clock;
use lariat_testing::Logs;
use tokio::runtime;
use tokio::time;

use crate::bench::{Bench, SECOND, settle};

fn warnings(logs: &Logs) -> Vec<String> {
    let text = logs.text();
    let warnings = text.lines().filter(|line| line.starts_with("WARN"));
    warnings.map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn a_factory_that_starts_without_handlers_says_so() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    bench.start().await;
    let logged = warnings(&logs);
    assert!(
        logged.len() == 1 && logged[0].contains("started without handlers"),
        "{logged:?}"
    );
    bench.factory.stop().await.unwrap();

    let cached = Bench::new().await;
    let _cache = cached.config_maps.cache();
    cached.start().await;
    let handled = Bench::new().await;
    handled.record("log");
    handled.start().await;
    assert_eq!(
        warnings(&logs).len(),
        1,
        "others do something: {:?}",
        warnings(&logs)
    );
}

#[tokio::test(start_paused = true)]
async fn a_running_factory_that_is_dropped_says_so_and_a_stopped_one_does_not() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    bench.record("log");
    bench.start().await;
    bench.factory.stop().await.unwrap();
    drop(bench);
    assert!(warnings(&logs).is_empty(), "{:?}", warnings(&logs));

    let bench = Bench::new().await;
    bench.record("log");
    bench.start().await;
    drop(bench);
    let logged = warnings(&logs);
    assert!(
        logged.len() == 1 && logged[0].contains("a running factory was dropped"),
        "{logged:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn two_factories_of_one_cluster_are_warned_of_and_two_of_two_clusters_are_not() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    let elsewhere = Bench::new().await;
    for each in [&bench, &elsewhere] {
        each.record("log");
        each.create("a").await;
    }
    let uid = async |bench: &Bench| bench.api.get("a").await.unwrap().metadata.uid;
    assert_ne!(
        uid(&bench).await,
        uid(&elsewhere).await,
        "as in two clusters"
    );
    bench.start().await;
    elsewhere.start().await;
    assert!(warnings(&logs).is_empty(), "{:?}", warnings(&logs));

    let second = SharedControllerFactory::builder(bench.cluster.client()).build();
    let handler = |_: Context<ConfigMap>| async { Ok(Outcome::done()) };
    second
        .for_object::<ConfigMap>()
        .register_handler("log", handler)
        .unwrap();
    second.start(1).await.unwrap();
    settle().await;
    let logged = warnings(&logs);
    assert!(
        logged.len() == 1 && logged[0].contains("another factory of this program"),
        "{logged:?}"
    );
    second.stop().await.unwrap();
    bench.factory.stop().await.unwrap();
    second.start(1).await.unwrap();
    assert_eq!(
        warnings(&logs).len(),
        1,
        "the other does not run: {:?}",
        warnings(&logs)
    );
    second.stop().await.unwrap();
    elsewhere.factory.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn replicas_in_a_simulation_are_not_warned_of() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    bench.record("log");
    bench.create("a").await;
    bench.start().await;
    let _simulated = clock::simulate(|| SystemTime::UNIX_EPOCH);
    let second = SharedControllerFactory::builder(bench.cluster.client()).build();
    let handler = |_: Context<ConfigMap>| async { Ok(Outcome::done()) };
    let config_maps = second.for_object::<ConfigMap>();
    config_maps.register_handler("log", handler).unwrap();
    second.start(1).await.unwrap();
    settle().await;
    assert!(warnings(&logs).is_empty(), "{:?}", warnings(&logs));
    second.stop().await.unwrap();
    bench.factory.stop().await.unwrap();
}

/// Set in the child process whose output a test reads.
const CHILD: &str = "LARIAT_TEST_WITHOUT_SUBSCRIBER";

#[test]
fn a_program_without_a_subscriber_says_so_once_on_stderr() {
    if std::env::var_os(CHILD).is_some() {
        return fail_without_a_subscriber();
    }
    let this = "warnings::a_program_without_a_subscriber_says_so_once_on_stderr";
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args([this, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("no tracing subscriber").count(), 1, "{text}");
}

fn fail_without_a_subscriber() {
    let mut builder = runtime::Builder::new_current_thread();
    let builder = builder.enable_time().start_paused(true);
    let runtime = builder.build().expect("a runtime");
    runtime.block_on(async {
        let bench = Bench::new().await;
        bench.on("sad", |_| async { Err("sad".into()) });
        bench.create("a").await;
        let signal = time::sleep(60 * SECOND);
        bench.factory.run(1, signal).await.expect("it ran");
    });
}

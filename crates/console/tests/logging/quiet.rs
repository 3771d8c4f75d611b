//! The number of log lines.

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_console::logging::Logging;
use lariat_controller::{Context, Outcome};

use crate::support::{Log, Program, settle};

const OBJECTS: usize = 1000;

/// Returns the lines of Lariat while 1000 objects change, after the first sync.
async fn lines_of_changes(filter: &str, fails: bool) -> Vec<String> {
    let program = Program::new().await;
    let handler = move |_: Context<ConfigMap>| async move {
        if fails {
            return Err("no quota left".into());
        }
        Ok(Outcome::done())
    };
    program
        .config_maps
        .register_handler("watch", handler)
        .expect("registered");
    for number in 0..OBJECTS {
        program.create(&format!("object-{number}")).await;
    }
    let log = Log::begin(filter, Logging::builder());
    program.factory.start(2).await.expect("started");
    settle().await;
    if !fails {
        let before = log.text();
        let synced = before.contains("cache has synced  objects=1000");
        assert!(synced || filter.starts_with("warn,"), "{before}");
        log.written.clear();
    }
    for number in 0..OBJECTS {
        program.change(&format!("object-{number}"), number).await;
    }
    settle().await;
    let calls = program.config_maps.status().expect("in use").handlers[0].calls;
    assert!(calls >= 2 * OBJECTS as u64, "{calls} calls");
    let text = log.text();
    program.factory.stop().await.expect("stopped");
    program.cluster.shutdown().await;
    text.lines().map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn changes_are_not_logged() {
    let lines = lines_of_changes("info", false).await;
    assert!(lines.is_empty(), "{lines:#?}");
    let lines = lines_of_changes("warn,lariat=debug", false).await;
    assert!(lines.is_empty(), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn the_same_failure_of_a_thousand_objects_is_a_few_lines() {
    let lines = lines_of_changes("warn", true).await;
    assert!((1..=3).contains(&lines.len()), "{lines:#?}");
    assert!(
        lines[0].contains("(watch): handler failed, retrying: no quota left"),
        "{lines:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn each_run_is_a_line_where_that_is_asked_for() {
    let mut lines = lines_of_changes("info,lariat::run=trace", false).await;
    lines.retain(|line| line.contains(": called "));
    assert_eq!(lines.len(), OBJECTS, "{:#?}", lines.get(..3));
    assert!(
        lines[0].contains("ConfigMap default/object-"),
        "{}",
        lines[0]
    );
    assert!(lines[0].contains("outcome=done"), "{}", lines[0]);
}

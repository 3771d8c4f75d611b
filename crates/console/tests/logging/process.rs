//! Logging of a whole process: its environment, and its panics.

use std::process::Command;
use std::thread;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_console::logging::{self, Logging, LoggingError};
use lariat_controller::{Context, HandlerResult, Outcome, RegisterError, Registration};
use serde_json::Value;
use tokio::runtime;

use crate::support::{Program, settle};

/// Set in the child process whose output a test reads.
const CHILD: &str = "LARIAT_TEST_LOGGING";

/// Runs a test of this binary in a child process; returns its stderr.
fn run(test: &str, env: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().expect("this binary"))
        .args([test, "--exact", "--nocapture"])
        .env_remove("RUST_BACKTRACE")
        .env_remove("RUST_LOG")
        .env(CHILD, "1")
        .envs(env.iter().copied())
        .output()
        .expect("it runs");
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{text}");
    text
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

async fn panics(_: Context<ConfigMap>) -> HandlerResult {
    panic!("inside of a handler")
}

/// Runs a program with one object, for which the handler that is registered is called.
fn call_once(register: impl FnOnce(&Program) -> Result<Registration, RegisterError>) {
    let mut builder = runtime::Builder::new_current_thread();
    let runtime = builder
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let program = Program::new().await;
        program.create("a").await;
        register(&program).expect("registered");
        program.factory.start(1).await.expect("started");
        settle().await;
        program.factory.stop().await.expect("stopped");
    });
}

fn panic_everywhere() {
    // The test harness has a panic hook, which programs do not have.
    drop(std::panic::take_hook());
    let _logging = logging::init().expect("the first");
    let thread = thread::Builder::new().name("helper".to_owned());
    let thread = thread.spawn(|| panic!("in a thread\nof two lines"));
    assert!(thread.expect("a thread").join().is_err());
    call_once(|program| program.config_maps.register_handler("sad", panics));
}

#[test]
fn panics_are_logged_once() {
    if is_child() {
        return panic_everywhere();
    }
    let text = run("process::panics_are_logged_once", &[]);
    let about =
        |what: &str| -> Vec<_> { text.lines().filter(|line| line.contains(what)).collect() };
    let thread = about("in a thread");
    assert_eq!(thread.len(), 1, "{text}");
    assert!(
        thread[0].contains("ERROR panicked: in a thread\\nof two lines  at="),
        "{text}"
    );
    assert!(thread[0].ends_with(" thread=helper"), "{text}");
    // Summaries of what goes on failing follow.
    let handler = about("handler panicked: inside of a handler");
    assert_eq!(handler.len(), 1, "{text}");
    let expected = "ERROR ConfigMap default/a (sad): handler panicked: inside of a handler  at=";
    assert!(handler[0].contains(expected), "{text}");
    assert!(!text.contains("RUST_BACKTRACE"), "{text}");
}

#[test]
fn the_environment_has_format_and_filter() {
    if is_child() {
        let _logging = logging::init().expect("the first");
        assert!(matches!(
            Logging::builder().init(),
            Err(LoggingError::AlreadySet)
        ));
        tracing::info!("too much");
        return tracing::warn!(count = 1, "asked for");
    }
    let env = [("LOG_FORMAT", "json"), ("RUST_LOG", "warn")];
    let text = run("process::the_environment_has_format_and_filter", &env);
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("only JSON is written"))
        .collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert_eq!(
        (&lines[0]["message"], &lines[0]["count"]),
        (&"asked for".into(), &1.into())
    );
}

async fn says(_: Context<ConfigMap>) -> HandlerResult {
    tracing::info!("called");
    Ok(Outcome::done())
}

#[test]
fn causes_are_formatted_only_where_something_logs_details() {
    if is_child() {
        let _logging = logging::init().expect("the first");
        return call_once(|program| program.config_maps.register_handler("say", says));
    }
    for (filter, expected) in [("info", false), ("info,lariat::run=debug", true)] {
        let env = [("LOG_FORMAT", "json"), ("RUST_LOG", filter)];
        let test = "process::causes_are_formatted_only_where_something_logs_details";
        let text = run(test, &env);
        let line = text
            .lines()
            .find(|line| line.contains("\"message\":\"called\""));
        let line: Value = serde_json::from_str(line.expect("the handler's line")).unwrap();
        assert_eq!(line["handler"], "say");
        assert_eq!(line.get("causes").is_some(), expected, "{filter}: {line}");
    }
}

//! The format of lines.

use lariat_console::logging::{Format, Logging};
use lariat_core::{Gvk, ObjectKey};
use serde_json::Value;

use crate::support::Log;

/// Returns the lines without their times, which are checked here.
fn untimed(log: &Log) -> Vec<String> {
    let text = log.text();
    let lines = text.lines().map(|line| {
        if line.starts_with("    ") {
            return line.to_owned();
        }
        let (time, rest) = line.split_once(' ').expect("a time");
        let shape: String = time
            .chars()
            .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
            .collect();
        assert_eq!(shape, "00:00:00.000Z", "{line}");
        rest.to_owned()
    });
    lines.collect()
}

fn run(gvk: &Gvk, key: &ObjectKey) -> tracing::Span {
    tracing::info_span!(
        target: "lariat::run", "run",
        kind = %gvk, %key, handler = "scale", run = 7, attempt = 2,
    )
}

fn deployment() -> (Gvk, ObjectKey) {
    let gvk = Gvk::new("apps", "v1", "Deployment");
    (gvk, ObjectKey::namespaced("shop", "web"))
}

#[test]
fn the_object_is_in_its_place() {
    let log = Log::begin("trace", Logging::builder());
    let (kind, key) = deployment();
    tracing::warn!(target: "lariat_controller", %kind, %key, handler = "scale", error = "no quota left", attempt = 3, "handler failed, retrying");
    tracing::info!(target: "lariat_cache", %kind, objects = 1000, "cache has synced");
    tracing::info!(port = 8080, "listening");
    tracing::error!(error = "closed", "");
    run(&kind, &key).in_scope(|| {
        tracing::info!(replicas = 3, "scaled");
        tracing::debug!("in detail");
        tracing::info!(kind = "v1 ConfigMap", key = "shop/names", "read");
    });
    assert_eq!(
        untimed(&log),
        [
            "WARN  Deployment shop/web (scale): handler failed, retrying: no quota left  attempt=3",
            "INFO  Deployment: cache has synced  objects=1000",
            "INFO  logging: listening  port=8080",
            "ERROR logging: closed",
            "INFO  logging: Deployment shop/web (scale): scaled  replicas=3",
            "DEBUG logging: Deployment shop/web (scale): in detail  run=7 attempt=2",
            "INFO  logging: ConfigMap shop/names (scale): read",
        ]
    );
}

#[test]
fn fields_of_spans_of_the_program_are_shown_and_inner_ones_win() {
    let log = Log::begin("info", Logging::builder());
    let outer = tracing::info_span!("tenant", tenant = "acme", region = "eu").entered();
    tracing::info!(region = "us", note = "two words", "moved");
    drop(outer);
    assert_eq!(
        untimed(&log),
        ["INFO  logging: moved  region=us note=\"two words\" tenant=acme"]
    );
}

#[test]
fn text_cannot_forge_lines_or_control_the_terminal() {
    let log = Log::begin("info", Logging::builder());
    let evil = "a\nERROR forged \x1b[2J";
    tracing::info!(key = evil, error = evil, other = evil, "{evil}");
    let lines = untimed(&log);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(!lines[0].contains('\x1b'), "{lines:?}");
}

#[test]
fn a_backtrace_is_below_its_line() {
    let log = Log::begin("info", Logging::builder());
    tracing::error!(
        backtrace = "0: one\n1: two",
        at = "x.rs:1",
        "handler panicked"
    );
    let expected = [
        "ERROR logging: handler panicked  at=x.rs:1",
        "    0: one",
        "    1: two",
    ];
    assert_eq!(untimed(&log), expected);
}

#[test]
fn colours_are_for_terminals() {
    let log = Log::begin("info", Logging::builder().colours(true));
    tracing::info!("green");
    assert!(log.text().contains("\x1b[32mINFO "), "{}", log.text());
    let log = Log::begin("info", Logging::builder());
    tracing::info!("plain");
    assert!(!log.text().contains('\x1b'));
}

#[test]
fn json_has_the_fields_of_all_spans_side_by_side() {
    let log = Log::begin("trace", Logging::builder().format(Format::Json));
    let (kind, key) = deployment();
    run(&kind, &key).in_scope(|| {
        let write = tracing::info_span!(target: "lariat::write", "write", method = "PATCH", kind = "v1 Pod", level = 1);
        write.in_scope(|| tracing::warn!(ratio = 0.5, none = f64::NAN, yes = true, "a \"quoted\"\nmessage"));
    });
    tracing::info!(target: "other", count = 1);
    let text = log.text();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let mut first = lines[0].clone();
    let time = first["timestamp"].take();
    let time = time.as_str().expect("a text");
    assert!(
        time.ends_with('Z') && time.len() == "2026-01-01T00:00:00.000000Z".len(),
        "{time}"
    );
    assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    let expected = serde_json::json!({
        "timestamp": null, "level": "WARN", "target": "logging::lines", "spans": ["run", "write"],
        "message": "a \"quoted\"\nmessage", "kind": "v1 Pod", "key": "shop/web", "handler": "scale", "run": 7,
        "attempt": 2, "method": "PATCH", "field.level": 1, "ratio": 0.5, "none": "NaN", "yes": true,
    });
    assert_eq!(first, expected);
    assert_eq!(
        (&lines[1]["message"], &lines[1]["count"]),
        (&"".into(), &1.into())
    );
    assert_eq!(lines[1].get("spans"), None);
}

//! Failures of handlers, and their log lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_controller::{CallOutcome, Context, HandlerError, Outcome, Terminal};
use lariat_testing::Logs;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, key, settle};

fn lines<'a>(text: &'a str, level: &str) -> Vec<&'a str> {
    text.lines()
        .filter(|line| line.starts_with(level))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn handlers_that_fail_are_logged_by_name() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    for name in ["one", "two"] {
        bench.on(name, move |_| async move {
            Err(format!("{name} is sad").into())
        });
    }
    bench.start().await;
    bench.create("a").await;
    settle().await;
    let text = logs.text();
    let warnings = lines(&text, "WARN");
    assert_eq!(warnings.len(), 2, "{text}");
    for (line, name) in warnings.iter().zip(["one", "two"]) {
        assert!(
            line.contains(&format!("handler={name} error=\"{name} is sad\"")),
            "{line}"
        );
        assert!(
            line.contains("key=default/a") && line.contains("kind=v1 ConfigMap"),
            "{line}"
        );
        assert!(line.contains("retry_in=5ms"), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn same_error_of_many_keys_is_one_line_with_their_count() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    let is_down = Arc::new(AtomicBool::new(true));
    let down = Arc::clone(&is_down);
    bench.on("store", move |call| {
        let is_down = down.load(Ordering::Relaxed);
        async move {
            if is_down {
                Err(format!("cannot store default/{}", call.name).into())
            } else {
                Ok(Outcome::done())
            }
        }
    });
    for number in 0..200 {
        bench.create(&format!("map-{number}")).await;
    }
    bench.start().await;
    time::sleep(60 * SECOND).await;
    let text = logs.text();
    let warnings = lines(&text, "WARN");
    assert_eq!(warnings.len(), 2, "at once, and after 1 s: {text}");
    assert!(warnings[1].contains("failing=200"), "{}", warnings[1]);
    assert!(
        warnings[1].contains("examples=default/map-"),
        "{}",
        warnings[1]
    );

    is_down.store(false, Ordering::Relaxed);
    time::sleep(60 * SECOND).await;
    let text = logs.text();
    let recovered = lines(&text, "INFO");
    let recovered: Vec<_> = recovered
        .iter()
        .filter(|line| line.contains("handler recovered"))
        .collect();
    assert_eq!(recovered.len(), 1, "{text}");
    let failures = bench.status().handlers[0].failures;
    let all_lines = lines(&text, "DEBUG");
    let all = all_lines
        .iter()
        .filter(|line| line.contains("failed again"));
    assert_eq!(
        all.count() as u64,
        failures - 1,
        "each but the first is logged at debug level"
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_not_logged_of_failures_is_logged_at_a_stop() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    bench.on("sad", |_| async { Err("sad".into()) });
    bench.start().await;
    bench.create("a").await;
    bench.create("b").await;
    settle().await;
    bench.factory.stop().await.unwrap();
    let text = logs.text();
    assert_eq!(lines(&text, "WARN").len(), 2, "{text}");
    assert!(text.contains("failing=2"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_one_line_and_has_a_backtrace_if_the_environment_says_so() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    let calls = bench.on("bad", |call| async move {
        assert!(call.attempt > 3, "the first attempts panic");
        Ok(Outcome::done())
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(10 * SECOND).await;
    let text = logs.text();
    let is_wanted = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
    assert_eq!(text.contains("backtrace="), is_wanted, "{text}");
    assert_eq!(
        text.contains("a_panic_is_one_line_and_has_a_backtrace"),
        is_wanted,
        "{text}"
    );
    assert!(
        !text.contains("tokio::runtime"),
        "frames of the runtime are left out: {text}"
    );
    let panics: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("handler panicked: the first"))
        .collect();
    assert_eq!(panics.len(), 1, "{text}");
    assert!(
        panics[0].starts_with("ERROR") && panics[0].contains("failing.rs:"),
        "{text}"
    );
    assert_eq!(calls.len(), 4);
    assert_eq!(bench.status().handlers[0].panics, 3);
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Picky {
    data: std::collections::BTreeMap<String, u32>,
}

async fn reads(name: &'static str, cx: Context<ConfigMap>) -> Result<Outcome, HandlerError> {
    let other = cx.cache().view::<Picky>();
    let read = async { anyhow::Ok(other.get(&key(name))?) };
    read.await?;
    Ok(Outcome::done())
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_is_final_for_its_own_run_alone() {
    let bench = Bench::new().await;
    let maps = &bench.config_maps;
    maps.register_handler("child", |cx| reads("child", cx))
        .unwrap();
    bench.start().await;
    bench
        .apply(json!({"metadata": {"name": "child"}, "data": {"value": "none"}}))
        .await;
    bench.create("parent").await;
    settle().await;
    let ended = |name: &str| {
        let runs = bench.config_maps.history_of(&key(name));
        runs.iter()
            .map(|run| run.calls[0].outcome)
            .collect::<Vec<_>>()
    };
    assert_eq!(ended("child"), [CallOutcome::Terminal]);
    assert_eq!(ended("parent"), [CallOutcome::Failed]);
    bench
        .apply(json!({"metadata": {"name": "child"}, "data": {"value": null}}))
        .await;
    bench
        .apply(json!({"metadata": {"name": "child"}, "data": null}))
        .await;
    time::sleep(60 * SECOND).await;
    assert_eq!(
        ended("parent").last(),
        Some(&CallOutcome::Failed),
        "data is still not there"
    );
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_ends_the_tries_also_behind_anyhow() {
    let bench = Bench::new().await;
    let calls = bench.on("never", |_| async {
        let work = || -> anyhow::Result<()> { Err(Terminal::because("the spec is bad"))? };
        work()?;
        Ok(Outcome::done())
    });
    let logs = Logs::begin();
    bench.start().await;
    bench.create("a").await;
    time::sleep(60 * SECOND).await;
    assert_eq!(calls.len(), 1);
    let text = logs.text();
    assert!(text.contains("error=\"the spec is bad\""), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_api_server_can_postpone_the_next_attempt_but_not_bring_it_forward() {
    let bench = Bench::new().await;
    let calls = bench.on("busy", |_| async {
        let mut status = kube::core::Status::failure("busy", "TooManyRequests").with_code(429);
        status.details = serde_json::from_value(json!({"retryAfterSeconds": 3})).ok();
        Err(anyhow::Error::from(kube::Error::Api(status.boxed())).into())
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(Duration::from_millis(9_500)).await;
    assert_eq!(calls.len(), 4);
    time::sleep(3600 * SECOND).await;
    let calls = calls.all();
    let last = calls[calls.len() - 1].at - calls[calls.len() - 2].at;
    assert!(
        last >= 30 * SECOND,
        "the backoff grows all the same: {last:?}"
    );
}

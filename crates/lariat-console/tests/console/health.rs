//! Probes through the life of a program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_console::HealthCheck;
use lariat_console::api::{Check, Health};
use lariat_controller::{Context, HandlerResult, Outcome};
use tokio::sync::Notify;

use crate::bench::{Bench, until};

async fn check(bench: &Bench, name: &str) -> Check {
    let health: Health = bench.client.get("/api/v1/health").await.good();
    let found = health.checks.into_iter().find(|check| check.name == name);
    found.expect("the check")
}

/// Waits until a probe answers so.
async fn answers(bench: &Bench, path: &str, status: u16) -> String {
    until(async || {
        let answer = bench.client.get(path).await;
        (answer.status == status).then_some(answer.text)
    })
    .await
}

#[tokio::test]
async fn a_program_is_ready_when_its_caches_are_filled_and_until_it_stops() {
    let bench = Bench::with(|console, _| console.stuck_after(Duration::from_secs(600))).await;
    let end = Arc::new(Notify::new());
    let waits = Arc::clone(&end);
    let handler = move |_: Context<ConfigMap>| {
        let waits = Arc::clone(&waits);
        async move {
            waits.notified().await;
            HandlerResult::Ok(Outcome::done())
        }
    };
    bench.maps.register_handler("wait", handler).unwrap();
    let body = answers(&bench, "/readyz", 500).await;
    assert!(
        body.contains("[-]caches failed: the factory is not started\n"),
        "{body}"
    );
    assert!(
        body.contains("[+]ping ok\n") && body.ends_with("readyz check failed\n"),
        "{body}"
    );
    for path in ["/livez", "/healthz", "/readyz?exclude=caches"] {
        assert_eq!(answers(&bench, path, 200).await, "ok");
    }
    // Caches that cannot be filled are named.
    let partition = bench.cluster.faults().partition("");
    let factory = bench.factory.clone();
    let start = tokio::task::JoinSet::from_iter([async move { factory.start(1).await }]);
    let body = until(async || {
        let text = bench.client.get("/readyz/caches").await.text;
        text.contains("v1 ConfigMap is").then_some(text)
    })
    .await;
    assert!(body.starts_with("caches failed: v1 ConfigMap is"), "{body}");
    assert_eq!(bench.client.get("/livez").await.text, "ok");
    bench.cluster.faults().remove(partition);
    bench.create("web").await;
    for started in start.join_all().await {
        started.unwrap();
    }
    assert_eq!(answers(&bench, "/readyz", 200).await, "ok");
    let body = bench.client.get("/readyz?verbose").await.text;
    for line in [
        "[+]caches ok",
        "[+]watches ok",
        "[+]handlers ok",
        "[+]leases ok",
        "[+]shutdown ok",
    ] {
        assert!(body.lines().any(|it| it == line), "{body}");
    }
    // During the stop, which waits for the call, the program is not ready, and alive.
    let factory = bench.factory.clone();
    let stop = tokio::task::JoinSet::from_iter([async move { factory.stop().await }]);
    let body = answers(&bench, "/readyz", 500).await;
    assert!(
        body.contains("[-]shutdown failed: the program is stopping\n"),
        "{body}"
    );
    assert_eq!(bench.client.get("/healthz").await.text, "ok");
    end.notify_one();
    for stopped in stop.join_all().await {
        stopped.unwrap();
    }
    bench.server.ended().await;
    assert!(
        tokio::net::TcpStream::connect(bench.server.address())
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_lost_watch_is_named() {
    let bench = Bench::with(|console, _| console.unwatched_after(Duration::ZERO)).await;
    bench.idle("log");
    bench.start().await;
    answers(&bench, "/readyz", 200).await;
    let partition = bench.cluster.faults().partition("");
    let body = answers(&bench, "/readyz/watches", 500).await;
    assert!(
        body.contains("v1 ConfigMap has been without a watch for"),
        "{body}"
    );
    // The cache is filled all the same.
    assert_eq!(answers(&bench, "/readyz/caches", 200).await, "ok");
    bench.cluster.faults().remove(partition);
    answers(&bench, "/readyz", 200).await;
}

#[tokio::test]
async fn a_stuck_handler_is_named() {
    let bench = Bench::with(|console, _| console.stuck_after(Duration::ZERO)).await;
    let end = Arc::new(Notify::new());
    let waits = Arc::clone(&end);
    let handler = move |_: Context<ConfigMap>| {
        let waits = Arc::clone(&waits);
        async move {
            waits.notified().await;
            HandlerResult::Ok(Outcome::done())
        }
    };
    bench.maps.register_handler("stuck", handler).unwrap();
    bench.start().await;
    answers(&bench, "/readyz", 200).await;
    bench.create("web").await;
    let body = answers(&bench, "/readyz/handlers", 500).await;
    assert!(body.contains("ConfigMap"), "{body}");
    assert_eq!(
        bench.client.get("/livez").await.text,
        "ok",
        "a restart mends nothing"
    );
    end.notify_one();
    answers(&bench, "/readyz", 200).await;
}

#[tokio::test]
async fn checks_of_the_program_are_among_the_others() {
    let is_broken = Arc::new(AtomicBool::new(false));
    let broken = Arc::clone(&is_broken);
    let bench = Bench::with(|console, _| {
        let disk = HealthCheck::new("disk", move || {
            let is_good = !broken.load(Ordering::Relaxed);
            is_good
                .then_some(())
                .ok_or("the disk is full, password=hunter2")
        });
        let hangs = HealthCheck::future("hangs", std::future::pending::<Result<(), String>>);
        let hangs = hangs.timeout(Duration::from_millis(1));
        console.check(disk.liveness(true)).check(hangs)
    })
    .await;
    assert_eq!(answers(&bench, "/livez", 200).await, "ok");
    let body = answers(&bench, "/readyz/hangs", 500).await;
    assert_eq!(body, "hangs failed: no answer within 1ms\n");
    assert_eq!(bench.client.get("/livez/hangs").await.status, 404);
    is_broken.store(true, Ordering::Relaxed);
    let body = answers(&bench, "/livez", 500).await;
    assert!(
        body.contains("[-]disk failed: the disk is full, password=…\n"),
        "{body}"
    );
    let found = check(&bench, "disk").await;
    assert!(!found.ok && found.liveness);
}

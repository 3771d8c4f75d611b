//! Probes through the life of a program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_console::api::{Check, Health, Overview};
use lariat_console::{Console, HealthCheck, Serve};
use lariat_controller::{Context, HandlerResult, Outcome, SharedControllerFactory};
use lariat_lease::Lease;
use lariat_testing::http::Client;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time;

use crate::bench::{Bench, until};

async fn check(bench: &Bench, name: &str) -> Check {
    let health: Health = bench.client.get("/api/v1/health").await.good();
    let found = health.checks.into_iter().find(|check| check.name == name);
    found.expect("the check")
}

/// Waits until a probe has a status.
async fn answers(bench: &Bench, path: &str, status: u16) -> String {
    until(async || {
        let answer = bench.client.get(path).await;
        (answer.status == status).then_some(answer.text)
    })
    .await
}

/// Registers a handler whose calls end when they are notified.
fn waiting(bench: &Bench, name: &str) -> Arc<Notify> {
    let end = Arc::new(Notify::new());
    let waits = Arc::clone(&end);
    let handler = move |_: Context<ConfigMap>| {
        let waits = Arc::clone(&waits);
        async move {
            waits.notified().await;
            HandlerResult::Ok(Outcome::done())
        }
    };
    let registered = bench.maps.register_handler(name, handler);
    registered.expect("registered");
    end
}

#[tokio::test]
async fn a_program_is_ready_when_its_caches_are_filled() {
    let bench = Bench::new().await;
    bench.idle("log");
    let body = answers(&bench, "/readyz", 500).await;
    let expected = "[-]caches failed: the factory is not started\n";
    assert!(body.contains(expected), "{body}");
    assert!(body.contains("[+]ping ok\n"), "{body}");
    assert!(body.ends_with("readyz check failed\n"), "{body}");
    for path in ["/livez", "/healthz", "/readyz?exclude=caches"] {
        assert_eq!(answers(&bench, path, 200).await, "ok");
    }
    // Caches that cannot be filled are named.
    let partition = bench.cluster.faults().partition("");
    let factory = bench.factory.clone();
    let start = JoinSet::from_iter([async move { factory.start(1).await }]);
    let body = until(async || {
        let text = bench.client.get("/readyz/caches").await.text;
        text.contains("v1 ConfigMap is").then_some(text)
    })
    .await;
    assert!(body.starts_with("caches failed: v1 ConfigMap is"), "{body}");
    assert_eq!(bench.client.get("/livez").await.text, "ok");
    bench.cluster.faults().remove(partition);
    for started in start.join_all().await {
        started.unwrap();
    }
    assert_eq!(answers(&bench, "/readyz", 200).await, "ok");
    let body = bench.client.get("/readyz?verbose").await.text;
    for name in [
        "ping", "leases", "caches", "watches", "handlers", "guards", "shutdown",
    ] {
        let line = format!("[+]{name} ok");
        assert!(body.lines().any(|it| it == line), "{line} in {body}");
    }
}

#[tokio::test]
async fn a_program_that_stops_is_alive_and_not_ready() {
    let bench = Bench::new().await;
    let end = waiting(&bench, "wait");
    bench.create("web").await;
    bench.factory.start(1).await.unwrap();
    let is_called = async || {
        let overview: Overview = bench.client.get("/api/v1/overview").await.good();
        (overview.controllers[0].queue.processing > 0).then_some(())
    };
    until(is_called).await;
    let factory = bench.factory.clone();
    let stop = JoinSet::from_iter([async move { factory.stop().await }]);
    // The stop waits for the calls.
    let body = answers(&bench, "/readyz", 500).await;
    let expected = "[-]shutdown failed: the program is stopping\n";
    assert!(body.contains(expected), "{body}");
    assert_eq!(bench.client.get("/healthz").await.text, "ok");
    let mut ends = JoinSet::from_iter([async move {
        loop {
            end.notify_waiters();
            time::sleep(Duration::from_millis(5)).await;
        }
    }]);
    for stopped in stop.join_all().await {
        stopped.unwrap();
    }
    ends.shutdown().await;
    bench.server.ended().await;
    let refused = TcpStream::connect(bench.server.address()).await;
    assert!(refused.is_err());
}

#[tokio::test]
async fn lost_watch_is_named_and_leaves_readiness() {
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
    // It is for people: the Pod may serve webhooks, and a watch that is down concerns all replicas alike.
    let body = answers(&bench, "/readyz?verbose", 200).await;
    assert!(
        body.contains("[-]watches failed, does not count: "),
        "{body}"
    );
    // The cache is filled all the same.
    assert_eq!(answers(&bench, "/readyz/caches", 200).await, "ok");
    bench.cluster.faults().remove(partition);
    answers(&bench, "/readyz", 200).await;
}

#[tokio::test]
async fn stuck_handler_is_named_and_leaves_readiness() {
    let bench = Bench::with(|console, _| console.stuck_after(Duration::ZERO)).await;
    let end = waiting(&bench, "stuck");
    bench.start().await;
    bench.create("web").await;
    let body = answers(&bench, "/readyz/handlers", 500).await;
    assert!(
        body.contains("the handler stuck of v1 ConfigMap has been running for"),
        "{body}"
    );
    assert_eq!(
        bench.client.get("/livez").await.text,
        "ok",
        "a restart mends nothing"
    );
    let ready = bench.client.get("/readyz").await;
    assert_eq!((ready.status, &*ready.text), (200, "ok"));
    until(async || {
        end.notify_waiters();
        let answer = bench.client.get("/readyz/handlers").await;
        (answer.status == 200).then_some(())
    })
    .await;
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
    assert_eq!(body, "hangs failed: timed out after 1ms\n");
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

#[tokio::test]
async fn a_lease_is_shown_with_its_holder() {
    let cluster = lariat_cluster::Cluster::builder().start().await.unwrap();
    let builder = SharedControllerFactory::builder(cluster.client());
    let lease = Lease::new("shop").identity("me");
    let factory = builder.leader_election(lease).build();
    let handler = |_: Context<ConfigMap>| async { HandlerResult::Ok(Outcome::done()) };
    let maps = factory.for_object::<ConfigMap>();
    maps.register_handler("log", handler).unwrap();
    let server = factory.serve(Console::on("127.0.0.1:0")).unwrap();
    let client = Client::new(server.address());
    let state = async || {
        let overview: Overview = client.get("/api/v1/overview").await.good();
        overview.leases[0].clone()
    };
    assert_eq!(state().await.state, "standby");
    factory.start(1).await.unwrap();
    let lease = until(async || {
        let lease = state().await;
        (lease.state == "leading").then_some(lease)
    })
    .await;
    assert_eq!(
        (&*lease.identity, lease.holder.as_deref()),
        ("me", Some("me"))
    );
    assert!(
        lease.lease.ends_with("/shop") && lease.acquired == 1,
        "{lease:?}"
    );
    let probe = client.get("/livez/leases").await;
    assert_eq!((probe.status, &*probe.text), (200, "ok"));
    factory.stop().await.unwrap();
    server.ended().await;
}

/// An optional CRD that is uninstalled must not take a program out of service.
#[tokio::test]
async fn blind_kind_is_named_by_readiness_and_does_not_fail_it() {
    let bench = Bench::new().await;
    bench.idle("log");
    bench.create("web").await;
    bench.start().await;
    answers(&bench, "/readyz", 200).await;
    let unserved = Action::Refuse(Refusal::new(StatusCode::NOT_FOUND));
    let unserved = bench
        .cluster
        .faults()
        .add(Rule::new(unserved).resource("configmaps"));
    bench.cluster.cut_watches();
    let caches = until(async || {
        let caches = check(&bench, "caches").await;
        caches.message.is_some().then_some(caches)
    })
    .await;
    assert!(caches.ok);
    let note = caches.message.expect("it was found");
    assert!(
        note.starts_with("v1 ConfigMap is not served for "),
        "{note}"
    );
    assert_eq!(answers(&bench, "/readyz/caches", 200).await, "ok");
    let overview: Overview = bench.client.get("/api/v1/overview").await.good();
    let cache = &overview.caches[0];
    assert!(cache.blind.is_some() && cache.objects == 1 && !cache.synced);
    bench.cluster.faults().remove(unserved);
    until(async || {
        check(&bench, "caches")
            .await
            .message
            .is_none()
            .then_some(())
    })
    .await;
}

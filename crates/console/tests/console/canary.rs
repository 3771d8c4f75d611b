//! A secret in all inputs of a program must be in none of its responses.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_cluster::User;
use lariat_console::Console;
use lariat_controller::{Context, HandlerError, HandlerOptions, HandlerResult};
use lariat_queue::Exponential;
use lariat_testing::Logs;
use serde_json::json;

use crate::bench::{Bench, until};

const CANARY: &str = "canary-d3adb33f-0f-the-m1ne";

/// All routes, with `Secret` as the kind.
const ROUTES: [&str; 14] = [
    "/",
    "/assets/main.js",
    "/metrics",
    "/livez?verbose",
    "/healthz?verbose",
    "/readyz?verbose",
    "/readyz/caches",
    "/openapi.json",
    "/api/v1/overview",
    "/api/v1/health",
    "/api/v1/plan",
    "/api/v1/controllers/core~v1~Secret",
    "/api/v1/controllers/core~v1~Secret/keys/default~db",
    "/nothing",
];

fn failure(number: usize) -> HandlerError {
    let text = match number % 6 {
        0 => format!("the bank answered 401 to Bearer {CANARY}"),
        1 => format!("refused: token: {CANARY}"),
        2 => format!("{{\"password\":\"{CANARY}\",\"user\":\"me\"}}"),
        3 => format!("cannot connect to postgres://me:{CANARY}@db:5432/shop"),
        4 => format!("Authorization: Basic {CANARY}, status 403"),
        _ => format!("api_key={CANARY}&limit=5 was refused"),
    };
    HandlerError::from(text)
}

/// Starts a program with the canary in objects, tokens, errors and panics of its handler.
async fn leaking() -> Bench {
    // The token of the program's own kubeconfig, too.
    let token = format!("kube-{CANARY}");
    let bench = Bench::on(
        |cluster| cluster.token_of(token, User::admin()),
        |console: Console, _| console.actions(true).token(format!("console-{CANARY}")),
    )
    .await;
    let secrets = bench.factory.for_object::<Secret>();
    let count = AtomicUsize::new(0);
    let handler = move |_: Context<Secret>| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        async move {
            assert!(number % 7 != 6, "token={CANARY}");
            HandlerResult::Err(failure(number))
        }
    };
    let soon = Duration::from_millis(5);
    let options = HandlerOptions::default().rate_limiter(move || Exponential::new(soon, soon));
    let registered = secrets.register_handler("leak", options.handler(handler));
    registered.expect("registered");
    bench
}

/// Writes a Secret, and changes it while the program runs.
async fn write(bench: &Bench) {
    let api = Api::<Secret>::namespaced(bench.cluster.client(), "default");
    let secret = json!({
        "metadata": {"name": "db", "annotations": {"last-applied": CANARY}},
        "stringData": {"password": CANARY},
    });
    let secret = serde_json::from_value(secret).expect("a Secret");
    let created = api.create(&PostParams::default(), &secret).await;
    created.expect("created");
    bench.start().await;
    let changed = format!("{CANARY}-2");
    let patch = json!({
        "metadata": {"annotations": {"last-applied": changed}},
        "stringData": {"password": changed},
    });
    let patch = Patch::Merge(patch);
    let patched = api.patch("db", &PatchParams::default(), &patch).await;
    patched.expect("patched");
}

#[tokio::test]
async fn secrets_are_in_no_answer_no_metric_and_no_line_of_the_log() {
    let logs = Logs::begin();
    let bench = leaking().await;
    write(&bench).await;
    let known = bench.client.token(&format!("console-{CANARY}"));
    let path = "/api/v1/controllers/core~v1~Secret/keys/default~db";
    until(async || {
        let answer = known.get(path).await;
        let runs = answer.json()["runs"].as_array().map_or(0, Vec::len);
        (runs > 14).then_some(())
    })
    .await;
    let wrong = bench.client.token(&format!("kube-{CANARY}"));
    for route in ROUTES {
        for client in [&known, &wrong, &bench.client] {
            let answer = client.get(route).await;
            assert!(!answer.text.contains(CANARY), "{route}: {}", answer.text);
            let headers = format!("{:?}", answer.headers);
            assert!(!headers.contains(CANARY), "{route}: {headers}");
        }
    }
    // The errors themselves are there, without what they contain.
    let text = known.get(path).await.text;
    assert!(text.contains("the bank answered 401 to Bearer …"), "{text}");
    let mut stream = known.watch("/api/v1/overview?watch=true").await;
    let (_, data) = stream.event().await.unwrap();
    assert!(!data.contains(CANARY), "{data}");
    let action = json!({"action": "log-filter", "filter": CANARY});
    let refused = known.post("/api/v1/actions", &action).await;
    assert!(!refused.text.contains(CANARY), "{}", refused.text);
    bench.factory.stop().await.unwrap();
    let text = logs.text();
    assert!(
        text.contains("the bank answered 401"),
        "the failures were logged"
    );
    let line = text.lines().find(|line| line.contains(CANARY));
    assert_eq!(line, None);
    let debug = format!("{:?} {:?}", bench.server, Console::on("x").token(CANARY));
    assert!(!debug.contains(CANARY), "{debug}");
}

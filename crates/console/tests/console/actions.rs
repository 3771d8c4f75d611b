//! Actions, and the requests that are refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use lariat_console::LogFilter;
use lariat_console::api::{Action, ControllerDetail, Done, KeyDetail, KindRef, Overview};
use lariat_controller::{Context, HandlerResult, Outcome};
use lariat_core::Gvk;
use lariat_testing::Logs;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use crate::bench::{Bench, MAPS, until};

const ACTIONS: &str = "/api/v1/actions";

fn maps() -> KindRef {
    KindRef::new("", &Gvk::new("", "v1", "ConfigMap"))
}

fn enqueue(handler: Option<&str>) -> Action {
    Action::Enqueue {
        kind: maps(),
        key: "default/web".to_owned(),
        handler: handler.map(str::to_owned),
    }
}

/// A filter that accepts every text but `bad`.
#[derive(Clone, Default)]
struct Filter(Arc<Mutex<String>>);

impl LogFilter for Filter {
    fn filter(&self) -> String {
        self.0.lock().clone()
    }

    fn set_filter(&self, filter: &str) -> Result<(), String> {
        if filter == "bad" {
            return Err("bad is no level".to_owned());
        }
        filter.clone_into(&mut self.0.lock());
        Ok(())
    }
}

#[tokio::test]
async fn a_key_is_enqueued_for_one_handler_or_for_all() {
    let bench = Bench::with(|console, _| console.actions(true)).await;
    let counts: [Arc<AtomicUsize>; 2] = Default::default();
    for (name, count) in ["one", "two"].into_iter().zip(counts.clone()) {
        let handler = move |cx: Context<ConfigMap>| {
            count.fetch_add(usize::from(cx.key().name() == "web"), Ordering::Relaxed);
            async { HandlerResult::Ok(Outcome::done()) }
        };
        bench.maps.register_handler(name, handler).unwrap();
    }
    bench.start().await;
    let logs = Logs::begin();
    let done: Done = bench
        .client
        .post(ACTIONS, &enqueue(Some("two")))
        .await
        .good();
    assert_eq!(done.message, "v1 ConfigMap default/web is enqueued for two");
    let counted = || [0, 1].map(|at: usize| counts[at].load(Ordering::Relaxed));
    until(async || (counted() == [0, 1]).then_some(())).await;
    let done: Done = bench.client.post(ACTIONS, &enqueue(None)).await.good();
    assert_eq!(done.message, "v1 ConfigMap default/web is enqueued");
    until(async || (counted() == [1, 2]).then_some(())).await;
    let text = logs.text();
    let named = "v1 ConfigMap default/web was enqueued by the console";
    assert!(
        text.contains(named) && text.contains("system:anonymous"),
        "{text}"
    );
}

#[tokio::test]
async fn actions_are_off_until_the_program_allows_them() {
    let bench = Bench::new().await;
    bench.idle("log");
    let refused = bench
        .client
        .post(ACTIONS, &enqueue(None))
        .await
        .refused(403);
    assert!(refused.contains("Console::actions"), "{refused}");
    assert_eq!(bench.maps.status().unwrap().queue.adds, 0);
}

#[tokio::test]
async fn pages_of_other_origins_cannot_act() {
    let bench = Bench::with(|console, _| console.actions(true)).await;
    bench.idle("log");
    for (name, value) in [
        ("origin", "http://attacker.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let other = bench.client.with(name, value);
        let refused = other.post(ACTIONS, &enqueue(None)).await.refused(403);
        assert!(refused.contains("origin"), "{refused}");
    }
    // Types that a form can send without a preflight are refused.
    let body = serde_json::to_string(&enqueue(None)).unwrap();
    for content_type in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let form = bench.client.with("content-type", content_type);
        form.send(Method::POST, ACTIONS, &body).await.refused(415);
    }
    assert_eq!(bench.maps.status().unwrap().queue.adds, 0);
    let own = format!("http://{}", bench.server.address());
    let page = bench
        .client
        .with("origin", own)
        .with("sec-fetch-site", "same-origin");
    let _: Done = page.post(ACTIONS, &enqueue(None)).await.good();
}

#[tokio::test]
async fn a_body_that_is_no_action_is_refused() {
    let bench = Bench::with(|console, _| console.actions(true)).await;
    bench.idle("log");
    let send = async |body: &Json| bench.client.post(ACTIONS, body).await;
    let kind = json!({"context": "", "group": "", "version": "v1", "kind": "Pod"});
    let mut pod = kind.clone();
    pod["action"] = "enqueue".into();
    pod["key"] = "default/a".into();
    let mut bad_key = serde_json::to_value(enqueue(None)).unwrap();
    bad_key["key"] = "a/b/c".into();
    for (body, code, message) in [
        (
            json!({"action": "explode"}),
            400,
            "the body is not an action",
        ),
        (
            json!({"action": "enqueue"}),
            400,
            "the body is not an action",
        ),
        (json!([]), 400, "the body is not an action"),
        (pod, 404, "no controller of v1 Pod"),
        (bad_key, 400, "NAMESPACE/NAME"),
        (
            serde_json::to_value(enqueue(Some("x"))).unwrap(),
            404,
            "log",
        ),
        (
            json!({"action": "reset-guard", "context": "", "operator": "a", "reconcilers": ["b", "c"], "budgets": []}),
            404,
            "no guard of b, c in a with these budgets",
        ),
        (
            json!({"action": "log-filter", "filter": "info"}),
            409,
            "Console::log_filter",
        ),
    ] {
        let refused = send(&body).await.refused(code);
        assert!(refused.contains(message), "{body}: {refused}");
    }
    let large = json!({"action": "log-filter", "filter": "a".repeat(20_000)});
    send(&large).await.refused(413);
    // The message does not repeat values of the request.
    let secret = json!({"action": "log-filter", "filter": {"hunter2": "hunter2"}});
    let answer = send(&secret).await;
    answer.refused(400);
    assert!(!answer.text.contains("hunter2"), "{}", answer.text);
}

#[tokio::test]
async fn the_log_filter_is_changed() {
    let filter = Filter::default();
    filter.set_filter("info").unwrap();
    let given = filter.clone();
    let bench = Bench::with(|console, _| console.actions(true).log_filter(given)).await;
    let set = |filter: &str| Action::LogFilter {
        filter: filter.to_owned(),
    };
    let done: Done = bench
        .client
        .post(ACTIONS, &set("info,lariat_cache=debug"))
        .await
        .good();
    assert_eq!(done.message, "the log filter is info,lariat_cache=debug");
    assert_eq!(filter.filter(), "info,lariat_cache=debug");
    let overview: Overview = bench.client.get("/api/v1/overview").await.good();
    assert_eq!(
        overview.program.log_filter.as_deref(),
        Some("info,lariat_cache=debug")
    );
    assert!(overview.allowed.actions);
    let refused = bench.client.post(ACTIONS, &set("bad")).await.refused(400);
    assert!(refused.contains("bad is no level"), "{refused}");
}

#[tokio::test]
async fn a_handler_is_paused_and_called_again() {
    let bench = Bench::with(|console, _| console.actions(true)).await;
    bench.idle("log");
    bench.start().await;
    let pause = Action::Pause {
        kind: maps(),
        handler: "log".to_owned(),
    };
    let done: Done = bench.client.post(ACTIONS, &pause).await.good();
    assert_eq!(done.message, "log of v1 ConfigMap is paused");
    let done: Done = bench.client.post(ACTIONS, &pause).await.good();
    assert!(done.message.ends_with("already"), "{}", done.message);
    bench.create("web").await;
    let detail: ControllerDetail = until(async || {
        let detail: ControllerDetail = bench.client.get(MAPS).await.good();
        let mut keys = detail.queued.iter();
        let is_waiting = keys.any(|it| it.key == "default/web" && it.state == "waiting");
        is_waiting.then_some(detail)
    })
    .await;
    let handler = &detail.controller.handlers[0];
    assert_eq!(handler.blocked.as_deref(), Some("paused"));
    assert!(handler.waiting > 0);
    let queued = detail.queued.iter().find(|it| it.key == "default/web");
    let lane = &queued.expect("it is there").lanes[0];
    let waits = lane.waits_for.as_deref();
    assert_eq!((&*lane.handler, waits), ("log", Some("resume")));
    let key: KeyDetail = bench
        .client
        .get(&format!("{MAPS}/keys/default~web"))
        .await
        .good();
    assert_eq!(key.queued.expect("it waits").state, "waiting");
    let resume = Action::Resume {
        kind: maps(),
        handler: "log".to_owned(),
    };
    let done: Done = bench.client.post(ACTIONS, &resume).await.good();
    assert_eq!(done.message, "log of v1 ConfigMap is resumed");
    until(async || {
        let key: KeyDetail = bench
            .client
            .get(&format!("{MAPS}/keys/default~web"))
            .await
            .good();
        (!key.runs.is_empty() && key.queued.is_none()).then_some(())
    })
    .await;
    let unknown = Action::Pause {
        kind: maps(),
        handler: "x".to_owned(),
    };
    let refused = bench.client.post(ACTIONS, &unknown).await.refused(404);
    assert!(refused.contains("log"), "{refused}");
}

#[tokio::test]
async fn a_kind_is_read_again() {
    let bench = Bench::with(|console, _| console.actions(true)).await;
    bench.idle("log");
    let relist = Action::Relist { kind: maps() };
    let refused = bench.client.post(ACTIONS, &relist).await.refused(409);
    assert!(refused.contains("is not running"), "{refused}");
    bench.start().await;
    let done: Done = bench.client.post(ACTIONS, &relist).await.good();
    assert_eq!(done.message, "all objects of v1 ConfigMap are listed again");
    until(async || {
        let overview: Overview = bench.client.get("/api/v1/overview").await.good();
        (overview.caches[0].loads > 1).then_some(())
    })
    .await;
}

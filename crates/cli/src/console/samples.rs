//! Answers of a console, for tests.

use lariat_console::api::{ControllerDetail, KeyDetail, Overview};
use serde_json::{Value, json};

/// Returns a controller; `kind` has its group behind a dot.
fn controller(kind: &str, ready: usize, failing: usize) -> Value {
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    let quantiles = json!({"count": 100, "p50": 0.004, "p99": 0.128, "max": 3.5});
    let none = json!({"count": 0, "p50": 0.0, "p99": 0.0, "max": 0.0});
    let handler = |name: &str, failing: usize| {
        json!({
            "name": name, "blocked": null, "calls": 1200, "failures": failing * 3, "retries": failing, "exhausted": 0,
            "panics": 0, "timeouts": 0, "rate": 12.5, "failureRate": if failing > 0 { 0.3 } else { 0.0 },
            "time": quantiles, "lag": none, "waiting": 0, "failing": failing, "givenUp": failing / 2,
        })
    };
    let samples: Vec<Value> = (0..8)
        .map(|n| json!({"ready": n, "processing": 1, "calls": 3, "failures": 0}))
        .collect();
    json!({
        "context": "", "group": group, "version": "v1", "kind": kind, "phase": "synced", "workers": 5,
        "queue": {
            "ready": ready, "byPriority": [1, ready.saturating_sub(1), 0], "delayed": 3, "processing": 1, "adds": 5000,
            "retries": 17, "longest": 4.2, "wait": quantiles, "work": quantiles,
        },
        "handlers": [handler("deploy", 0), handler("status", failing)],
        "objects": 12000, "hotLoops": 0, "samples": samples,
    })
}

fn overview_json() -> Value {
    let cache = |kind: &str, group: &str, phase: &str, synced: bool| {
        json!({
            "context": "", "group": group, "version": "v1", "kind": kind, "phase": phase, "synced": synced,
            "stale": false, "blind": null, "loaded": null, "total": null, "objects": 12000, "bytes": 12_900_000, "policy": "packed",
            "decodes": 5, "resourceVersion": "4711", "loads": 1, "watches": 2, "reconnects": [["ended", 1]], "unreadable": 0,
            "lastReceived": 1.5, "lastError": null, "retryIn": null,
        })
    };
    json!({
        "program": {"name": "shop-operator", "version": "1.4.2", "started": "2026-11-24T08:00:00Z", "uptime": 14520.0,
            "now": "2026-11-24T12:02:00Z", "logFilter": null},
        "health": {"healthy": true, "ready": true, "checks": [
            {"name": "caches", "ok": true, "liveness": false, "readiness": true, "message": null},
            {"name": "handlers", "ok": true, "liveness": false, "readiness": true, "message": null},
        ]},
        "allowed": {"user": "local", "actions": false},
        "controllers": [
            controller("Deployment.apps", 12, 2),
            controller("Pod", 0, 0),
            controller("Shop.demo.dev", 2, 0),
        ],
        "caches": [
            cache("Deployment", "apps", "synced", true),
            cache("Pod", "", "listing, 400 of 20000", false),
            cache("Shop", "demo.dev", "synced", true),
        ],
        "leases": [{"context": "", "lease": "shops/shop-operator", "identity": "pod-0", "state": "leading",
            "holder": "pod-0", "epoch": 3, "acquired": 1, "renewals": 90, "slowRenewals": 0}],
        "shards": [], "guards": [], "hotLoops": [], "planned": null,
    })
}

fn read<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("the sample has the form of the API")
}

/// Returns the overview of a program of three controllers and a failing handler.
pub(crate) fn overview() -> Overview {
    read(overview_json())
}

/// Returns an overview that is not ready, with a tripped guard and a hot loop.
pub(crate) fn trouble() -> Overview {
    let mut json = overview_json();
    json["health"]["ready"] = false.into();
    json["health"]["checks"][1] = json!({"name": "handlers", "ok": false, "liveness": false, "readiness": true,
        "message": "deploy has been called for Deployment shop/web for 12m"});
    json["guards"] = json!([{"context": "", "operator": "shop", "reconcilers": ["shops"], "budgets": ["10 deletes in 60s"],
        "tripped": true, "reason": "an 11th delete within 60s", "refused": 4}]);
    json["hotLoops"] = json!([hot_loop()]);
    read(json)
}

fn hot_loop() -> Value {
    json!({
        "context": "", "group": "apps", "version": "v1", "kind": "Deployment", "key": "shop/web",
        "pattern": "two handlers write spec.replicas in turns", "handlers": ["deploy", "status"], "triggeredBy": null,
        "fields": ["spec.replicas"], "rounds": 12,
    })
}

fn queued(key: &str, state: &str) -> Value {
    json!({
        "key": key, "state": state, "priority": "high", "dueFor": 2.0, "lanes": [
            {"handler": "*", "dueIn": 0.0, "failures": 0},
            {"handler": "status", "dueIn": 8.0, "failures": 3},
        ],
    })
}

/// Returns the controller of Deployments, with a key in each state.
pub(crate) fn detail() -> ControllerDetail {
    let mut json = controller("Deployment.apps", 12, 2);
    json["inProgress"] = json!([{"key": "shop/web", "handler": "status", "lasts": 4.2}]);
    json["queued"] = json!([queued("shop/db", "ready"), queued("shop/cache", "delayed")]);
    json["queuedTotal"] = 412.into();
    json["slowest"] = json!([{"key": "shop/slow", "handler": "deploy", "took": 3.5, "at": "2026-11-24T12:00:00Z"}]);
    json["failingKeys"] = json!([{"key": "shop/bad", "handler": "status", "failures": 7,
        "error": "connection refused", "retryIn": 42.0}]);
    json["givenUpKeys"] =
        json!([{"key": "shop/gone", "handler": "deploy", "error": "no size", "ago": 7500.0}]);
    json["loops"] = json!([hot_loop()]);
    read(json)
}

/// Returns a run of the sample key.
fn run(number: u64, at: &str, causes: &Value) -> Value {
    let call = |handler: &str, ended: &str, failed: bool| {
        json!({"handler": handler, "ended": ended, "failed": failed, "took": if failed { 10.0 } else { 0.012 },
            "attempt": if failed { 3 } else { 1 }, "conflict": failed,
            "error": if failed { json!("connection refused") } else { Value::Null },
            "again": if failed { json!(8.0) } else { Value::Null }, "note": null})
    };
    json!({"run": number, "at": at, "ago": 120.0, "waited": 0.002, "took": 0.04, "causes": causes,
        "calls": [call("deploy", "done", false), call("status", "timed_out", true)]})
}

/// Returns a Deployment with two runs, one of which a Pod caused.
pub(crate) fn key() -> KeyDetail {
    let pod =
        json!({"context": "", "group": "", "version": "v1", "kind": "Pod", "key": "shop/web-1"});
    let mut by_run = pod.clone();
    by_run["run"] = 40.into();
    let causes = json!([
        {"what": "updated", "text": "updated 4700 → 4711", "fields": ["spec.replicas", "spec.template"],
            "handler": null, "link": null, "byRun": null},
        {"what": "enqueued", "text": "enqueued at src/a.rs:7", "fields": [], "handler": "pods", "link": pod,
            "byRun": by_run},
    ]);
    let added = json!([{"what": "added", "text": "added at 4700", "fields": [], "handler": null, "link": null,
        "byRun": null}]);
    let in_progress = json!({"key": "shop/web", "handler": "status", "lasts": 4.2});
    read(json!({
        "context": "", "group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web",
        "resourceVersion": "4711", "queued": queued("shop/web", "ready"), "inProgress": in_progress,
        "givenUp": [{"key": "shop/web", "handler": "deploy", "error": "no size", "ago": 7500.0}], "hotLoop": hot_loop(),
        "runs": [run(42, "2026-11-24T12:01:35.12Z", &causes), run(41, "2026-11-24T12:01:30Z", &added)],
    }))
}

/// Returns the Pod that caused a run of [`key`], with the runs around that one.
pub(crate) fn cause() -> KeyDetail {
    let updated = json!([{"what": "updated", "text": "updated 4690 → 4699", "fields": ["status.phase"],
        "handler": null, "link": null, "byRun": null}]);
    let mut runs = vec![
        run(43, "2026-11-24T12:01:36Z", &updated),
        run(40, "2026-11-24T12:01:34.9Z", &updated),
        run(39, "2026-11-24T12:01:20Z", &updated),
    ];
    for run in &mut runs {
        run["calls"] = json!([{"handler": "pods", "ended": "done", "failed": false, "took": 0.003, "attempt": 1,
            "conflict": false, "error": null, "again": null, "note": "2 of 3 pods"}]);
    }
    read(json!({
        "context": "", "group": "", "version": "v1", "kind": "Pod", "namespace": "shop", "name": "web-1",
        "resourceVersion": "4699", "queued": null, "inProgress": null, "givenUp": [], "hotLoop": null,
        "runs": runs,
    }))
}

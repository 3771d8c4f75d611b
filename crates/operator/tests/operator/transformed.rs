//! Tests of kinds with a transform that removes fields from the cache.

use lariat_cache::{KindOptions, Transform};
use lariat_controller::Outcome;
use lariat_operator::{ConditionUpdate, Reconcile};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time;

use kube::api::{Patch, PatchParams};

use crate::apply_rig::{Rig, config, service};
use crate::bench::{Bench, SECOND, Widget, WidgetStatus, key, settle};

fn dropping(path: &str) -> KindOptions {
    KindOptions::default().transform(Transform::drop([path]))
}

/// How a status is written.
#[derive(Debug, Clone, Copy)]
enum Way {
    Condition,
    Set,
    Apply,
    Report,
    /// As a type that requires the removed fields.
    Typed,
}

/// A status that always has conditions.
#[derive(Default, Serialize, Deserialize)]
struct Strict {
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<i64>,
    conditions: Vec<Value>,
}

/// Reconciles the Widget `a`, which has a condition of another writer, a few times.
async fn reconcile_often(dropped: &str, way: Way) -> Bench {
    let bench = Bench::new().await.caching(dropping(dropped));
    bench.create("a", 1).await;
    let foreign = json!({"type": "Foreign", "status": "True", "reason": "Is", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let mut status = json!({"conditions": [foreign]});
    if matches!(way, Way::Typed) {
        // An empty status would be the default.
        status["size"] = json!(0);
    }
    let status = Patch::Merge(json!({"status": status}));
    let params = PatchParams::default();
    let patched = bench.api.patch_status("a", &params, &status);
    patched.await.expect("patched");
    bench.cluster.journal().clear();
    let mut reconciler = bench.operator.reconciler("status", &bench.widgets);
    if matches!(way, Way::Report) {
        reconciler = reconciler.report_errors("Ready");
    }
    let registered = reconciler.register(move |cx: Reconcile<Widget>| async move {
        match way {
            Way::Condition => {
                let ready = ConditionUpdate::is_true("Ready", "Is");
                cx.set_condition(&ready).await.map(drop)?;
            }
            Way::Set => {
                let grow = |status: &mut WidgetStatus| status.size = Some(1);
                cx.update_status(grow).await.map(drop)?;
            }
            Way::Apply => {
                let size = json!({"size": 1});
                cx.status().by_apply().set(&size).await.map(drop)?;
            }
            Way::Typed => {
                let grow = |status: &mut Strict| status.size = Some(1);
                cx.update_status(grow).await.map(drop)?;
            }
            Way::Report => {}
        }
        Ok(Outcome::done())
    });
    registered.expect("registered");
    bench.start().await;
    settle().await;
    for _ in 0..3 {
        bench.widgets.enqueue(&key("a"));
        time::sleep(2 * SECOND).await;
    }
    bench
}

async fn status(bench: &Bench) -> Value {
    let widget = bench.get("a").await.expect("there");
    serde_json::to_value(widget.status).expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn what_a_cache_does_not_show_of_a_status_is_kept_and_not_written_again() {
    for dropped in ["/status/conditions", "/status"] {
        let ways = [
            Way::Condition,
            Way::Set,
            Way::Apply,
            Way::Report,
            Way::Typed,
        ];
        for way in ways {
            let bench = reconcile_often(dropped, way).await;
            let writes = bench.cluster.journal().select().verb("patch").count();
            assert_eq!(writes, 1, "{dropped} {way:?}");
            let status = status(&bench).await;
            assert_eq!(status["conditions"][0]["type"], "Foreign", "{status}");
            let since = &status["conditions"][0]["lastTransitionTime"];
            assert_eq!(since, "2026-01-01T00:00:00Z");
            match way {
                Way::Condition | Way::Report => {
                    assert_eq!(status["conditions"][1]["type"], "Ready", "{status}");
                }
                Way::Set | Way::Apply | Way::Typed => assert_eq!(status["size"], 1, "{status}"),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_transform_that_spares_the_status_costs_no_request() {
    let bench = reconcile_often("/spec/nothing", Way::Condition).await;
    let journal = bench.cluster.journal();
    assert_eq!(journal.select().verb("patch").count(), 1);
    assert_eq!(journal.count("get", "widgets"), 0);
}

#[tokio::test(start_paused = true)]
async fn kinds_that_a_cache_does_not_show_as_noted_are_pruned() {
    let mut rig = Rig::caching(dropping("/metadata/annotations")).await;
    rig.want([config("one", "1"), service("web", 80)]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.cluster().journal().clear();
    for _ in 0..3 {
        rig.kick().await;
    }
    assert_eq!(rig.writes("widgets"), 0, "it is noted once");
    rig.want([service("web", 80)]);
    rig.restart(true).await;
    assert!(rig.config_map("one").await.is_none());
    rig.kick().await;
    assert_eq!(rig.noted().await[0].1, "v1/Service");
    rig.apply([]).await;
    rig.kick().await;
    assert!(rig.last().unwrap().is_gone());
    assert_eq!(rig.noted().await.len(), 0);
}

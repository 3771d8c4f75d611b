//! Tests of statuses: written if they change, and never to another object.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cache::{Metadata, View};
use lariat_cluster::faults::{Action, Rule};
use lariat_controller::{HandlerResult, Outcome, SharedController};
use lariat_operator::{ConditionUpdate, Conditions, Reconcile, StatusError};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, WidgetSpec, WidgetStatus, hang_watches, key, settle};

fn sized(size: i64) -> WidgetStatus {
    WidgetStatus {
        size: Some(size),
        ..WidgetStatus::default()
    }
}

fn writes(bench: &Bench) -> usize {
    let all = bench.cluster.journal().select().verb("patch");
    all.subresource("status").count()
}

async fn status(bench: &Bench, name: &str) -> Value {
    let widget = bench.get(name).await.expect("it is there");
    serde_json::to_value(widget.status).expect("it is JSON")
}

/// Writes a status as another client.
pub(crate) async fn merge_status(bench: &Bench, status: Value) {
    let patch = Patch::Merge(json!({"status": status}));
    let params = PatchParams::default();
    let patched = bench.api.patch_status("a", &params, &patch);
    patched.await.expect("patched");
}

type ReconcileFn<K> = dyn Fn(Reconcile<K>) -> BoxFuture<'static, HandlerResult> + Send + Sync;

/// Registers a reconciler of a kind, and starts.
async fn run<K: View>(
    bench: &Bench,
    kind: &SharedController<K>,
    step: impl Fn(Reconcile<K>) -> BoxFuture<'static, HandlerResult> + Send + Sync + 'static,
) {
    let step: Arc<ReconcileFn<K>> = Arc::new(step);
    let registered = bench
        .operator
        .reconciler("status", kind)
        .register(move |cx| step(cx));
    registered.expect("registered");
    bench.start().await;
}

fn conditions(kinds: &[&str]) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for kind in kinds {
        let update = ConditionUpdate::is_true(kind, "Is");
        Conditions::set(&mut conditions, &update).expect("it is valid");
    }
    conditions
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_when_it_changes() {
    let bench = Bench::new().await;
    run(&bench, &bench.widgets, |cx| {
        async move {
            cx.set_status(&sized(cx.object().spec.size)).await?;
            Ok(Outcome::requeue_after(SECOND))
        }
        .boxed()
    })
    .await;
    bench.create("a", 1).await;
    time::sleep(60 * SECOND).await;
    assert_eq!(writes(&bench), 1);
    assert_eq!(status(&bench, "a").await, json!({"size": 1}));
    bench.resize("a", 2).await;
    time::sleep(60 * SECOND).await;
    assert_eq!(writes(&bench), 2);
    assert_eq!(status(&bench, "a").await["size"], 2);
    assert_eq!(bench.cluster.journal().count("get", "widgets"), 2, "ours");
}

#[tokio::test(start_paused = true)]
async fn the_second_write_of_a_reconcile_is_based_on_the_first() {
    let bench = Bench::new().await;
    run(&bench, &bench.widgets, |cx| {
        async move {
            if cx.object().status.is_none() {
                let before = cx.newest();
                let both = WidgetStatus {
                    conditions: conditions(&["Ready"]),
                    ..sized(1)
                };
                assert!(cx.set_status(&both).await?);
                assert!(!cx.set_status(&both).await?);
                assert_ne!(cx.newest().version(), before.version());
                assert_eq!(cx.raw().version(), before.version());
                // Fields that are not given are removed.
                assert!(cx.clone().set_status(&sized(2)).await?);
            }
            Ok(Outcome::done())
        }
        .boxed()
    })
    .await;
    bench.create("a", 1).await;
    settle().await;
    assert_eq!(writes(&bench), 2);
    assert_eq!(status(&bench, "a").await, json!({"size": 2}));
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_status_says_so() {
    let bench = Bench::new().await;
    let errors = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&errors);
    let maps = bench.factory.for_object::<ConfigMap>();
    run(&bench, &maps, move |cx| {
        let seen = Arc::clone(&seen);
        async move {
            if cx.key().name() == "a" {
                let error = cx.set_status(&sized(1)).await.unwrap_err();
                seen.lock().push(format!("{error:?}"));
                assert!(!error.is_not_found() && !error.is_conflict());
                let error = cx.set_status(&[1]).await.unwrap_err();
                seen.lock().push(format!("{error:?}"));
            }
            Ok(Outcome::done())
        }
        .boxed()
    })
    .await;
    let maps: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".to_owned());
    maps.create(&PostParams::default(), &map).await.unwrap();
    settle().await;
    let expected = [
        "v1 ConfigMap default/a has no status subresource; its CRD needs `subresources: \
         {status: {}}` in this version (with kube's derive: `#[kube(status = \"…\")]`)",
        "the status of v1 ConfigMap default/a cannot be written: it is not a JSON object",
    ];
    assert_eq!(*errors.lock(), expected);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_is_no_failure() {
    for again in [false, true] {
        let bench = Bench::new().await;
        let api = bench.api.clone();
        run(&bench, &bench.widgets, move |cx| {
            let api = api.clone();
            async move {
                if cx.object().spec.size == 1 {
                    api.delete("a", &DeleteParams::default()).await?;
                    if again {
                        let widget = Widget::new("a", WidgetSpec { size: 2 });
                        api.create(&PostParams::default(), &widget).await?;
                    }
                    cx.set_status(&sized(1)).await?;
                }
                Ok(Outcome::done())
            }
            .boxed()
        })
        .await;
        bench.create("a", 1).await;
        time::sleep(60 * SECOND).await;
        let runs = bench.widgets.history_of(&key("a"));
        let calls: Vec<_> = runs.iter().flat_map(|run| &run.calls).collect();
        let errors = calls.iter().filter_map(|call| call.error.as_deref());
        let text =
            "cannot write the status of demo.dev/v1 Widget default/a: the object no longer exists";
        assert_eq!(errors.collect::<Vec<_>>(), [text]);
        assert!(calls.iter().all(|call| call.requeue_after.is_none()));
        let widget = bench.get("a").await;
        assert_eq!(widget.is_some(), again);
        assert!(widget.is_none_or(|widget| widget.status.is_none()));
    }
}

#[tokio::test(start_paused = true)]
async fn what_others_write_meanwhile_is_kept() {
    let bench = Bench::new().await;
    hang_watches(&bench, "widgets");
    bench.create("a", 1).await;
    let results = Arc::new(Mutex::new(Vec::new()));
    let (seen, armed) = (Arc::clone(&results), Arc::new(AtomicBool::new(false)));
    let is_armed = Arc::clone(&armed);
    run(&bench, &bench.widgets, move |cx| {
        let (seen, armed) = (Arc::clone(&seen), is_armed.swap(false, Ordering::Relaxed));
        async move {
            if armed {
                let stale = cx
                    .status()
                    .unchanged_only()
                    .set(&sized(9))
                    .await
                    .unwrap_err();
                assert!(stale.is_conflict());
                seen.lock()
                    .push(lariat_controller::HandlerError::from(stale).is_conflict());
                let changed = cx
                    .update_status(|status: &mut WidgetStatus| {
                        status.size = Some(4);
                    })
                    .await?;
                seen.lock().push(changed);
                let ours = ConditionUpdate::is_false("Ours", "IsNot");
                let set = cx.set_condition(&ours).await?;
                seen.lock().push(set);
                let set = cx.set_condition(&ours).await?;
                seen.lock().push(set);
            }
            Ok(Outcome::done())
        }
        .boxed()
    })
    .await;
    time::sleep(5 * SECOND).await;
    armed.store(true, Ordering::Relaxed);
    let theirs = conditions(&["Theirs"]);
    merge_status(&bench, json!({"size": 3, "conditions": theirs})).await;
    bench.widgets.enqueue(&key("a"));
    settle().await;
    assert_eq!(*results.lock(), [true, true, true, false]);
    let status = bench.get("a").await.unwrap().status.unwrap();
    assert_eq!(status.size, Some(4));
    let kinds: Vec<&str> = status.conditions.iter().map(|each| &*each.type_).collect();
    assert_eq!(kinds, ["Theirs", "Ours"]);
    assert_eq!(status.conditions[0], theirs[0]);
    assert_eq!(status.conditions[1].observed_generation, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_few_conflicts_are_over_at_once() {
    let bench = Bench::new().await;
    let rule = Rule::new(Action::Conflict).subresource("status").times(4);
    bench.cluster.faults().add(rule);
    run(&bench, &bench.widgets, |cx| {
        async move {
            cx.set_status(&sized(1)).await?;
            Ok(Outcome::done())
        }
        .boxed()
    })
    .await;
    bench.create("a", 1).await;
    settle().await;
    assert_eq!(
        (writes(&bench), status(&bench, "a").await["size"].clone()),
        (5, json!(1))
    );
    let runs = bench.widgets.history();
    assert!(
        runs.iter()
            .flat_map(|run| &run.calls)
            .all(|call| call.error.is_none())
    );
}

#[tokio::test(start_paused = true)]
async fn applied_fields_are_owned_and_those_of_others_left_alone() {
    let bench = Bench::new().await;
    let errors = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&errors);
    run(&bench, &bench.widgets, move |cx| {
        let seen = Arc::clone(&seen);
        async move {
            let (size, writer) = (cx.object().spec.size, cx.status().by_apply());
            let written = match size {
                0 => writer.set(&json!({})).await,
                9 => writer.by_force().set(&sized(size)).await,
                _ => writer.set(&sized(size)).await,
            };
            match written {
                Err(StatusError::Api(error)) => seen.lock().push(lariat_core::describe(&error)),
                written => drop(written?),
            }
            Ok(Outcome::requeue_after(SECOND))
        }
        .boxed()
    })
    .await;
    bench.create("a", 1).await;
    time::sleep(10 * SECOND).await;
    assert_eq!(writes(&bench), 1, "the same is not applied again");
    bench.resize("a", 0).await;
    time::sleep(10 * SECOND).await;
    assert!(status(&bench, "a").await["size"].is_null());
    assert_eq!(writes(&bench), 2);
    let fields = json!({"apiVersion": "demo.dev/v1", "kind": "Widget", "status": {"size": 5}});
    let (params, patch) = (PatchParams::apply("others"), Patch::Apply(fields));
    bench.api.patch_status("a", &params, &patch).await.unwrap();
    assert_eq!(errors.lock().len(), 0);
    bench.resize("a", 7).await;
    settle().await;
    assert!(
        errors.lock().iter().all(|error| error.contains("others")),
        "{errors:?}"
    );
    assert!(!errors.lock().is_empty());
    assert_eq!(status(&bench, "a").await, json!({"size": 5}));
    bench.resize("a", 9).await;
    settle().await;
    assert_eq!(status(&bench, "a").await, json!({"size": 9}));
}

#[tokio::test(start_paused = true)]
async fn a_status_can_be_written_of_metadata() {
    let bench = Bench::new().await;
    let metadata = bench.widgets.view::<Metadata>();
    run(&bench, &metadata, |cx| {
        async move {
            cx.set_status(&json!({"size": 4})).await?;
            Ok(Outcome::done())
        }
        .boxed()
    })
    .await;
    bench.create("a", 1).await;
    settle().await;
    assert_eq!(
        (writes(&bench), status(&bench, "a").await),
        (1, json!({"size": 4}))
    );
}

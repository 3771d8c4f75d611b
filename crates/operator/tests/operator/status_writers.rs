//! Tests of statuses with several writers: reconcilers of one operator, and its earlier releases.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{CustomResource, CustomResourceExt};
use lariat_controller::{HandlerError, Outcome, SharedControllerFactory};
use lariat_operator::{CrdOptions, Desired, Operator, Reconcile, StatusError, ensure_crds};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time;

use crate::apply_rig::config;
use crate::bench::{Bench, SECOND, Widget, settle};
use crate::status_reports::{ready, text, writes};

/// The spec of a Shop: the number of ConfigMaps, and whether reconciling fails.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "demo.dev", version = "v1", kind = "Shop", namespaced)]
#[kube(status = "ShopStatus", derive = "Default", derive = "PartialEq")]
struct ShopSpec {
    configs: i64,
    fails: bool,
}

/// The status of a Shop; its CRD has a default, as types with `#[serde(default)]` have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct ShopStatus {
    #[serde(default)]
    configs: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
}

fn condition(kind: &str) -> Value {
    json!({
        "type": kind, "status": "True", "reason": "Is", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// Registers a reconciler of Widgets that applies a status.
fn applies(bench: &Bench, name: &str, status: impl Fn(i64) -> Value + Send + Sync + 'static) {
    let registered =
        bench
            .operator
            .reconciler(name, &bench.widgets)
            .register(move |cx: Reconcile<Widget>| {
                let status = status(cx.object().spec.size);
                async move {
                    cx.status().by_apply().set(&status).await?;
                    Ok(Outcome::done())
                }
            });
    registered.expect("registered");
}

async fn status(bench: &Bench) -> Value {
    let widget = bench.get("a").await.expect("there");
    serde_json::to_value(widget.status).expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn two_reconcilers_that_apply_a_status_do_not_remove_each_other_s_fields() {
    let bench = Bench::new().await;
    applies(&bench, "sizes", |size| json!({"size": size}));
    applies(
        &bench,
        "conditions",
        |_| json!({"conditions": [condition("Ready")]}),
    );
    bench.start().await;
    bench.create("a", 1).await;
    time::sleep(3600 * SECOND).await;
    let both = |size: i64| json!({"size": size, "conditions": [condition("Ready")]});
    assert_eq!(status(&bench).await, both(1));
    // The one that applies first applies again, since another writer has changed the status.
    assert_eq!(writes(&bench), 3);
    bench.resize("a", 2).await;
    time::sleep(60 * SECOND).await;
    assert_eq!(status(&bench).await, both(2));
    let writes_before = writes(&bench);
    assert!(writes_before <= 6, "{writes_before}");
    bench.widgets.enqueue_key("default/a").expect("a key");
    time::sleep(60 * SECOND).await;
    assert_eq!(writes(&bench), writes_before, "nothing changes any more");
    let managers = managers(&bench).await;
    let own = ["widgeteer/conditions Apply", "widgeteer/sizes Apply"];
    assert_eq!(managers, own);
}

/// Returns the managers of fields of the status.
async fn managers(bench: &Bench) -> Vec<String> {
    let fields = bench.get("a").await.expect("there").metadata.managed_fields;
    let of_status = fields
        .into_iter()
        .flatten()
        .filter(|entry| entry.subresource.as_deref() == Some("status"));
    let name = |text: Option<String>| text.unwrap_or_default();
    let mut managers: Vec<String> = of_status
        .map(|entry| format!("{} {}", name(entry.manager), name(entry.operation)))
        .collect();
    managers.sort();
    managers
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_set_whole_keeps_the_conditions_of_other_reconcilers() {
    for applies_it in [false, true] {
        let bench = Bench::new().await;
        bench
            .operator
            .reconciler("sizes", &bench.widgets)
            .register(move |cx: Reconcile<Widget>| async move {
                let size = cx.object().spec.size;
                if applies_it {
                    // Each apply replaces the list whole.
                    let own = json!({"size": size, "conditions": [condition("Sized")]});
                    cx.status().by_apply().set(&own).await?;
                } else {
                    cx.set_status(&json!({"size": size})).await?;
                }
                Ok(Outcome::done())
            })
            .unwrap();
        bench
            .operator
            .reconciler("reports", &bench.widgets)
            .report_errors("Ready")
            .register(|cx: Reconcile<Widget>| async move {
                match cx.object().spec.size {
                    2 => Err(HandlerError::terminal("too big")),
                    _ => Ok(Outcome::done()),
                }
            })
            .unwrap();
        bench.start().await;
        bench.create("a", 1).await;
        for (size, expected) in [
            (1, "True Reconciled \"\" Some(1)"),
            (2, "False ReconcileError \"too big\" Some(2)"),
            (3, "True Reconciled \"\" Some(3)"),
        ] {
            if size > 1 {
                bench.resize("a", size).await;
            }
            time::sleep(3600 * SECOND).await;
            assert_eq!(text(ready(&bench).await), expected, "{applies_it}");
            assert_eq!(status(&bench).await["size"], size);
            // Each writes its own, and applies the list once more where it has changed.
            let most = usize::try_from(3 * size).unwrap();
            assert!(
                writes(&bench) <= most,
                "{applies_it} {size}: {}",
                writes(&bench)
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_release_applied_is_taken_over_and_removed_when_it_is_not_wanted() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    // One field manager for all.
    let fields = json!({"size": 9, "conditions": [condition("Old")]});
    let fields = json!({"apiVersion": "demo.dev/v1", "kind": "Widget", "status": fields});
    let (params, patch) = (PatchParams::apply("widgeteer"), Patch::Apply(fields));
    bench.api.patch_status("a", &params, &patch).await.unwrap();
    bench.cluster.journal().clear();
    applies(&bench, "sizes", |size| json!({"size": size}));
    bench.start().await;
    time::sleep(60 * SECOND).await;
    assert_eq!(status(&bench).await, json!({"size": 1}));
    assert_eq!(managers(&bench).await, ["widgeteer/sizes Apply"]);
    let patches = writes(&bench);
    assert_eq!(patches, 3, "refused, taken, and given up");
    bench.resize("a", 2).await;
    time::sleep(60 * SECOND).await;
    assert_eq!(status(&bench).await, json!({"size": 2}));
    assert_eq!(writes(&bench), patches + 1);
}

#[tokio::test(start_paused = true)]
async fn a_field_that_another_reconciler_applies_is_a_conflict() {
    let bench = Bench::new().await;
    applies(&bench, "one", |_| json!({"size": 1}));
    let errors = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&errors);
    bench
        .operator
        .reconciler("two", &bench.widgets)
        .register(move |cx: Reconcile<Widget>| {
            let seen = Arc::clone(&seen);
            async move {
                match cx.status().by_apply().set(&json!({"size": 2})).await {
                    Err(StatusError::Api(error)) => seen.lock().push(lariat_core::describe(&error)),
                    written => drop(written?),
                }
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    time::sleep(60 * SECOND).await;
    assert_eq!(status(&bench).await, json!({"size": 1}));
    let errors = errors.lock();
    assert!(!errors.is_empty());
    assert!(
        errors.iter().all(|error| error.contains("widgeteer/one")),
        "{errors:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn defaults_that_came_with_a_reported_error_do_not_keep_a_status_from_being_applied() {
    let bench = Bench::new().await;
    let options = CrdOptions::default();
    let installed = ensure_crds(&bench.cluster.client(), &[Shop::crd()], &options).await;
    installed.unwrap();
    let shops = bench.factory.for_object::<Shop>();
    bench
        .operator
        .reconciler("shops", &shops)
        .report_errors("Ready")
        .register(|cx: Reconcile<Shop>| async move {
            let spec = &cx.object().spec;
            if spec.fails {
                return Err(HandlerError::terminal("not yet"));
            }
            let status = json!({"configs": spec.configs});
            cx.status().by_apply().set(&status).await?;
            Ok(Outcome::done())
        })
        .unwrap();
    bench.start().await;
    let api: Api<Shop> = Api::namespaced(bench.cluster.client(), "default");
    let (configs, fails) = (3, true);
    let shop = Shop::new("a", ShopSpec { configs, fails });
    api.create(&PostParams::default(), &shop).await.unwrap();
    settle().await;
    let status = api.get("a").await.unwrap().status.unwrap();
    assert_eq!(status.configs, 0, "the default is there, and has an owner");
    assert_eq!(status.conditions[0].reason, "ReconcileError");
    for configs in [3, 4] {
        let patch = Patch::Merge(json!({"spec": {"fails": false, "configs": configs}}));
        api.patch("a", &PatchParams::default(), &patch)
            .await
            .unwrap();
        time::sleep(60 * SECOND).await;
        let status = api.get("a").await.unwrap().status.unwrap();
        assert_eq!(status.configs, configs);
        assert_eq!(status.conditions[0].reason, "Reconciled");
    }
    let refused = bench
        .cluster
        .journal()
        .select()
        .subresource("status")
        .requests()
        .into_iter()
        .filter(|request| {
            let code = request.code.map(|code| code.as_u16());
            code == Some(409)
        });
    assert_eq!(refused.count(), 1, "the default is taken once");
}

#[tokio::test(start_paused = true)]
async fn what_the_operator_notes_on_an_object_is_no_change_of_it() {
    let bench = Bench::new().await;
    let results = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&results);
    bench
        .operator
        .reconciler("applies", &bench.widgets)
        .register(move |cx: Reconcile<Widget>| {
            let seen = Arc::clone(&seen);
            async move {
                cx.apply(Desired::new().with_value(config("web", "1")))
                    .await?;
                let writer = cx.status().unchanged_only();
                let written = writer.set(&json!({"size": cx.object().spec.size})).await;
                seen.lock().push(written.is_ok());
                written?;
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    assert_eq!(status(&bench).await, json!({"size": 1}));
    assert!(results.lock().iter().all(|is_ok| *is_ok), "{results:?}");
}

/// Both apply under the same field manager; the first one goes on after the other.
#[tokio::test(start_paused = true)]
async fn field_that_another_process_has_applied_is_removed_when_the_first_goes_on() {
    let bench = Bench::new().await;
    applies(&bench, "sizes", |size| json!({"size": size}));
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    bench.operator.stop().await.expect("nothing hangs");
    let factory = SharedControllerFactory::builder(bench.cluster.client()).build();
    let other = Operator::new("widgeteer", &factory);
    let widgets = factory.for_object::<Widget>();
    let registered =
        other
            .reconciler("sizes", &widgets)
            .register(|cx: Reconcile<Widget>| async move {
                let status = json!({"size": 1, "conditions": [condition("More")]});
                cx.status().by_apply().set(&status).await?;
                Ok(Outcome::done())
            });
    drop(registered.expect("the name is free"));
    other.start(1).await.expect("started");
    settle().await;
    other.stop().await.expect("nothing hangs");
    let more = status(&bench).await;
    assert!(more.get("conditions").is_some(), "{more}");
    bench.start().await;
    settle().await;
    assert_eq!(status(&bench).await, json!({"size": 1}));
}

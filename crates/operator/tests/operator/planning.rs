//! Tests of operators that only plan.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lariat_cache::WriteVerb;
use lariat_cluster::testing::secret;
use lariat_controller::{HandlerOptions, HandlerResult, Outcome, Predicate};
use lariat_operator::{Budget, Desired, Event, Guard, Operator, Plan, Reconcile};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, Widget, settle};

/// Registers a reconciler of Widgets with an operator that only plans.
pub(crate) fn plan<F, Fut>(bench: &Bench, reconcile: F) -> Operator
where
    F: Fn(Reconcile<Widget>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult> + Send + 'static,
{
    let operator = bench.operator.clone().plan_only();
    let reconciler = operator.reconciler("planner", &bench.widgets);
    reconciler.register(reconcile).expect("registered");
    operator
}

/// Returns the planned writes, one line each.
pub(crate) fn lines(plan: &Plan) -> Vec<String> {
    plan.to_string().lines().map(ToOwned::to_owned).collect()
}

fn config_map(value: &serde_json::Value) -> ConfigMap {
    serde_json::from_value(value.clone()).expect("it is one")
}

/// Makes every kind of write.
async fn writes_all(cx: Reconcile<Widget>) -> HandlerResult {
    if cx.key().name() != "a" {
        return Ok(Outcome::done());
    }
    let widgets: Api<Widget> = Api::namespaced(cx.client(), "default");
    let config_maps: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
    let (params, all) = (PatchParams::default(), ListParams::default());
    let size = Patch::Merge(json!({"spec": {"size": 7}}));
    widgets.patch("a", &params, &size).await?;
    let status = Patch::Merge(json!({"status": {"size": 7}}));
    widgets.patch_status("a", &params, &status).await?;
    let mut widget = Widget::clone(cx.object());
    widget.metadata.labels = Some([("x.y/z".to_owned(), "1".to_owned())].into());
    widgets
        .replace("a", &PostParams::default(), &widget)
        .await?;
    widgets.delete("b", &DeleteParams::default()).await?;
    widgets
        .delete_collection(&DeleteParams::default(), &all)
        .await?;
    let new = json!({"metadata": {"name": "new"}, "data": {"k": "v"}});
    config_maps
        .create(&PostParams::default(), &config_map(&new))
        .await?;
    let applied = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"k": "v"},
    });
    let apply = PatchParams::apply("planner");
    config_maps
        .patch("applied", &apply, &Patch::Apply(applied))
        .await?;
    Ok(Outcome::done())
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_and_everything_is_planned() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    bench.create("b", 1).await;
    let operator = plan(&bench, writes_all);
    let before = bench.api.list(&ListParams::default()).await.unwrap();
    bench.start().await;
    time::sleep(Duration::from_secs(600)).await;
    let after = bench.api.list(&ListParams::default()).await.unwrap();
    assert_eq!(before.items, after.items);
    assert_eq!(
        before.metadata.resource_version,
        after.metadata.resource_version
    );
    assert_eq!(bench.widgets.cache().len(), 2);
    insta::assert_snapshot!(operator.planned());
    assert_eq!(operator.take_planned().len(), 7);
    assert!(operator.planned().is_empty());
    assert_eq!(operator.planned().to_string(), "nothing would be written\n");
}

#[tokio::test(start_paused = true)]
async fn event_is_logged_by_operator_that_only_plans() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    let operator = plan(&bench, |cx| async move {
        cx.event(Event::normal("Scaled", "scaled to 3 pods"));
        Ok(Outcome::done())
    });
    bench.start().await;
    settle().await;
    assert_eq!(bench.writes(), (0, 0));
    let events = operator.events();
    assert_eq!((events.status().sent, events.status().queued), (0, 0));
    bench.say("web", "made by hand");
    settle().await;
    assert_eq!(bench.writes(), (0, 0));
    assert!(operator.planned().is_empty());
}

#[tokio::test(start_paused = true)]
async fn values_of_secrets_are_not_shown() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    let created = secret("old", &[("password", "geheim-1")]);
    created.create(&bench.cluster.client()).await.unwrap();
    let secrets = bench.factory.for_object::<Secret>();
    let cache = secrets.cache();
    let operator = plan(&bench, move |cx| {
        let cache = cache.clone();
        async move {
            cache.synced().await;
            let api: Api<Secret> = Api::namespaced(cx.client(), "default");
            let new = secret("new", &[("password", "geheim-2")]).to();
            api.create(&PostParams::default(), &new).await?;
            let patch = Patch::Merge(json!({"stringData": {"password": "geheim-3"}}));
            api.patch("old", &PatchParams::default(), &patch).await?;
            let bad = Patch::Merge(json!({"data": {"password": "geheim-4"}}));
            let refused = api.patch("old", &PatchParams::default(), &bad).await;
            refused.expect_err("it is not base64");
            Ok(Outcome::done())
        }
    });
    bench.start().await;
    settle().await;
    let plan = operator.planned();
    let text = plan.to_string();
    assert!(
        text.contains("data.password: (hidden) → (hidden)"),
        "{text}"
    );
    assert!(text.contains("data.password: (none) → (hidden)"), "{text}");
    assert_eq!(
        plan.iter()
            .filter(|write| write.refused().is_some())
            .count(),
        1
    );
    for each in [text, format!("{plan:?}")] {
        // In plain text, and in base64.
        assert!(
            !each.contains("geheim") && !each.contains("Z2VoZWlt"),
            "{each}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_to_what_is_only_planned_is_refused_and_not_tried_again_hotly() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let operator = plan(&bench, move |cx| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
            let new = config_map(&json!({"metadata": {"generateName": "new-"}}));
            let created = api.create(&PostParams::default(), &new).await?;
            assert!(created.metadata.name.is_some());
            let patch = Patch::Merge(json!({"data": {"k": "v"}}));
            api.patch("new", &PatchParams::default(), &patch).await?;
            Ok(Outcome::done())
        }
    });
    bench.start().await;
    time::sleep(Duration::from_secs(60)).await;
    let calls = calls.load(Ordering::Relaxed);
    assert!((2..30).contains(&calls), "{calls}");
    let plan = operator.planned();
    let [created, patched] = [0, 1].map(|at| plan.iter().nth(at).expect("planned").clone());
    assert_eq!(plan.len(), 2, "{plan}");
    assert_eq!(created.key().unwrap().to_string(), "default/new-*");
    assert_eq!(created.times(), calls as u64);
    assert_eq!(
        (patched.verb(), patched.times()),
        (WriteVerb::Patch, calls as u64)
    );
    assert!(patched.refused().unwrap().starts_with("404"), "{patched}");
    let left = Api::<ConfigMap>::namespaced(bench.cluster.client(), "default");
    let labels = left.list(&ListParams::default()).await.unwrap();
    assert!(
        labels
            .items
            .iter()
            .all(|each| each.metadata.name.as_deref() != Some("new"))
    );
}

#[tokio::test(start_paused = true)]
async fn plan_covers_handlers_of_all_operators_of_the_factory() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    let operator = plan(&bench, |_| async { Ok(Outcome::done()) });
    let other = Operator::new("other", &bench.factory);
    let label = |cx: Reconcile<Widget>| async move {
        let api: Api<Widget> = Api::namespaced(cx.client(), "default");
        let patch = Patch::Merge(json!({"metadata": {"labels": {"was": "here"}}}));
        api.patch("a", &PatchParams::default(), &patch).await?;
        Ok(Outcome::done())
    };
    other
        .reconciler("other", &bench.widgets)
        .register(label)
        .unwrap();
    bench.start().await;
    settle().await;
    assert!(bench.get("a").await.unwrap().metadata.labels.is_none());
    assert_eq!(operator.planned().len(), 1, "{}", operator.planned());
    assert!(other.planned().is_empty());
}

#[tokio::test(start_paused = true)]
async fn reconcilers_that_were_registered_before_only_plan_too_and_guards_are_not_asked() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    let guard = Guard::new().writes(Budget::rate(0, Duration::MAX));
    let reap = |cx: Reconcile<Widget>| async move {
        let api: Api<Widget> = Api::namespaced(cx.client(), "default");
        api.delete("a", &DeleteParams::default()).await?;
        let dry_run = DeleteParams::default().dry_run();
        api.delete("a", &dry_run).await?;
        Ok(Outcome::done())
    };
    let reconciler = bench.operator.reconciler("reaper", &bench.widgets);
    reconciler.guard(guard.clone()).register(reap).unwrap();
    let operator = bench.operator.clone().plan_only();
    bench.start().await;
    settle().await;
    assert!(bench.get("a").await.is_some());
    assert!(!guard.state().is_tripped());
    let plan = operator.planned();
    assert_eq!(plan.len(), 1, "{plan}");
    let write = plan.iter().next().unwrap();
    assert_eq!(
        (write.reconciler(), write.verb()),
        (Some("reaper"), WriteVerb::Delete)
    );
    let (_, key) = write.reconciled().expect("it was made in a call");
    assert_eq!(key.to_string(), "default/a");
}

#[tokio::test(start_paused = true)]
async fn what_comes_up_again_is_listed_once_and_counted() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    let operator = bench.operator.clone().plan_only();
    let apply = |cx: Reconcile<Widget>| async move {
        let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
        let apply = PatchParams::apply("planner");
        api.patch("x", &apply, &Patch::Apply(object)).await?;
        Ok(Outcome::done())
    };
    let options = HandlerOptions::default().only(Predicate::generation_changed());
    let reconciler = operator
        .reconciler("planner", &bench.widgets)
        .options(options);
    reconciler.register(apply).unwrap();
    bench.start().await;
    settle().await;
    bench.resize("a", 2).await;
    settle().await;
    let plan = operator.planned();
    assert_eq!(plan.len(), 1, "{plan}");
    assert_eq!(plan.iter().next().unwrap().times(), 2);
    assert!(plan.to_string().contains("default/x, 2 times\n"), "{plan}");
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_only_planned_is_planned_again() {
    let bench = Bench::new().await;
    let config_maps = bench.factory.for_object::<ConfigMap>();
    let value = Arc::new(AtomicUsize::new(1));
    let results: Arc<Mutex<Vec<String>>> = Arc::default();
    let (wanted, notes) = (Arc::clone(&value), Arc::clone(&results));
    let applies = move |cx: Reconcile<Widget>| {
        let (value, notes) = (wanted.load(Ordering::Relaxed), Arc::clone(&notes));
        async move {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"},
                "data": {"value": value.to_string()}});
            let applied = cx.apply(Desired::new().with_value(object)).await?;
            notes.lock().push(applied.to_string());
            Ok(Outcome::done())
        }
    };
    let reconciler = bench
        .operator
        .reconciler("applies", &bench.widgets)
        .owns(&config_maps);
    reconciler.register(applies).unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    let operator = bench.operator.clone().plan_only();
    value.store(2, Ordering::Relaxed);
    results.lock().clear();
    for _ in 0..2 {
        bench.widgets.enqueue(&crate::bench::key("a"));
        settle().await;
        let plan = operator.take_planned();
        assert_eq!(plan.len(), 1, "{plan}");
        assert!(plan.to_string().contains("→ \"2\""), "{plan}");
    }
    assert_eq!(*results.lock(), ["1 changed", "1 changed"]);
    value.store(1, Ordering::Relaxed);
    bench.widgets.enqueue(&crate::bench::key("a"));
    settle().await;
    assert!(operator.take_planned().is_empty());
    assert_eq!(results.lock().last().unwrap(), "1 unchanged");
}

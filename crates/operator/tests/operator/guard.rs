//! Tests of guards: which writes they refuse, and which they admit.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lariat_cluster::faults::{Action, Rule};
use lariat_controller::{Context, HandlerError, HandlerOptions, HandlerResult, Outcome};
use lariat_operator::{Budget, CachedApi, Guard, GuardError, Reconcile};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, settle};

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// The errors of writes.
#[derive(Clone, Default)]
pub(crate) struct Errors(Arc<Mutex<Vec<String>>>);

impl Errors {
    /// Records the error of a write; returns whether there was one.
    pub(crate) fn note<T>(&self, result: Result<T, kube::Error>) -> bool {
        let Err(error) = result else {
            return false;
        };
        assert!(GuardError::find(&error).is_some(), "{error}");
        self.0.lock().push(HandlerError::from(error).to_string());
        true
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Deletes the object it is called for.
pub(crate) async fn reap(cx: Reconcile<Widget>) -> HandlerResult {
    let api: Api<Widget> = Api::namespaced(cx.client(), "default");
    api.delete(cx.key().name(), &DeleteParams::default())
        .await?;
    Ok(Outcome::done())
}

pub(crate) async fn with_widgets(count: usize) -> Bench {
    let bench = Bench::new().await;
    for number in 0..count {
        bench.create(&format!("w{number:02}"), 1).await;
    }
    bench
}

/// Registers a reconciler that deletes everything.
pub(crate) fn register_reaper(bench: &Bench, name: &str, guard: &Guard) {
    let reconciler = bench.operator.reconciler(name, &bench.widgets);
    let registered = reconciler.guard(guard.clone()).register(reap);
    registered.expect("registered");
}

pub(crate) async fn left(bench: &Bench) -> usize {
    let list = bench.api.list(&ListParams::default()).await;
    list.expect("listed").items.len()
}

/// Registers a reconciler that runs this once, for the Widget `a`, and starts.
pub(crate) async fn run_once<F, Fut>(bench: &Bench, guard: &Guard, run: F)
where
    F: Fn(Reconcile<Widget>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    bench.create("a", 1).await;
    let run = move |cx| {
        let running = run(cx);
        async move {
            running.await;
            Ok(Outcome::done())
        }
    };
    let reconciler = bench
        .operator
        .reconciler("once", &bench.widgets)
        .guard(guard.clone());
    let options =
        HandlerOptions::default().only(lariat_controller::Predicate::generation_changed());
    reconciler
        .options(options)
        .register(run)
        .expect("registered");
    bench.start().await;
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_deletes_everything_is_stopped_and_others_go_on() {
    let bench = with_widgets(20).await;
    let guard = Guard::new().deletes(Budget::rate(5, MINUTE));
    register_reaper(&bench, "reaper", &guard);
    let marks = |cx: Reconcile<Widget>| async move {
        let api: Api<Widget> = Api::namespaced(cx.client(), "default");
        let patch = Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
        let params = PatchParams::default();
        // It may have been deleted meanwhile.
        let _ = api.patch(cx.key().name(), &params, &patch).await;
        Ok(Outcome::done())
    };
    let other = bench.operator.reconciler("marker", &bench.widgets);
    other.register(marks).unwrap();
    bench.start().await;
    time::sleep(10 * MINUTE).await;
    assert_eq!(bench.cluster.journal().count("delete", "widgets"), 5);
    assert_eq!(left(&bench).await, 15);
    let marked = ListParams::default().labels("seen=yes");
    assert_eq!(bench.api.list(&marked).await.unwrap().items.len(), 15);
    let state = guard.state();
    let trip = state.trip().expect("it has tripped");
    assert!(trip.refused() >= 15, "{state}");
    // Each is retried every minute, and once more because of its label.
    assert!(trip.refused() <= 15 * 12, "{state}");
    assert!(trip.reason().contains("deletions, 5 per 60s"), "{state}");
}

#[tokio::test(start_paused = true)]
async fn the_error_says_who_refused_what_and_why() {
    let bench = Bench::new().await;
    let (errors, guard) = (
        Errors::default(),
        Guard::new().deletes(Budget::rate(0, MINUTE)),
    );
    let noted = errors.clone();
    run_once(&bench, &guard, move |cx| {
        let noted = noted.clone();
        async move {
            let api: Api<Widget> = Api::namespaced(cx.client(), "default");
            noted.note(api.delete("a", &DeleteParams::default()).await);
        }
    })
    .await;
    let write = "delete demo.dev/v1 Widget default/a";
    let expected = format!(
        "the guard of handler once refused to {write}: the budget of deletions, 0 per 60s, is used up: \
         0 of 0 when asked to {write}; tripped until it is reset"
    );
    let errors = errors.take();
    assert!(errors[0].ends_with(&expected), "{errors:?}");
    assert_eq!(errors.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_client_of_the_factory_gets_past_it() {
    let bench = Bench::new().await;
    let (errors, guard) = (
        Errors::default(),
        Guard::new().writes(Budget::rate(0, MINUTE)),
    );
    let identity = lariat_cache::ClientIdentity::default().user_agent("other/1");
    let clients = bench.factory.caches().clients();
    let clients = [clients.client(), clients.client_as(identity).unwrap()];
    let cached = CachedApi::new(&bench.widgets);
    let (noted, clients) = (errors.clone(), Arc::new(clients));
    run_once(&bench, &guard, move |cx| {
        let (noted, clients, cached) = (noted.clone(), Arc::clone(&clients), cached.clone());
        async move {
            for client in clients.iter() {
                let api: Api<Widget> = Api::namespaced(client.clone(), "default");
                noted.note(api.delete("a", &DeleteParams::default()).await);
                noted.note(api.create(&PostParams::default(), cx.object()).await);
                noted.note(api.replace("a", &PostParams::default(), cx.object()).await);
                let patch = Patch::Merge(json!({}));
                noted.note(api.patch("a", &PatchParams::default(), &patch).await);
            }
            let refused = cached
                .delete(cx.key(), &DeleteParams::default())
                .await
                .expect_err("it is refused");
            assert!(GuardError::find(&refused).is_some(), "{refused:?}");
        }
    })
    .await;
    assert_eq!(errors.take().len(), 8);
    let count = |verb| bench.cluster.journal().count(verb, "widgets");
    // The one creation is the test's.
    let counts = ["create", "update", "patch", "delete"].map(count);
    assert_eq!(counts, [1, 0, 0, 0]);
    assert_eq!(guard.state().trip().unwrap().refused(), 9);
}

#[tokio::test(start_paused = true)]
async fn reconcilers_share_a_guard_or_have_one_each() {
    for (is_shared, expected) in [(true, 4), (false, 8)] {
        let bench = with_widgets(20).await;
        let guards = [(); 2].map(|()| Guard::new().deletes(Budget::rate(4, MINUTE)));
        register_reaper(&bench, "one", &guards[0]);
        register_reaper(&bench, "two", &guards[usize::from(!is_shared)]);
        bench.start().await;
        time::sleep(MINUTE).await;
        assert_eq!(left(&bench).await, 20 - expected, "shared: {is_shared}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_share_is_of_what_is_cached() {
    let bench = with_widgets(25).await;
    let guard = Guard::new().deletes(Budget::share(0.2, 10 * MINUTE));
    register_reaper(&bench, "reaper", &guard);
    bench.start().await;
    time::sleep(MINUTE).await;
    assert_eq!(left(&bench).await, 20);
    assert!(
        guard.state().to_string().contains("20 %"),
        "{}",
        guard.state()
    );
}

#[tokio::test(start_paused = true)]
async fn calls_into_pods_are_changes() {
    let bench = Bench::new().await;
    let guard = Guard::new()
        .changes(Budget::rate(0, MINUTE))
        .deletes(Budget::rate(0, MINUTE))
        .creates(Budget::rate(0, MINUTE));
    let errors = Errors::default();
    let noted = errors.clone();
    run_once(&bench, &guard, move |cx| {
        let noted = noted.clone();
        async move {
            let path = "/api/v1/namespaces/default/pods/web/exec?command=x";
            let request = http::Request::get(path).body(Vec::new()).expect("one");
            noted.note(cx.client().request_text(request).await);
        }
    })
    .await;
    let errors = errors.take();
    let expected = "refused to create v1 pods default/web (exec): the budget of changes";
    assert!(errors[0].contains(expected), "{errors:?}");
    let journal = bench.cluster.journal();
    assert_eq!(journal.select().subresource("exec").count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reset_lets_it_go_on() {
    let bench = with_widgets(10).await;
    let guard = Guard::new().deletes(Budget::rate(4, 100 * MINUTE));
    register_reaper(&bench, "reaper", &guard);
    bench.start().await;
    time::sleep(MINUTE).await;
    assert_eq!(left(&bench).await, 6);
    guard.reset();
    assert!(!guard.state().is_tripped());
    time::sleep(60 * MINUTE).await;
    assert_eq!(left(&bench).await, 2);
    assert!(guard.state().is_tripped());
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_resets_itself_is_waited_for() {
    let bench = with_widgets(10).await;
    let guard = Guard::new()
        .deletes(Budget::rate(4, SECOND))
        .reset_after(10 * MINUTE);
    register_reaper(&bench, "reaper", &guard);
    bench.start().await;
    time::sleep(10 * MINUTE - SECOND).await;
    assert_eq!(left(&bench).await, 6);
    // Each was tried once, and waits.
    assert_eq!(guard.state().trip().unwrap().refused(), 6);
    time::sleep(2 * SECOND).await;
    assert_eq!(left(&bench).await, 2);
    time::sleep(10 * MINUTE).await;
    assert_eq!(left(&bench).await, 0);
    assert!(!guard.state().is_tripped());
    assert_eq!(bench.cluster.journal().count("delete", "widgets"), 10);
}

#[tokio::test(start_paused = true)]
async fn many_workers_do_not_exceed_a_budget_together() {
    let bench = with_widgets(30).await;
    let faults = bench.cluster.faults();
    faults.add(Rule::new(Action::Delay(10 * SECOND)).verb("delete"));
    let guard = Guard::new().deletes(Budget::rate(7, MINUTE));
    register_reaper(&bench, "reaper", &guard);
    bench.operator.start(16).await.unwrap();
    time::sleep(10 * MINUTE).await;
    assert_eq!(bench.cluster.journal().count("delete", "widgets"), 7);
}

#[tokio::test(start_paused = true)]
async fn status_dry_runs_and_what_is_exempt_get_through() {
    let bench = Bench::new().await;
    let guard = Guard::new().writes(Budget::rate(0, MINUTE));
    let errors = Errors::default();
    let noted = errors.clone();
    run_once(&bench, &guard, move |cx| {
        let noted = noted.clone();
        async move {
            let api: Api<Widget> = Api::namespaced(cx.client(), "default");
            let params = PatchParams::default();
            let label = Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}}));
            assert!(noted.note(api.patch("a", &params, &label).await));
            let status = Patch::Merge(json!({"status": {"size": 1}}));
            api.patch_status("a", &params, &status)
                .await
                .expect("status");
            let exempt = Guard::exempt(api.patch("a", &params, &label)).await;
            exempt.expect("exempt");
            let dry_run = DeleteParams::default().dry_run();
            api.delete("a", &dry_run).await.expect("a dry run");
        }
    })
    .await;
    assert_eq!(errors.take().len(), 1);
    let widget = bench.get("a").await.expect("there");
    assert_eq!(widget.status.and_then(|status| status.size), Some(1));
    assert!(widget.metadata.labels.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_no_reconciler_can_be_guarded_and_what_is_outside_is_not() {
    let bench = with_widgets(6).await;
    let guard = Guard::new().deletes(Budget::rate(2, MINUTE));
    let options = HandlerOptions::default().gate(guard.clone());
    let reap = |cx: Context<Widget>| async move {
        let api: Api<Widget> = Api::namespaced(cx.client(), "default");
        if cx.object()?.is_some() {
            api.delete(cx.key().name(), &DeleteParams::default())
                .await?;
        }
        Ok(Outcome::done())
    };
    bench
        .widgets
        .register_handler("plain", options.handler(reap))
        .unwrap();
    bench.start().await;
    settle().await;
    assert_eq!(left(&bench).await, 4);
    assert!(guard.state().is_tripped());
    let outside: Api<Widget> = Api::namespaced(bench.factory.client(), "default");
    let all = ListParams::default();
    outside
        .delete_collection(&DeleteParams::default(), &all)
        .await
        .unwrap();
    assert_eq!(left(&bench).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_trip_is_reported_once_in_an_event_on_what_was_reconciled() {
    let bench = with_widgets(10).await;
    let guard = Guard::new().deletes(Budget::rate(3, MINUTE));
    register_reaper(&bench, "reap", &guard);
    bench.start().await;
    time::sleep(5 * MINUTE).await;
    assert_eq!(left(&bench).await, 7);
    let events: Api<Event> = Api::namespaced(bench.cluster.client(), "default");
    let events_written = events.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(events_written.len(), 1, "{events_written:?}");
    let event = &events_written[0];
    assert_eq!(event.reason.as_deref(), Some("GuardTripped"));
    assert_eq!(event.involved_object.kind.as_deref(), Some("Widget"));
    let note = event.message.as_deref().unwrap_or_default();
    assert!(note.contains("writes of reap are refused: "), "{note}");
}

//! Tests of guards with writes that fail, are dropped, or reach no server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams};
use lariat_client::{Http2, from_config};
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_controller::{HandlerOptions, Outcome, SharedControllerFactory};
use lariat_operator::{Budget, Desired, Guard, Operator, Reconcile};
use tokio::time;
use tower::{BoxError, Service};

use crate::apply_rig::{config, in_default};
use crate::bench::{Bench, SECOND, Widget};
use crate::guard::{MINUTE, left, reap, register_reaper, with_widgets};

#[tokio::test(start_paused = true)]
async fn what_the_server_refused_is_given_back_and_what_is_not_known_is_not() {
    let refused = Action::Refuse(Refusal::new(StatusCode::TOO_MANY_REQUESTS));
    for (action, times, expected) in [(refused, 9, 10), (Action::LoseReply, 3, 3)] {
        let bench = with_widgets(20).await;
        let faults = bench.cluster.faults();
        faults.add(Rule::new(action.clone()).verb("delete").times(times));
        let guard = Guard::new().deletes(Budget::rate(3, 1000 * MINUTE));
        register_reaper(&bench, "reaper", &guard);
        bench.start().await;
        time::sleep(MINUTE).await;
        assert!(guard.state().is_tripped());
        let asked = bench.cluster.journal().count("delete", "widgets");
        let done = 20 - left(&bench).await;
        assert_eq!(done, 3, "{action:?}");
        assert!(asked >= expected, "{action:?}: {asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_writes_has_used_its_budget() {
    let bench = with_widgets(10).await;
    let faults = bench.cluster.faults();
    faults.add(Rule::new(Action::NoAnswer).verb("delete"));
    let guard = Guard::new().deletes(Budget::rate(3, 1000 * MINUTE));
    let reconciler = bench.operator.reconciler("reaper", &bench.widgets);
    let options = HandlerOptions::default().timeout(SECOND);
    let reconciler = reconciler.options(options).guard(guard.clone());
    reconciler.register(reap).unwrap();
    bench.start().await;
    time::sleep(10 * MINUTE).await;
    assert_eq!(bench.cluster.journal().count("delete", "widgets"), 3);
    assert!(guard.state().is_tripped());
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_guard_never_exhausts_its_retries() {
    let bench = with_widgets(4).await;
    let guard = Guard::new().deletes(Budget::rate(2, MINUTE));
    let reconciler = bench.operator.reconciler("reaper", &bench.widgets);
    let options = HandlerOptions::default().max_retries(1);
    let reconciler = reconciler.options(options).guard(guard.clone());
    reconciler.register(reap).unwrap();
    bench.start().await;
    time::sleep(30 * MINUTE).await;
    assert_eq!(left(&bench).await, 2);
    guard.reset();
    time::sleep(MINUTE).await;
    assert_eq!(left(&bench).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_waits_for_a_guard_is_retried_whatever_else_fails() {
    let bench = with_widgets(1).await;
    let maps: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    let theirs: ConfigMap = serde_json::from_value(in_default(config("a", "theirs"))).unwrap();
    maps.create(&PostParams::default(), &theirs).await.unwrap();
    // The record on the owner is the first change, and one of the others the second.
    let guard = Guard::new().changes(Budget::rate(2, MINUTE));
    let reconciler = bench.operator.reconciler("maps", &bench.widgets);
    let options = HandlerOptions::default().max_retries(1);
    let reconciler = reconciler.options(options).guard(guard.clone());
    let registered = reconciler.register(|cx: Reconcile<Widget>| async move {
        let wanted = ["a", "b", "c"].map(|name| config(name, "ours"));
        let desired = wanted.into_iter().fold(Desired::new(), Desired::with_value);
        cx.apply(desired).await?;
        Ok(Outcome::done())
    });
    registered.unwrap();
    bench.start().await;
    time::sleep(30 * MINUTE).await;
    let count = async || maps.list(&ListParams::default()).await.unwrap().items.len();
    assert_eq!(count().await, 2);
    guard.reset();
    time::sleep(MINUTE).await;
    assert_eq!(count().await, 3);
}

/// Creates a bench whose factory cannot connect for deletions while a switch is on.
async fn without_connections(bench: Bench, is_down: &Arc<AtomicBool>) -> Bench {
    let nowhere = kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
    let nowhere = from_config(nowhere, Http2::PriorKnowledge)
        .await
        .expect("it is valid");
    let (service, is_down) = (bench.cluster.service(), Arc::clone(is_down));
    let send = move |request: http::Request<kube::client::Body>| {
        let (mut service, nowhere) = (service.clone(), nowhere.clone());
        let connects = request.method() != http::Method::DELETE || !is_down.load(Ordering::Relaxed);
        async move {
            if connects {
                Service::call(&mut service, request)
                    .await
                    .map_err(BoxError::from)
            } else {
                let refused = nowhere.send(request).await;
                Err(refused.expect_err("nothing listens there").into())
            }
        }
    };
    let client = kube::Client::new(tower::service_fn(send), "default");
    let factory = SharedControllerFactory::builder(client).build();
    Bench {
        operator: Operator::new("widgeteer", &factory),
        widgets: factory.for_object(),
        factory,
        ..bench
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_uses_up_no_budget() {
    let is_down = Arc::new(AtomicBool::new(true));
    let bench = without_connections(with_widgets(6).await, &is_down).await;
    let guard = Guard::new().deletes(Budget::rate(3, 1000 * MINUTE));
    register_reaper(&bench, "reaper", &guard);
    bench.start().await;
    time::sleep(10 * MINUTE).await;
    let failed = bench.widgets.status().expect("it is used").handlers[0].retries;
    assert!(failed > 6, "{failed}");
    assert!(!guard.state().is_tripped(), "{}", guard.state());
    is_down.store(false, Ordering::Relaxed);
    time::sleep(30 * MINUTE).await;
    assert_eq!(left(&bench).await, 3);
    assert!(guard.state().is_tripped());
}

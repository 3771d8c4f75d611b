//! The number of failing keys, on each way in which a key stops to fail.

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_controller::{Context, HandlerError, HandlerResult, Outcome, SharedControllerFactory};
use lariat_testing::Logs;
use tokio::task::JoinSet;
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, SECOND};
use crate::electing_bench::{elected, ended};

/// Fails as long as the object exists, for good if its value is `final`; succeeds if its value is `good`.
async fn fails(cx: Context<ConfigMap>) -> HandlerResult {
    let object = cx.object()?;
    let value = object.map(|object| object.data.clone().unwrap_or_default().remove("value"));
    match value {
        None => Ok(Outcome::done()),
        Some(value) => match value.as_deref() {
            Some("good") => Ok(Outcome::done()),
            Some("final") => Err(HandlerError::terminal("it is bad")),
            _ => Err("not yet".into()),
        },
    }
}

fn failing(factory: &SharedControllerFactory) -> usize {
    let status = factory.for_object::<ConfigMap>().status();
    let handlers = status.map_or_else(Vec::new, |status| status.handlers);
    handlers.iter().map(|handler| handler.failing).sum()
}

/// Creates a bench whose handler fails for one key.
async fn failing_bench() -> (Bench, lariat_controller::Registration) {
    let bench = Bench::new().await;
    let registration = bench
        .config_maps
        .register_handler("fails", fails)
        .expect("registered");
    bench.start().await;
    bench.create("a").await;
    time::sleep(10 * SECOND).await;
    assert_eq!(failing(&bench.factory), 1);
    (bench, registration)
}

#[tokio::test(start_paused = true)]
async fn key_stops_failing_when_a_call_succeeds() {
    let logs = Logs::begin();
    let (bench, _) = failing_bench().await;
    bench.change("a", "good").await;
    time::sleep(2 * SECOND).await;
    assert_eq!(failing(&bench.factory), 0);
    assert!(logs.text().contains("handler recovered"), "{}", logs.text());
}

#[tokio::test(start_paused = true)]
async fn key_stops_failing_when_its_object_is_deleted() {
    let (bench, _) = failing_bench().await;
    bench.delete("a").await;
    time::sleep(2 * SECOND).await;
    assert_eq!(failing(&bench.factory), 0);
    assert!(bench.config_maps.failing_keys(9).is_empty());
}

#[tokio::test(start_paused = true)]
async fn key_stops_failing_when_it_is_given_up() {
    let logs = Logs::begin();
    let (bench, _) = failing_bench().await;
    bench.change("a", "final").await;
    time::sleep(2 * SECOND).await;
    let status = bench.status();
    let handler = &status.handlers[0];
    assert_eq!((handler.failing, handler.given_up), (0, 1));
    time::sleep(600 * SECOND).await;
    let text = logs.text();
    assert!(!text.contains("handler recovered"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn failing_keys_end_with_their_handler() {
    let (bench, registration) = failing_bench().await;
    bench.record("stays");
    registration.deregister().await;
    assert_eq!(failing(&bench.factory), 0);
    bench.config_maps.register_handler("fails", fails).unwrap();
    time::sleep(2 * SECOND).await;
    assert_eq!(failing(&bench.factory), 1, "its successor counts its own");
}

#[tokio::test(start_paused = true)]
async fn failing_keys_count_again_after_a_stop_and_a_start() {
    let (bench, _) = failing_bench().await;
    bench.factory.stop().await.unwrap();
    assert_eq!(failing(&bench.factory), 0);
    bench.start().await;
    time::sleep(60 * SECOND).await;
    assert_eq!(failing(&bench.factory), 1);
    bench.change("a", "good").await;
    time::sleep(2 * SECOND).await;
    assert_eq!(failing(&bench.factory), 0);
}

#[tokio::test(start_paused = true)]
async fn failing_keys_leave_a_replica_that_hands_over() {
    let bench = Bench::new().await;
    bench.create("a").await;
    let replica = |name| {
        let factory = elected(&bench.cluster, name).build();
        let config_maps = factory.for_object::<ConfigMap>();
        config_maps.register_handler("fails", fails).unwrap();
        let stop = CancellationToken::new();
        let (running, stopped) = (factory.clone(), stop.clone().cancelled_owned());
        let mut run = JoinSet::new();
        run.spawn(async move { running.run(2, stopped).await });
        (factory, stop, run)
    };
    let (one, stop, mut run) = replica("one");
    time::sleep(10 * SECOND).await;
    let (two, _stop_two, _run_two) = replica("two");
    time::sleep(10 * SECOND).await;
    assert_eq!((failing(&one), failing(&two)), (1, 0));
    stop.cancel();
    ended(&mut run).await.unwrap();
    time::sleep(60 * SECOND).await;
    assert_eq!((failing(&one), failing(&two)), (0, 1));
}

/// The retry of a refused write comes after five minutes.
#[tokio::test(start_paused = true)]
async fn failing_keys_count_at_once_after_a_start_that_retries_them_later() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    let late = |cx: Context<ConfigMap>| async move {
        match cx.attempt() {
            1 => Err(HandlerError::from("not yet").retry_after(300 * SECOND)),
            _ => Ok(Outcome::done()),
        }
    };
    bench.config_maps.register_handler("late", late).unwrap();
    bench.create("a").await;
    bench.start().await;
    time::sleep(10 * SECOND).await;
    bench.factory.stop().await.unwrap();
    assert_eq!(failing(&bench.factory), 0);
    bench.start().await;
    time::sleep(SECOND).await;
    assert_eq!(failing(&bench.factory), 1);
    assert_eq!(bench.config_maps.failing_keys(9).len(), 1);
    time::sleep(300 * SECOND).await;
    assert_eq!(failing(&bench.factory), 0);
    assert!(logs.text().contains("handler recovered"), "{}", logs.text());
}

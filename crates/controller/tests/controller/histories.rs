//! The history of runs, and their causes.

use k8s_openapi::api::core::v1::Secret;
use lariat_controller::{Context, Enqueue, Outcome, RunRecord};
use tokio::time;

use crate::bench::{Bench, SECOND, key, settle};

#[tokio::test(start_paused = true)]
async fn the_last_runs_of_a_key_are_known_after_thousands_of_others() {
    let bench = Bench::new().await;
    bench.record("log");
    for number in 0..1000 {
        bench.create(&format!("map-{number}")).await;
    }
    bench.start().await;
    settle().await;
    for _ in 0..6 {
        bench.config_maps.enqueue(&key("map-5"));
        settle().await;
    }
    for round in 0..2 {
        for number in 0..1000 {
            bench
                .config_maps
                .enqueue(&key(&format!("busy-{}", number % (round + 1))));
            settle().await;
        }
    }
    assert_eq!(bench.config_maps.history().len(), 256);
    let runs = bench.config_maps.history_of(&key("map-5"));
    assert_eq!(runs.len(), 4);
    assert!(runs.is_sorted_by_key(|run| run.run));
    assert!(runs[3].causes.to_string().contains("histories.rs"));
    let first = bench.config_maps.history_of(&key("map-0"));
    assert_eq!(first.len(), 1, "it ran once, two thousand runs ago");
    let busy = bench.config_maps.history_of(&key("busy-1"));
    assert!(
        busy.len() > 4,
        "those among the last of the kind, and four more"
    );
}

#[tokio::test(start_paused = true)]
async fn each_factory_numbers_the_runs_of_all_its_kinds_from_one() {
    for _ in 0..2 {
        let bench = Bench::new().await;
        let secrets = bench.factory.for_object::<Secret>();
        let handler = |_: Context<Secret>| async { Ok(Outcome::done()) };
        secrets.register_handler("log", handler).unwrap();
        bench.record("log");
        bench.start().await;
        for name in ["a", "b"] {
            bench.config_maps.enqueue(&key(name));
            settle().await;
            secrets.enqueue(&key(name));
            settle().await;
        }
        let runs = |history: Vec<RunRecord>| history.iter().map(|each| each.run).collect();
        let runs: [Vec<u64>; 2] = [runs(bench.config_maps.history()), runs(secrets.history())];
        assert_eq!(runs, [[1, 3], [2, 4]]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_to_be_called_later_is_no_cause_of_an_earlier_run() {
    let bench = Bench::new().await;
    let calls = bench.on("periodic", |_| async {
        Ok(Outcome::requeue_after(300 * SECOND))
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(SECOND).await;
    bench.change("a", "1").await;
    time::sleep(SECOND).await;
    let causes = |at: usize| calls.all()[at].causes.clone();
    assert!(causes(1).starts_with("updated "), "{}", causes(1));
    assert!(!causes(1).contains("requeued"), "{}", causes(1));
    time::sleep(300 * SECOND).await;
    assert_eq!(causes(2), "requeued by periodic");
    assert_eq!(calls.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_retry_does_not_bring_back_a_request_that_an_earlier_run_satisfied() {
    let bench = Bench::new().await;
    let calls = bench.on("periodic", |call| async move {
        match call.value.as_deref() {
            Some("bad") => Err("bad".into()),
            _ => Ok(Outcome::requeue_after(10 * SECOND)),
        }
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(SECOND).await;
    bench.change("a", "bad").await;
    time::sleep(60 * SECOND).await;
    let causes: Vec<String> = calls
        .all()
        .split_off(1)
        .into_iter()
        .map(|call| call.causes)
        .collect();
    assert!(causes.len() > 10);
    assert!(
        causes.iter().all(|causes| !causes.contains("requeued")),
        "{causes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn every_key_can_be_enqueued_with_a_reason() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    let other = bench.record("other");
    for name in ["a", "b", "c"] {
        bench.create(name).await;
    }
    let request = || Enqueue::now().because("new limits");
    assert_eq!(
        bench.config_maps.enqueue_all(&request()).unwrap(),
        0,
        "nothing is cached yet"
    );
    bench.start().await;
    settle().await;
    calls.clear();
    other.clear();
    let count = bench.config_maps.enqueue_all(&request().to("log")).unwrap();
    settle().await;
    assert_eq!((count, calls.len(), other.len()), (3, 3, 0));
    let causes = calls.last().causes;
    assert!(
        causes.contains("new limits") && causes.contains("histories.rs"),
        "{causes}"
    );

    let error = bench
        .config_maps
        .enqueue_all(&request().to("none"))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "v1 ConfigMap has no handler named \"none\" to enqueue its keys to; its handlers: log, other"
    );
    bench
        .config_maps
        .enqueue_all(&Enqueue::after(60 * SECOND))
        .unwrap();
    time::sleep(59 * SECOND).await;
    assert_eq!(calls.len(), 3);
    time::sleep(2 * SECOND).await;
    assert_eq!((calls.len(), other.len()), (6, 3));
}

#[tokio::test(start_paused = true)]
async fn fresh_changes_overtake_keys_that_are_enqueued_all_at_once() {
    let bench = Bench::new().await;
    let calls = bench.on("log", |_| async {
        time::sleep(SECOND / 100).await;
        Ok(Outcome::done())
    });
    for number in 0..20 {
        bench.create(&format!("map-{number}")).await;
    }
    bench.start().await;
    time::sleep(SECOND).await;
    calls.clear();
    bench.config_maps.enqueue_all(&Enqueue::now()).unwrap();
    bench.change("map-19", "fresh").await;
    time::sleep(SECOND).await;
    let at = calls.values().iter().position(|value| value == "fresh");
    assert!(
        at.is_some_and(|at| at <= 2),
        "two workers were busy: {at:?}"
    );
}

//! Outcomes of handlers, and their effects.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_controller::{CallOutcome, Context, HandlerError, Outcome};
use lariat_queue::Priority;
use parking_lot::Mutex;
use tokio::time;

use crate::bench::{Bench, Calls, SECOND, key, settle};

#[tokio::test(start_paused = true)]
async fn an_ignored_error_is_a_success() {
    let bench = Bench::new().await;
    let calls = bench.on("skips", |_| async {
        Err(HandlerError::ignore("not for me"))
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(600 * SECOND).await;
    assert_eq!(calls.len(), 1);
    let status = &bench.status().handlers[0];
    assert_eq!(
        (status.ended(CallOutcome::Ignored), status.failures),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn an_ignored_error_that_says_when_is_a_success_that_says_when() {
    let bench = Bench::new().await;
    let calls = bench.on("later", |_| async {
        let error = HandlerError::ignore("not for me");
        Err(error.retry_after(60 * SECOND))
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(121 * SECOND).await;
    assert_eq!(calls.len(), 3);
    let status = &bench.status().handlers[0];
    assert_eq!(
        (status.ended(CallOutcome::Ignored), status.failures),
        (3, 0)
    );
}

/// Registers a handler that returns an object, and a second one; returns the value that the second one sees.
async fn passed_on(
    result: impl Fn(ConfigMap) -> lariat_controller::HandlerResult + Send + Sync + 'static,
) -> Calls {
    let bench = Bench::new().await;
    let result = Arc::new(result);
    bench
        .config_maps
        .register_handler("first", move |cx: Context<ConfigMap>| {
            let result = Arc::clone(&result);
            async move {
                let mut object = cx
                    .object()?
                    .map_or_else(ConfigMap::default, |o| (*o).clone());
                object.data = Some([("value".to_owned(), "mine".to_owned())].into());
                result(object)
            }
        })
        .expect("it works");
    let calls = bench.record("second");
    bench.start().await;
    bench.create("a").await;
    settle().await;
    calls
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_returns_is_passed_on_also_with_an_error() {
    let well = passed_on(|object| Ok(Outcome::done().with_updated(object))).await;
    assert_eq!(well.values(), ["mine"]);
    let failed = passed_on(|object| Err(HandlerError::terminal("no").with_updated(object))).await;
    assert_eq!(failed.values(), ["mine"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_the_api_server_never_saw_is_not_passed_on() {
    let calls = passed_on(|mut object| {
        object.metadata.uid = None;
        Ok(Outcome::done().with_updated(object))
    })
    .await;
    assert_eq!(calls.values(), ["-"]);
    let calls = passed_on(|mut object| {
        object.metadata.uid = Some(String::new());
        Err(HandlerError::terminal("no").with_updated(object))
    })
    .await;
    assert_eq!(calls.values(), ["-"]);
}

#[tokio::test(start_paused = true)]
async fn asking_to_come_again_forgets_failures() {
    let bench = Bench::new().await;
    let calls = bench.on("flaky", |call| async move {
        match call.attempt {
            1..=3 => Err("no".into()),
            _ => Ok(Outcome::requeue_after(60 * SECOND)),
        }
    });
    bench.create("a").await;
    bench.start().await;
    time::sleep(200 * SECOND).await;
    let attempts: Vec<u32> = calls.all().iter().map(|call| call.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]);
}

/// Returns the order of calls by one worker, for a requeued key and others that wait.
async fn order(again: fn() -> lariat_controller::HandlerResult) -> String {
    let bench = Bench::new().await;
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&order);
    bench.on("log", move |call| {
        let log = Arc::clone(&log);
        async move {
            log.lock().push(call.name.clone());
            time::sleep(SECOND).await;
            match (&*call.name, log.lock().len()) {
                ("again", 1) => again(),
                _ => Ok(Outcome::done()),
            }
        }
    });
    bench.factory.start(1).await.expect("it works");
    bench.create("again").await;
    settle().await;
    bench.create("b").await;
    bench.create("c").await;
    time::sleep(10 * SECOND).await;
    let order = order.lock();
    order.join(" ")
}

#[tokio::test(start_paused = true)]
async fn what_comes_again_keeps_its_priority_or_is_given_another() {
    assert_eq!(
        order(|| Ok(Outcome::requeue_after(Duration::ZERO))).await,
        "again b c again"
    );
    assert_eq!(
        order(|| Ok(Outcome::requeue_after(Duration::ZERO).at_priority(Priority::High))).await,
        "again again b c"
    );
    let soon = Duration::from_millis(10);
    assert_eq!(
        order(|| Ok(Outcome::requeue_after(Duration::from_millis(10)).at_priority(Priority::High)))
            .await,
        "again b again c",
        "{soon:?} later"
    );
    assert_eq!(order(|| Err("no".into())).await, "again b c again");
    assert_eq!(
        order(|| Err(HandlerError::from("no").at_priority(Priority::High))).await,
        "again b again c"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_is_remembered_with_its_causes_and_what_came_of_it() {
    let bench = Bench::new().await;
    bench.record("good");
    bench.on("bad", |call| async move {
        match call.attempt {
            1 => Err("no luck".into()),
            _ => Ok(Outcome::requeue_after(60 * SECOND)),
        }
    });
    bench.start().await;
    bench.create("a").await;
    bench.create("b").await;
    time::sleep(SECOND).await;
    let runs = bench.config_maps.history_of(&key("a"));
    assert_eq!(runs.len(), 2);
    let causes = runs[0].causes.to_string();
    assert!(causes.starts_with("added at "), "{causes}");
    let calls: Vec<_> = runs[0]
        .calls
        .iter()
        .map(|call| (&*call.handler, call.outcome))
        .collect();
    assert_eq!(
        calls,
        [("good", CallOutcome::Done), ("bad", CallOutcome::Failed)]
    );
    let failure = &runs[0].calls[1];
    assert_eq!(failure.error.as_deref(), Some("no luck"));
    assert_eq!(failure.requeue_after, Some(Duration::from_millis(5)));
    assert_eq!(
        runs[1].causes.to_string(),
        format!("{causes}, retry 1 of bad")
    );
    let retry = &runs[1].calls[0];
    assert_eq!(
        (runs[1].calls.len(), retry.attempt, retry.outcome),
        (1, 2, CallOutcome::Requeued)
    );
    assert!(runs[0].run < runs[1].run);
    let text = runs[0].to_string();
    assert!(
        text.contains("\n  bad failed after 0.0ns, again in 5.0ms: no luck"),
        "{text}"
    );
    assert_eq!(bench.config_maps.history().len(), 4, "of both keys");
}

#[tokio::test(start_paused = true)]
async fn the_history_is_bounded_and_can_be_left_out() {
    for (limit, expected) in [(0, 0), (10, 10)] {
        let bench = Bench::with(|builder| {
            builder.default_options(lariat_controller::ControllerOptions::default().history(limit))
        })
        .await;
        bench.record("log");
        bench.start().await;
        for _ in 0..50 {
            bench.config_maps.enqueue(&key("a"));
            settle().await;
        }
        assert_eq!(bench.config_maps.history().len(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_can_say_when_to_try_again_and_counts_as_a_failure() {
    let bench = Bench::new().await;
    let calls = bench.on("busy", |call| async move {
        match call.attempt {
            1..=3 => Err(HandlerError::from("busy").retry_after(10 * SECOND)),
            _ => Ok(Outcome::done().or_requeue_after(100 * SECOND)),
        }
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(Duration::from_millis(29_900)).await;
    assert_eq!(calls.len(), 3);
    time::sleep(SECOND).await;
    assert_eq!(calls.len(), 4);
    assert_eq!(bench.status().handlers[0].ended(CallOutcome::Failed), 3);
    time::sleep(100 * SECOND).await;
    assert_eq!(calls.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_error_can_be_made_terminal_afterwards() {
    let bench = Bench::new().await;
    let calls = bench.on("never", |_| async {
        Err(HandlerError::from("no").retry_after(SECOND).into_terminal())
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(60 * SECOND).await;
    assert_eq!(calls.len(), 1);
    assert_eq!(bench.status().handlers[0].ended(CallOutcome::Terminal), 1);
}

#[tokio::test(start_paused = true)]
async fn delay_that_means_never_leaves_no_key_and_hides_no_failure() {
    let bench = Bench::new().await;
    bench.on("log", |call| async move {
        match call.value.as_deref() {
            Some("bad") => Err(HandlerError::terminal("it is wrong")),
            _ => Ok(Outcome::requeue_after(Duration::MAX)),
        }
    });
    bench.start().await;
    for number in 0..10 {
        bench.create(&format!("o{number}")).await;
    }
    settle().await;
    assert_eq!(bench.status().queue.delayed, 0);
    bench.change("o1", "bad").await;
    settle().await;
    assert_eq!(bench.status().handlers[0].given_up, 1);
}

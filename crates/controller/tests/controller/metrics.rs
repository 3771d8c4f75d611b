//! The metrics of a registry.

use std::panic::resume_unwind;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use lariat_controller::metrics::prometheus_client::encoding::text;
use lariat_controller::{CallOutcome, Context, Enqueue, HandlerError, HandlerOptions, Outcome};
use lariat_queue::Priority;
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, key, settle};
use crate::exposition::{Exposition, KIND, SHAPE, registry_of, scrape, shape};

#[tokio::test(start_paused = true)]
async fn names_and_labels_are_those_of_client_go_controller_runtime_and_lasso() {
    let bench = Bench::new().await;
    bench.record("log");
    bench.start().await;
    bench.create("a").await;
    settle().await;
    let exposition = scrape(&registry_of(&bench));
    assert_eq!(shape(&exposition), SHAPE);
    let values = |label| Vec::from_iter(exposition.values_of(label));
    for label in ["name", "controller", "controller_name"] {
        assert_eq!(values(label), ["v1 ConfigMap"]);
    }
    assert_eq!(values("kind"), ["ConfigMap", "v1 ConfigMap"]);
    assert_eq!(values("group"), [""]);
    assert_eq!(values("version"), ["v1"]);
    assert_eq!(values("ctx"), [""]);
    assert_eq!(values("handler"), ["log"]);
    assert_eq!(values("handler_name"), ["log"]);
    assert_eq!(values("has_error"), ["false", "true"]);
    assert_eq!(values("priority"), ["high", "low", "normal"]);
    let reasons = ["closed", "expired", "failed", "refused", "silent"];
    assert_eq!(values("reason"), reasons);
    let mut results: Vec<&str> = CallOutcome::ALL
        .iter()
        .map(|ended| ended.as_str())
        .collect();
    results.extend(["error", "requeue", "requeue_after", "success"]);
    results.sort_unstable();
    assert_eq!(values("result"), results);
    assert_eq!(values("verb"), ["GET"]);
    assert_eq!(
        values("le").len(),
        17 + 12,
        "ours, and client-go's of requests"
    );
}

#[tokio::test(start_paused = true)]
async fn adds_that_merge_count_once_and_depths_of_priorities_add_up() {
    let bench = Bench::new().await;
    bench.on("slow", |_| async {
        time::sleep(10 * SECOND).await;
        Ok(Outcome::done())
    });
    let registry = registry_of(&bench);
    for name in ["a", "a", "b", "a"] {
        bench.config_maps.enqueue(&key(name));
    }
    let depths = || {
        let exposition = scrape(&registry);
        let of = |priority: Priority| {
            let labels = [("priority", priority.as_str())];
            exposition.sum("workqueue_depth", &labels)
        };
        Priority::ALL.map(|priority| of(priority).expect("it is exported, also when it is zero"))
    };
    let value = |name: &str| scrape(&registry).sum(name, &[]).expect("it is exported");
    assert_eq!(depths(), [0.0, 2.0, 0.0]);
    assert_eq!(value("workqueue_adds_total"), 2.0);
    assert_eq!(value("controller_runtime_max_concurrent_reconciles"), 0.0);

    bench.factory.start(1).await.unwrap();
    time::sleep(4 * SECOND).await;
    let urgent = Enqueue::now().priority(Priority::High);
    bench.config_maps.enqueue_with(&key("a"), &urgent).unwrap();
    assert_eq!(depths(), [0.0, 1.0, 1.0], "it is held, and due again");
    assert_eq!(value("workqueue_adds_total"), 3.0);
    assert_eq!(value("workqueue_queue_duration_seconds_count"), 1.0);
    assert_eq!(value("workqueue_work_duration_seconds_count"), 0.0);
    let running = value("workqueue_longest_running_processor_seconds");
    assert_eq!(value("workqueue_unfinished_work_seconds"), running);
    assert!((4.0..4.1).contains(&running), "{running}");
    assert_eq!(value("controller_runtime_active_workers"), 1.0);
    assert_eq!(value("controller_runtime_max_concurrent_reconciles"), 1.0);

    time::sleep(60 * SECOND).await;
    assert_eq!(depths(), [0.0; 3]);
    assert_eq!(value("workqueue_work_duration_seconds_count"), 3.0);
    assert_eq!(value("workqueue_unfinished_work_seconds"), 0.0);
    assert_eq!(value("controller_runtime_active_workers"), 0.0);
    bench.factory.stop().await.unwrap();
    assert_eq!(value("controller_runtime_max_concurrent_reconciles"), 0.0);
}

/// Registers a handler that behaves as the object's name says.
fn obedient(bench: &Bench) {
    let options = HandlerOptions::default().timeout(5 * SECOND).max_retries(1);
    bench.on_with("obedient", options, |call| async move {
        let is_first = !call.causes.contains("requeued by");
        match (&*call.name, call.attempt) {
            ("requeue", _) if is_first => Ok(Outcome::requeue_after(Duration::ZERO)),
            ("requeue-after", _) if is_first => Ok(Outcome::requeue_after(SECOND)),
            ("ignore", _) => Err(HandlerError::ignore("not mine")),
            ("fail", 1) => Err("once".into()),
            ("fail-for-good", _) => Err("always".into()),
            ("terminal", _) => Err(HandlerError::terminal("no use")),
            // Without calling the panic hook, on whose backtraces other tests rely.
            ("panic", 1) => resume_unwind(Box::new("as it was asked")),
            ("hang", 1) => {
                time::sleep(60 * SECOND).await;
                Ok(Outcome::done())
            }
            _ => Ok(Outcome::done()),
        }
    });
}

/// Lets calls end in every way, and then reads the registry.
async fn after_every_end() -> Exposition {
    let bench = Bench::new().await;
    obedient(&bench);
    bench.start().await;
    let names = [
        "done",
        "requeue",
        "requeue-after",
        "ignore",
        "fail",
        "fail-for-good",
        "terminal",
        "panic",
        "hang",
    ];
    for name in names {
        bench.config_maps.enqueue(&key(name));
    }
    time::sleep(120 * SECOND).await;
    scrape(&registry_of(&bench))
}

#[tokio::test(start_paused = true)]
async fn every_way_in_which_a_call_can_end_is_counted_under_all_names() {
    let exposition = after_every_end().await;
    let of = |name| exposition.sum(name, &[]).map(|value| value as u64);
    let results = |family, result| {
        let value = exposition.sum(family, &[("result", result)]);
        value.map_or(0, |value| value as u64)
    };
    let own = CallOutcome::ALL.iter();
    let own = own.map(|ended| results("lariat_handler_calls_total", ended.as_str()));
    let own: Vec<_> = own.collect();
    // Done come the plain one, and in the end the two requeued, the failed, the panicked and the slow one.
    assert_eq!(own, [6, 2, 1, 3, 1, 1, 1]);
    let theirs = ["success", "error", "requeue", "requeue_after"];
    let theirs = theirs.map(|result| results("controller_runtime_reconcile_total", result));
    assert_eq!(theirs, [7, 6, 1, 1]);
    let expected = [
        ("controller_runtime_reconcile_errors_total", 6),
        ("controller_runtime_terminal_reconcile_errors_total", 1),
        ("controller_runtime_reconcile_panics_total", 1),
        ("controller_runtime_reconcile_timeouts_total", 1),
        ("controller_runtime_reconcile_time_seconds_count", 15),
        ("lariat_handler_time_seconds_count", 15),
        ("lariat_handler_retries_total", 4),
        ("workqueue_retries_total", 4),
        ("lariat_handler_exhausted_total", 1),
        // Nothing has changed.
        ("lariat_handler_lag_seconds_count", 0),
    ];
    for (name, count) in expected {
        assert_eq!(of(name), Some(count), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn lasso_s_series_distinguish_failures_from_other_calls() {
    let exposition = after_every_end().await;
    let of = |failed| {
        let names = [
            "lasso_controller_total_handler_execution",
            "lasso_controller_reconcile_time_seconds_count",
            "lasso_controller_reconcile_time_seconds_sum",
        ];
        let values = names.map(|name| exposition.sum(name, &[("has_error", failed)]));
        values.map(|value| value.map_or(0, |value| value as u64))
    };
    assert_eq!(of("false"), [9, 9, 0], "what is ignored is no failure");
    assert_eq!(of("true"), [6, 6, 5], "the slow one took five seconds");
}

#[tokio::test(start_paused = true)]
async fn durations_are_in_the_bucket_of_their_length() {
    let bench = Bench::new().await;
    bench.on("slow", |_| async {
        time::sleep(3 * SECOND).await;
        Ok(Outcome::done())
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(10 * SECOND).await;
    let exposition = scrape(&registry_of(&bench));
    let of = |bound| {
        let name = "lariat_handler_time_seconds_bucket";
        exposition.sum(name, &[("le", bound), ("handler", "slow")])
    };
    assert_eq!((of("0.000001"), of("1.048576")), (Some(0.0), Some(0.0)));
    assert_eq!((of("4.194304"), of("1073.741824")), (Some(1.0), Some(1.0)));
    assert_eq!(of("+Inf"), Some(1.0));
    let lags = exposition.sum("lariat_handler_lag_seconds_count", &[]);
    assert_eq!(lags, Some(1.0), "it was called for a change");
}

#[tokio::test(start_paused = true)]
async fn a_cache_counts_its_requests_and_decodes() {
    let bench = Bench::new().await;
    let registry = registry_of(&bench);
    let of = |name: &str| scrape(&registry).sum(name, &[KIND]);
    bench.record("first");
    bench.record("second");
    let ages = "lariat_reflector_last_event_age_seconds";
    assert_eq!((of("lariat_reflector_synced"), of(ages)), (Some(0.0), None));
    bench.create("a").await;
    bench.start().await;
    settle().await;
    assert_eq!(of("lariat_reflector_synced"), Some(1.0));
    assert_eq!(of("lariat_cache_lists_total"), Some(1.0));
    assert_eq!(
        of("lariat_reflector_lists_total"),
        Some(0.0),
        "it was a watch"
    );
    assert_eq!(of("lariat_reflector_watches_total"), Some(1.0));
    assert_eq!(of("lariat_reflector_reconnects_total"), Some(0.0));
    assert_eq!(of("lariat_reflector_unreadable_total"), Some(0.0));
    assert_eq!(
        of("lariat_cache_decodes_total"),
        Some(1.0),
        "two handlers share one"
    );
    let bytes = bench.status().cache.bytes as f64;
    assert_eq!(of("lariat_cache_bytes"), Some(bytes));
    // Watches are asked to end after some minutes.
    time::sleep(1200 * SECOND).await;
    let closed = [KIND, ("reason", "closed")];
    let closed = scrape(&registry).sum("lariat_reflector_reconnects_total", &closed);
    let watches = of("lariat_reflector_watches_total");
    assert!(watches > Some(1.0));
    assert_eq!(closed, watches.map(|watches| watches - 1.0));
    bench.factory.stop().await.unwrap();
    assert_eq!(of("lariat_reflector_synced"), Some(0.0));
    time::sleep(90 * SECOND).await;
    assert!(of(ages).is_some_and(|age| age >= 90.0));
}

#[tokio::test(start_paused = true)]
async fn names_are_escaped_and_a_thread_without_runtime_can_ask() {
    let bench = Bench::new().await;
    let odd = "a \"quoted\" back\\slash and a\nline";
    bench.record(odd);
    let registry = registry_of(&bench);
    let exposition = std::thread::spawn(move || scrape(&registry)).join();
    let exposition = exposition.expect("it does not panic");
    assert_eq!(Vec::from_iter(exposition.values_of("handler")), [odd]);
}

#[tokio::test(start_paused = true)]
async fn keys_in_hot_loops_are_a_number_and_not_a_label() {
    let bench = Bench::new().await;
    let writes = |cx: Context<ConfigMap>| async move {
        let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
        let patch = json!({"data": {"value": cx.run().min(100).to_string()}});
        let patch = Patch::Merge(patch);
        api.patch(cx.key().name(), &PatchParams::default(), &patch)
            .await?;
        Ok(Outcome::done())
    };
    bench
        .config_maps
        .register_handler("writes", writes)
        .unwrap();
    bench.start().await;
    let registry = registry_of(&bench);
    let hot_loops = || scrape(&registry).sum("lariat_hot_loops", &[KIND]);
    assert_eq!(hot_loops(), Some(0.0));
    bench.create("dizzy").await;
    time::sleep(60 * SECOND).await;
    assert_eq!(hot_loops(), Some(1.0));
    let mut body = String::new();
    text::encode(&mut body, &registry).unwrap();
    assert!(!body.contains("dizzy") && !body.contains("default"));
}

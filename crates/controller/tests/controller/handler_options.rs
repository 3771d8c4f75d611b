//! Options of a handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use lariat_cache::Change;
use lariat_controller::{
    ControllerOptions, HandlerOptions, HandlerResult, Outcome, Predicate, Relation, Resync,
};
use lariat_queue::Priority;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{self, Instant};

use crate::bench::{Bench, SECOND, key, settle};
use crate::relations::{create, secrets};

#[tokio::test(start_paused = true)]
async fn predicates_choose_the_changes_a_handler_is_called_for() {
    let bench = Bench::new().await;
    let only = |predicate| HandlerOptions::default().only(predicate);
    let all = bench.record("all");
    let labels = bench.record_with("labels", only(Predicate::labels_changed()));
    let annotations = bench.record_with("annotations", only(Predicate::annotations_changed()));
    let web = Predicate::labels("app=web".parse().unwrap());
    let web = bench.record_with("web", only(web));
    let values = Predicate::labels_changed()
        .or(Predicate::annotations_changed())
        .not();
    let values = bench.record_with("neither", only(values));
    let grows = Predicate::new(|change| match change {
        Change::Updated { old, new } => new.json_bytes() > old.json_bytes() + 100,
        _ => false,
    });
    let grows = bench.record_with("grows", only(grows));
    bench.start().await;
    let steps = [
        json!({"metadata": {"name": "a"}}),
        json!({"metadata": {"name": "a", "labels": {"app": "web"}}}),
        json!({"metadata": {"name": "a", "annotations": {"note": "x"}}}),
        json!({"metadata": {"name": "a"}, "data": {"value": "1"}}),
        json!({"metadata": {"name": "a"}, "data": {"long": "x".repeat(200)}}),
        json!({"metadata": {"name": "a", "labels": {"app": null}}}),
        json!({"metadata": {"name": "a"}, "data": {"value": "2"}}),
    ];
    for step in steps {
        bench.apply(step).await;
        settle().await;
    }
    bench.delete("a").await;
    settle().await;
    let counts = [&all, &labels, &annotations, &web, &values, &grows].map(|calls| calls.len());
    // `web` is called from the update with which the object begins to match to the one with which it stops. The other
    // predicates select creation and deletion.
    assert_eq!(counts, [8, 4, 3, 5, 3, 1]);
    bench.config_maps.enqueue(&key("a"));
    settle().await;
    assert_eq!(grows.len(), 2, "what code enqueues is not judged");
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_does_not_hide_one_that_was_wanted() {
    let bench = Bench::new().await;
    let gate = bench.on("slow", |_| async {
        time::sleep(SECOND).await;
        Ok(Outcome::done())
    });
    let labels = bench.record_with(
        "labels",
        HandlerOptions::default().only(Predicate::labels_changed()),
    );
    bench.create("a").await;
    bench.start().await;
    bench.change("a", "1").await;
    bench
        .apply(json!({"metadata": {"name": "a", "labels": {"x": "y"}}}))
        .await;
    bench.change("a", "2").await;
    time::sleep(10 * SECOND).await;
    assert_eq!(
        labels.last().value.as_deref(),
        Some("2"),
        "the newest state"
    );
    assert_eq!((labels.len(), gate.len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_is_replayed_what_its_predicate_wants() {
    let bench = Bench::new().await;
    bench.record("early");
    bench.create("plain").await;
    bench
        .apply(json!({"metadata": {"name": "web", "labels": {"app": "web"}}}))
        .await;
    bench.start().await;
    settle().await;
    let web = Predicate::labels("app=web".parse().unwrap());
    let late = bench.record_with("late", HandlerOptions::default().only(web));
    settle().await;
    assert_eq!(late.names(), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn a_predicate_that_panics_counts_as_a_yes() {
    let bench = Bench::new().await;
    let broken = Predicate::new(|_| panic!("no idea"));
    let calls = bench.record_with("broken", HandlerOptions::default().only(broken));
    let others = bench.record("others");
    bench.start().await;
    bench.create("a").await;
    settle().await;
    assert_eq!((calls.len(), others.len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn every_handler_has_as_many_retries_as_it_was_given() {
    for retries in [0, 3] {
        let bench = Bench::new().await;
        let options = HandlerOptions::default().max_retries(retries);
        let calls = bench.on_with("fails", options, |_| async { Err("no".into()) });
        for name in ["a", "b", "c"] {
            bench.create(name).await;
        }
        bench.start().await;
        time::sleep(3600 * SECOND).await;
        // kooper: N objects and M retries make N × (1 + M) calls.
        assert_eq!(calls.len(), 3 * (1 + retries as usize));
        assert_eq!(bench.status().handlers[0].exhausted, 3);
        calls.clear();
        bench.change("a", "1").await;
        time::sleep(3600 * SECOND).await;
        assert_eq!(calls.len(), 1 + retries as usize, "a change resets it");
    }
}

#[tokio::test(start_paused = true)]
async fn held_failures_use_up_no_retries() {
    let bench = Bench::new().await;
    let number = Arc::new(AtomicUsize::new(0));
    let options = HandlerOptions::default().max_retries(1);
    let calls = bench.on_with("fails", options, move |_| {
        let number = number.fetch_add(1, Ordering::SeqCst);
        async move {
            let error = lariat_controller::HandlerError::from("no");
            // One that counts, ten that do not, and one too many.
            Err(match number {
                1..=10 => error.retry_after(60 * SECOND).uncounted(),
                _ => error,
            })
        }
    });
    bench.create("a").await;
    bench.start().await;
    time::sleep(595 * SECOND).await;
    assert_eq!(calls.len(), 11);
    assert_eq!(bench.status().handlers[0].exhausted, 0);
    time::sleep(3600 * SECOND).await;
    assert_eq!(calls.len(), 12);
    assert_eq!(bench.status().handlers[0].exhausted, 1);
}

#[tokio::test(start_paused = true)]
async fn handlers_have_limiters_of_their_own() {
    let bench = Bench::new().await;
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let slow = HandlerOptions::default().rate_limiter(move || {
        count.fetch_add(1, Ordering::SeqCst);
        |failures: u32| failures * 10 * SECOND
    });
    let fails = |_| async { Err("no".into()) };
    let slow = bench.on_with("slow", slow, fails);
    let usual = bench.on_with("usual", HandlerOptions::default().max_retries(2), fails);
    bench.create("a").await;
    bench.start().await;
    time::sleep(65 * SECOND).await;
    let gaps = |calls: &crate::bench::Calls| -> Vec<Duration> {
        let all = calls.all();
        all.windows(2).map(|pair| pair[1].at - pair[0].at).collect()
    };
    assert_eq!(gaps(&slow), [10 * SECOND, 20 * SECOND, 30 * SECOND]);
    let early: Vec<u128> = gaps(&usual).iter().map(Duration::as_millis).collect();
    assert_eq!(early, [5, 10]);
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_at_its_limit_holds_no_worker() {
    let bench = Bench::new().await;
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (Arc::clone(&inside), Arc::clone(&most));
    let limited = bench.on_with(
        "limited",
        HandlerOptions::default().concurrency(1),
        move |_| {
            let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
            async move {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                time::sleep(10 * SECOND).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(Outcome::done())
            }
        },
    );
    let free = bench.record("free");
    for number in 0..6 {
        bench.create(&format!("o{number}")).await;
    }
    let began = Instant::now();
    bench.start().await;
    settle().await;
    assert_eq!(free.len(), 5, "all but the one whose run goes on");
    time::sleep(70 * SECOND).await;
    assert_eq!((limited.len(), free.len()), (6, 6));
    assert_eq!(most.load(Ordering::SeqCst), 1);
    let ends = limited.last().at - began;
    assert_eq!(ends.as_secs(), 50, "one after the other, without a gap");
    let mut names = limited.names();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 6, "everybody had a turn");
}

#[tokio::test(start_paused = true)]
async fn change_overtakes_the_initial_list_at_the_limit_of_a_handler() {
    let bench = Bench::new().await;
    let calls = bench.on_with(
        "limited",
        HandlerOptions::default().concurrency(1),
        |_| async {
            time::sleep(SECOND).await;
            Ok(Outcome::done())
        },
    );
    for number in 0..50 {
        bench.create(&format!("o{number:02}")).await;
    }
    bench.start().await;
    time::sleep(SECOND / 2).await;
    assert_eq!(bench.status().handlers[0].waiting, 49);
    bench.change("o49", "fresh").await;
    bench.create("new").await;
    time::sleep(4 * SECOND).await;
    let names = calls.names();
    let at = |name: &str| names.iter().position(|each| each == name);
    assert_eq!((at("o49"), at("new")), (Some(1), Some(2)), "{names:?}");
    time::sleep(60 * SECOND).await;
    assert_eq!(calls.len(), 51, "each once");
    assert_eq!(bench.status().handlers[0].waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_processes_keys_that_wait_at_the_limit() {
    let bench = Bench::new().await;
    let calls = bench.on_with(
        "limited",
        HandlerOptions::default().concurrency(1),
        |_| async {
            time::sleep(SECOND).await;
            Ok(Outcome::done())
        },
    );
    for number in 0..6 {
        bench.create(&format!("o{number}")).await;
    }
    bench.start().await;
    settle().await;
    bench.factory.stop().await.unwrap();
    assert_eq!(calls.len(), 6);
    bench.start().await;
    bench.change("o3", "1").await;
    time::sleep(2 * SECOND).await;
    assert_eq!(calls.len(), 7, "the limit is as it was");
}

/// Starts an urgent handler beside one that takes a second, and creates three objects; returns the names of their calls.
async fn urgent_and_usual(bench: &Bench, urgent: HandlerOptions) -> Arc<Mutex<Vec<String>>> {
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&order);
    bench.on_with("urgent", urgent, move |call| {
        log.lock().push(call.name);
        async { Ok(Outcome::done()) }
    });
    let log = Arc::clone(&order);
    bench.on("usual", move |call| {
        log.lock().push(call.name);
        async {
            time::sleep(SECOND).await;
            Ok(Outcome::done())
        }
    });
    bench.factory.start(1).await.expect("started");
    bench.create("a").await;
    settle().await;
    bench.create("b").await;
    bench.create("c").await;
    order
}

#[tokio::test(start_paused = true)]
async fn urgent_handler_is_called_before_usual_ones() {
    let bench =
        Bench::with(|builder| builder.default_options(ControllerOptions::default().workers(1)))
            .await;
    let urgent = HandlerOptions::default()
        .priority(Priority::High)
        .only(Predicate::labels("urgent".parse().unwrap()));
    let order = urgent_and_usual(&bench, urgent).await;
    bench
        .apply(json!({"metadata": {"name": "z", "labels": {"urgent": ""}}}))
        .await;
    time::sleep(10 * SECOND).await;
    assert_eq!(order.lock().join(" "), "a z z b c");
}

#[tokio::test(start_paused = true)]
async fn an_urgent_handler_is_called_first_for_changes_of_related_objects_too() {
    let bench = Bench::new().await;
    let others = bench.factory.for_object::<Secret>();
    let relation = Relation::label("of").to("urgent");
    bench.config_maps.watch_related(&others, relation);
    let urgent = HandlerOptions::default()
        .priority(Priority::High)
        .only(Predicate::new(|_| false));
    let order = urgent_and_usual(&bench, urgent).await;
    let related = json!({"metadata": {"name": "s", "labels": {"of": "z"}}});
    create(&secrets(&bench), related).await;
    time::sleep(10 * SECOND).await;
    assert_eq!(order.lock().join(" "), "a z b c");
}

#[tokio::test(start_paused = true)]
async fn a_second_predicate_narrows_the_first_one() {
    let bench = Bench::new().await;
    let options = HandlerOptions::default()
        .only(Predicate::labels("app=web".parse().unwrap()))
        .only(Predicate::labels("tier=front".parse().unwrap()));
    let calls = bench.record_with("log", options);
    bench.start().await;
    for (name, labels) in [
        ("web", json!({"app": "web"})),
        ("front", json!({"tier": "front"})),
        ("both", json!({"app": "web", "tier": "front"})),
    ] {
        let object = json!({"metadata": {"name": name, "labels": labels}});
        bench.apply(object).await;
    }
    settle().await;
    assert_eq!(calls.names(), ["both"]);
}

#[tokio::test(start_paused = true)]
async fn handlers_resync_each_with_its_own_period() {
    let bench = Bench::new().await;
    let every = |seconds| HandlerOptions::default().resync(Resync::Every(seconds * SECOND));
    let none = bench.record("none");
    let two = bench.record_with("two", every(2));
    let three = bench.record_with("three", every(3));
    bench.create("a").await;
    bench.start().await;
    let began = Instant::now();
    time::sleep(Duration::from_millis(12_500)).await;
    let seconds = |calls: &crate::bench::Calls| -> Vec<u64> {
        let at = |call: crate::bench::Call| (call.at - began).as_secs_f64().round() as u64;
        calls.all().into_iter().map(at).collect()
    };
    assert_eq!(seconds(&none), [0]);
    assert_eq!(seconds(&two), [0, 2, 4, 6, 8, 10, 12]);
    assert_eq!(seconds(&three), [0, 3, 6, 9, 12]);
    assert_eq!(two.last().causes, "resync");
    let requests = bench.cluster.journal();
    assert_eq!(
        requests.count("watch", "configmaps") + requests.count("list", "configmaps"),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_failed_for_good_is_called_again_when_its_options_say() {
    let bench = Bench::new().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let options = HandlerOptions::default()
        .max_retries(1)
        .requeue_final(|object| {
            let name = object.map(|object| object.key().name().to_owned());
            assert_ne!(name.as_deref(), Some("b"), "a defect of the predicate");
            name.map(|_| 60 * SECOND)
        });
    let registration = bench.config_maps.register_handler(
        "fails",
        options.handler({
            move |cx: lariat_controller::Context<_>| {
                assert!(cx.attempt() <= 2, "failures are forgotten");
                counted.fetch_add(1, Ordering::Relaxed);
                async { HandlerResult::Err("down".into()) }
            }
        }),
    );
    let registration = registration.unwrap();
    bench.create("a").await;
    bench.start().await;
    time::sleep(601 * SECOND).await;
    assert_eq!(calls.swap(0, Ordering::Relaxed), 22, "two calls a minute");
    let last = bench.config_maps.history_of(&key("a")).pop().unwrap();
    assert_eq!(last.calls[0].requeue_after, Some(60 * SECOND));
    // It is deleted, so no handler is called.
    bench.delete("a").await;
    time::sleep(3600 * SECOND).await;
    assert_eq!(calls.swap(0, Ordering::Relaxed), 2);
    // A panic in the function does not end the worker.
    bench.create("b").await;
    time::sleep(3600 * SECOND).await;
    assert_eq!(calls.swap(0, Ordering::Relaxed), 2);
    assert_eq!(registration.status().exhausted, 13);
}

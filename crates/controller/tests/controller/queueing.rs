//! Enqueued keys, and the order in which they are processed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use lariat_controller::{ControllerOptions, Outcome};
use lariat_core::ObjectKey;
use tokio::time::{self, Instant};

use crate::bench::{Bench, SECOND, key, settle};

#[tokio::test(start_paused = true)]
async fn keys_enqueued_before_the_start_are_kept_once_each() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    for _ in 0..3 {
        bench.config_maps.enqueue(&key("absent"));
    }
    bench.create("present").await;
    bench.config_maps.enqueue(&key("present"));
    time::sleep(60 * SECOND).await;
    assert_eq!(calls.len(), 0, "nothing runs before the start");
    bench.start().await;
    settle().await;
    let mut names = calls.names();
    names.sort();
    assert_eq!(names, ["absent", "present"]);
    let present = calls
        .all()
        .into_iter()
        .find(|call| call.name == "present")
        .unwrap();
    assert_eq!(
        present.value.as_deref(),
        Some("-"),
        "the cache is filled before any handler runs"
    );
}

#[tokio::test(start_paused = true)]
async fn a_delay_begins_when_the_key_is_enqueued_and_the_earlier_one_wins() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    let begin = Instant::now();
    bench.config_maps.enqueue_after(&key("a"), 30 * SECOND);
    bench.config_maps.enqueue_after(&key("a"), 20 * SECOND);
    bench.config_maps.enqueue_after(&key("a"), 40 * SECOND);
    time::sleep(5 * SECOND).await;
    bench.start().await;
    time::sleep(100 * SECOND).await;
    let calls = calls.all();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].at - begin, 20 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_kept_whatever_happens_meanwhile() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    bench.start().await;
    let begin = Instant::now();
    bench.config_maps.enqueue_after(&key("a"), 30 * SECOND);
    bench
        .config_maps
        .enqueue_after(&key("never"), Duration::MAX);
    bench.create("a").await;
    time::sleep(10 * SECOND).await;
    bench.config_maps.enqueue(&key("a"));
    time::sleep(100 * SECOND).await;
    let at: Vec<u64> = calls
        .all()
        .iter()
        .map(|call| (call.at - begin).as_secs())
        .collect();
    assert_eq!(at, [0, 10, 30]);
}

#[tokio::test(start_paused = true)]
async fn requeue_comes_at_its_time_although_a_change_calls_before() {
    let bench = Bench::new().await;
    let calls = bench.on("again", |call| async move {
        Ok(match call.value.as_deref() {
            Some("-") => Outcome::requeue_after(30 * SECOND),
            _ => Outcome::requeue_after(Duration::MAX),
        })
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(10 * SECOND).await;
    bench.change("a", "1").await;
    time::sleep(19 * SECOND).await;
    assert_eq!(calls.len(), 2);
    time::sleep(2 * SECOND).await;
    assert_eq!(calls.len(), 3, "the requeue of the first call");
    time::sleep(1_000 * SECOND).await;
    assert_eq!(calls.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn fresh_changes_overtake_what_was_there_at_the_start() {
    let bench = Bench::new().await;
    for number in 0..50 {
        bench.create(&format!("old-{number:02}")).await;
    }
    let calls = bench.on("slow", |_| async {
        time::sleep(Duration::from_millis(10)).await;
        Ok(Outcome::done())
    });
    bench.factory.start(1).await.unwrap();
    time::sleep(Duration::from_millis(55)).await;
    bench.create("fresh").await;
    bench.change("old-49", "1").await;
    time::sleep(10 * SECOND).await;
    let names = calls.names();
    assert_eq!(names.len(), 51);
    let place = |name: &str| names.iter().position(|each| each == name).unwrap();
    assert!(place("fresh") < 10 && place("old-49") < 10, "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_enqueues_other_keys() {
    let bench = Bench::new().await;
    let handle = bench.config_maps.clone();
    let calls = bench.on("chain", move |call| {
        if let Some(number) = call.name.parse::<u32>().ok().filter(|number| *number < 5) {
            handle.enqueue(&key(&(number + 1).to_string()));
        }
        async { Ok(Outcome::done()) }
    });
    bench.start().await;
    bench.config_maps.enqueue(&key("0"));
    settle().await;
    assert_eq!(calls.names(), ["0", "1", "2", "3", "4", "5"]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_handlers_keeps_its_queue_for_a_minute() {
    let bench = Bench::new().await;
    bench.config_maps.enqueue(&key("a"));
    bench.start().await;
    bench.create("b").await;
    time::sleep(59 * SECOND).await;
    let queue = bench.status().queue;
    assert_eq!((queue.depth(), queue.processing, queue.dequeued), (1, 0, 0));
    time::sleep(2 * SECOND).await;
    assert!(bench.config_maps.status().is_none());
}

#[tokio::test(start_paused = true)]
async fn every_handler_sees_the_last_state_of_every_object() {
    for seed in 0..10 {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let bench = Bench::new().await;
        let fast = bench.record("fast");
        let slow = bench.on("slow", move |call| async move {
            time::sleep(Duration::from_millis(u64::from(call.attempt) * 7)).await;
            if (call.name.len() + call.causes.len()) % 5 == 0 {
                Err("no luck".into())
            } else {
                Ok(Outcome::done())
            }
        });
        bench.start().await;
        let mut truth = std::collections::BTreeMap::new();
        for step in 0..150 {
            let name = format!("o{}", random.u8(..6));
            match random.u8(..10) {
                0 => bench.cluster.cut_watches(),
                1 => bench.cluster.compact(),
                2 => time::sleep(Duration::from_millis(random.u64(..200))).await,
                3 if truth.remove(&name).is_some() => bench.delete(&name).await,
                _ => {
                    if !truth.contains_key(&name) {
                        bench.create(&name).await;
                    }
                    bench.change(&name, &step.to_string()).await;
                    truth.insert(name, step.to_string());
                }
            }
        }
        time::sleep(3600 * SECOND).await;
        for calls in [&fast, &slow] {
            let mut last = std::collections::BTreeMap::new();
            for call in calls.all() {
                match call.value {
                    Some(value) => last.insert(call.name, value),
                    None => last.remove(&call.name),
                };
            }
            assert_eq!(last, truth, "seed {seed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_limiter_of_the_factory_is_made_once_for_each_kind() {
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let limiter = move || {
        count.fetch_add(1, Ordering::Relaxed);
        |failures: u32| Duration::from_secs(u64::from(failures))
    };
    let bench = Bench::with(|builder| {
        builder.default_options(ControllerOptions::default().rate_limiter(limiter))
    })
    .await;
    let fails = bench.on("fails", |_| async { Err("no".into()) });
    bench.factory.for_object::<Secret>().enqueue(&key("a"));
    assert_eq!(made.load(Ordering::Relaxed), 2);
    bench.start().await;
    bench.create("a").await;
    time::sleep(7 * SECOND).await;
    let calls = fails.all();
    let gaps: Vec<u64> = calls
        .windows(2)
        .map(|pair| (pair[1].at - pair[0].at).as_secs())
        .collect();
    assert_eq!(gaps, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn fair_namespaces_take_turns() {
    let bench = Bench::with(|builder| {
        builder.default_options(ControllerOptions::default().fair_namespaces(true))
    })
    .await;
    let calls = bench.record("log");
    for number in 0..50 {
        let noisy = ObjectKey::namespaced("noisy", &format!("noisy-{number}"));
        bench.config_maps.enqueue(&noisy);
    }
    for number in 0..3 {
        bench.config_maps.enqueue(&key(&format!("quiet-{number}")));
    }
    bench.factory.start(1).await.unwrap();
    settle().await;
    let names = calls.names();
    let last = names
        .iter()
        .rposition(|name| name.starts_with("quiet"))
        .unwrap();
    assert_eq!((names.len(), last), (53, 5), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn a_factory_decides_how_long_an_initial_list_waits() {
    for (share, expected) in [(1, 0), (10, 9)] {
        let ageing = lariat_queue::Ageing::new(Duration::ZERO, share);
        let bench = Bench::with(|builder| {
            builder.default_options(ControllerOptions::default().ageing(ageing))
        })
        .await;
        let calls = bench.on("slow", |_| async {
            time::sleep(SECOND).await;
            Ok(Outcome::done())
        });
        bench.create("old").await;
        for number in 0..30 {
            bench.config_maps.enqueue(&key(&format!("new-{number}")));
        }
        bench.factory.start(1).await.unwrap();
        time::sleep(40 * SECOND).await;
        let names = calls.names();
        let place = names.iter().position(|name| name == "old");
        assert!(
            place.is_some_and(|place| place <= expected + 1),
            "{share}: {place:?}"
        );
        assert!(
            place.is_some_and(|place| place >= expected),
            "{share}: {place:?}"
        );
    }
}

//! Hot loops: how they are detected, reported and slowed down.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_cluster::faults::{Action, Rule};
use lariat_controller::{
    Context, ControllerOptions, HandlerResult, Outcome, Pattern, Relation, Sentinel,
};
use lariat_core::Cause;
use serde_json::{Value, json};
use tokio::time;

use crate::bench::{Bench, SECOND, key};
use crate::logs::Logs;

/// Writes to the ConfigMap a handler was called for.
async fn write(cx: &Context<ConfigMap>, what: Value) -> Result<(), kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
    let (name, params) = (cx.key().name(), PatchParams::default());
    api.patch(name, &params, &Patch::Merge(what))
        .await
        .map(drop)
}

/// Registers a handler that counts its calls and writes each time.
fn writes(bench: &Bench, what: impl Fn(u32) -> Value + Send + Sync + 'static) -> Arc<AtomicU32> {
    let count = Arc::new(AtomicU32::new(0));
    let (counted, what) = (Arc::clone(&count), Arc::new(what));
    let handler = move |cx: Context<ConfigMap>| {
        let (counted, what) = (Arc::clone(&counted), Arc::clone(&what));
        async move {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            write(&cx, what(number)).await?;
            HandlerResult::Ok(Outcome::done())
        }
    };
    bench
        .config_maps
        .register_handler("writes", handler)
        .expect("it works");
    count
}

#[tokio::test(start_paused = true)]
async fn a_key_that_runs_because_of_its_own_writes_is_named_and_slowed_down() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    let count = writes(
        &bench,
        |number| json!({"data": {"seen": number.to_string()}}),
    );
    bench.start().await;
    bench.create("a").await;
    time::sleep(600 * SECOND).await;
    let runs = count.load(Ordering::SeqCst);
    assert!((25..60).contains(&runs), "{runs} runs in ten minutes");
    let hot_loops = bench.status().hot_loops;
    assert_eq!(hot_loops.len(), 1);
    let hot_loop = &hot_loops[0];
    assert_eq!(
        (&hot_loop.key, hot_loop.pattern),
        (&key("a"), Pattern::OwnWrites)
    );
    assert_eq!(hot_loop.handlers, ["writes".into()]);
    assert_eq!(hot_loop.fields, ["data.seen"]);
    assert_eq!(hot_loop.pause, 60 * SECOND);
    let text = logs.text();
    let warnings = text
        .lines()
        .filter(|line| line.contains("is in a hot loop"))
        .count();
    assert_eq!(warnings, 1, "{text}");
    for part in [
        "default/a",
        "data.seen",
        "writes",
        "because of what they write",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let history = bench.config_maps.history_of(&key("a"));
    let causes = history.last().unwrap().causes.to_string();
    assert!(causes.starts_with("written by writes "), "{causes}");
}

#[tokio::test(start_paused = true)]
async fn another_writers_change_does_not_wait_and_other_keys_are_not_slowed() {
    let bench = Bench::new().await;
    let count = writes(
        &bench,
        |number| json!({"data": {"seen": number.to_string()}}),
    );
    bench.start().await;
    bench.create("a").await;
    time::sleep(120 * SECOND).await;
    let before = count.load(Ordering::SeqCst);
    bench.change("a", "urgent").await;
    time::sleep(SECOND / 10).await;
    assert!(
        count.load(Ordering::SeqCst) > before,
        "it is called at once"
    );
    let before = count.load(Ordering::SeqCst);
    bench.create("b").await;
    time::sleep(SECOND / 10).await;
    assert!(count.load(Ordering::SeqCst) >= before + 25);
    bench.delete("a").await;
    time::sleep(SECOND / 10).await;
    let deletion = bench.config_maps.history_of(&key("a"));
    assert!(
        deletion
            .last()
            .unwrap()
            .causes
            .to_string()
            .contains("deleted")
    );
}

#[tokio::test(start_paused = true)]
async fn writes_that_change_nothing_are_found() {
    let bench = Bench::new().await;
    let handler = |cx: Context<ConfigMap>| async move {
        write(&cx, json!({"data": {"value": "same"}})).await?;
        HandlerResult::Ok(Outcome::requeue_after(SECOND / 10))
    };
    bench
        .config_maps
        .register_handler("polls", handler)
        .unwrap();
    bench.start().await;
    bench.create("a").await;
    time::sleep(120 * SECOND).await;
    let status = bench.status();
    assert_eq!(status.hot_loops[0].pattern, Pattern::NothingChanges);
    assert!(status.handlers[0].runs < 150, "{}", status.handlers[0].runs);
}

#[tokio::test(start_paused = true)]
async fn a_field_that_another_writer_reverts_is_named() {
    let bench = Bench::new().await;
    let count = writes(&bench, |_| json!({"data": {"owner": "us", "other": "x"}}));
    bench.start().await;
    bench.create("a").await;
    let rival: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    for _ in 0..200 {
        time::sleep(SECOND).await;
        let undo = json!({"data": {"owner": "them"}});
        rival
            .patch("a", &PatchParams::default(), &Patch::Merge(undo))
            .await
            .unwrap();
    }
    let hot_loops = bench.status().hot_loops;
    assert_eq!(hot_loops.len(), 1);
    assert_eq!(hot_loops[0].pattern, Pattern::Contested);
    assert_eq!(hot_loops[0].fields, ["data.owner"]);
    let runs = count.load(Ordering::SeqCst);
    assert!(runs < 60, "{runs} runs instead of 400");
}

/// As when two replicas without an election apply different states of a child, because the cache of one is behind.
#[tokio::test(start_paused = true)]
async fn a_reverted_field_of_a_related_object_slows_the_runs_it_causes() {
    let bench = Bench::new().await;
    let secrets = bench.factory.for_object::<Secret>();
    let rival: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "s", "labels": {"of": "a"}}})).unwrap();
    rival.create(&PostParams::default(), &secret).await.unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let labelled = |label: &str| Patch::Merge(json!({"metadata": {"labels": {"by": label}}}));
    bench
        .config_maps
        .register_handler("labels", move |cx: Context<ConfigMap>| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let api: Api<Secret> = Api::namespaced(cx.client(), "default");
                let params = PatchParams::default();
                api.patch("s", &params, &labelled("us")).await?;
                Ok(Outcome::done())
            }
        })
        .unwrap();
    // Each relation reports every write.
    for _ in 0..2 {
        bench
            .config_maps
            .watch_related(&secrets, Relation::label("of"));
    }
    bench.create("a").await;
    bench.start().await;
    for _ in 0..200 {
        time::sleep(SECOND).await;
        let params = PatchParams::default();
        rival.patch("s", &params, &labelled("them")).await.unwrap();
    }
    let runs = count.load(Ordering::SeqCst);
    assert!(runs < 60, "{runs} runs instead of 400");
    let hot_loops = bench.status().hot_loops;
    assert_eq!(hot_loops.len(), 1);
    assert_eq!(hot_loops[0].key, key("a"));
    assert_eq!(hot_loops[0].pattern, Pattern::Contested);
    assert_eq!(hot_loops[0].fields, ["metadata.labels.by"]);
    assert_eq!(hot_loops[0].brought_by.as_deref(), Some("Secret default/s"));
    // A change of the object itself is not delayed.
    bench.change("a", "x").await;
    time::sleep(SECOND / 10).await;
    assert!(count.load(Ordering::SeqCst) > runs);
}

/// The watch of metadata and the responses to writes differ in more than metadata.
#[tokio::test(start_paused = true)]
async fn a_related_object_of_which_others_write_other_fields_is_not_contested() {
    let bench = Bench::new().await;
    let secrets = bench.factory.for_object::<Secret>();
    let others: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "s", "labels": {"of": "a"}}, "stringData": {"value": "x"},
    }))
    .unwrap();
    others
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    let round = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&round);
    let labelled =
        |name: &str, round: u32| json!({"metadata": {"labels": {name: round.to_string()}}});
    bench
        .config_maps
        .register_handler("labels", move |cx: Context<ConfigMap>| {
            let patch = Patch::Merge(labelled("ours", seen.load(Ordering::SeqCst)));
            async move {
                let api: Api<Secret> = Api::namespaced(cx.client(), "default");
                api.patch("s", &PatchParams::default(), &patch).await?;
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench
        .config_maps
        .watch_related(&secrets, Relation::label("of"));
    bench.create("a").await;
    bench.start().await;
    for number in 1..30 {
        time::sleep(10 * SECOND).await;
        round.store(number, Ordering::SeqCst);
        let patch = Patch::Merge(labelled("theirs", number));
        let params = PatchParams::default();
        others.patch("s", &params, &patch).await.unwrap();
    }
    let hot_loops = bench.status().hot_loops;
    assert!(hot_loops.is_empty(), "{hot_loops:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hot_loop_over_two_kinds_is_found() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    let secrets = bench.factory.for_object::<Secret>();
    let api: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "s", "labels": {"of": "a"}}})).unwrap();
    api.create(&PostParams::default(), &secret).await.unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    bench
        .config_maps
        .register_handler("touches", move |cx: Context<ConfigMap>| {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let api: Api<Secret> = Api::namespaced(cx.client(), "default");
                let patch =
                    Patch::Merge(json!({"metadata": {"labels": {"n": number.to_string()}}}));
                api.patch("s", &PatchParams::default(), &patch).await?;
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench
        .config_maps
        .watch_related(&secrets, Relation::label("of"));
    secrets
        .register_handler("log", |_: Context<Secret>| async { Ok(Outcome::done()) })
        .unwrap();
    bench.create("a").await;
    bench.start().await;
    time::sleep(600 * SECOND).await;
    let runs = count.load(Ordering::SeqCst);
    assert!((25..60).contains(&runs), "{runs}");
    let hot_loops = bench.status().hot_loops;
    let brought_by = hot_loops[0].brought_by.clone().unwrap_or_default();
    assert!(
        brought_by.starts_with("Secret default/s written by touches "),
        "{brought_by}"
    );
    let text = logs.text();
    assert!(
        text.contains("is in a hot loop") && text.contains("Secret default/s"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_requeue_is_satisfied_by_its_own_write_is_found() {
    let bench = Bench::new().await;
    let handler = |cx: Context<ConfigMap>| async move {
        write(&cx, json!({"data": {"at": cx.run().to_string()}})).await?;
        HandlerResult::Ok(Outcome::requeue_after(30 * SECOND))
    };
    bench
        .config_maps
        .register_handler("clock", handler)
        .unwrap();
    bench.start().await;
    bench.create("a").await;
    time::sleep(600 * SECOND).await;
    let status = bench.status();
    assert!(status.handlers[0].runs < 60, "{}", status.handlers[0].runs);
    assert_eq!(status.hot_loops[0].pattern, Pattern::OwnWrites);
}

#[tokio::test(start_paused = true)]
async fn honest_work_is_not_suspected() {
    let bench = Bench::new().await;
    // A status that is written once for each change, and a progress that is written by schedule.
    let handler = |cx: Context<ConfigMap>| async move {
        let Some(object) = cx.object()? else {
            return Ok(Outcome::done());
        };
        let data = object.data.clone().unwrap_or_default();
        let (value, seen) = (data.get("value").cloned(), data.get("seen").cloned());
        if value != seen {
            write(&cx, json!({"data": {"seen": value}})).await?;
        }
        HandlerResult::Ok(Outcome::done())
    };
    bench
        .config_maps
        .register_handler("status", handler)
        .unwrap();
    let polls = |cx: Context<ConfigMap>| async move {
        let is_asked = |cause: &Cause| matches!(cause, Cause::Requeued { .. });
        if !cx.causes().iter().all(is_asked) {
            return Ok(Outcome::requeue_after(SECOND));
        }
        write(&cx, json!({"data": {"at": cx.run().to_string()}})).await?;
        HandlerResult::Ok(Outcome::requeue_after(SECOND))
    };
    bench
        .config_maps
        .register_handler("progress", polls)
        .unwrap();
    bench.start().await;
    bench.create("a").await;
    for number in 0..300 {
        bench.change("a", &number.to_string()).await;
        time::sleep(SECOND).await;
    }
    assert!(
        bench.status().hot_loops.is_empty(),
        "{:?}",
        bench.status().hot_loops
    );
}

#[tokio::test(start_paused = true)]
async fn the_sentinel_can_be_disabled_or_only_report() {
    for (sentinel, found) in [
        (Sentinel::off(), 0),
        (
            Sentinel::default().pauses(time::Duration::ZERO, time::Duration::ZERO),
            1,
        ),
    ] {
        let bench = Bench::with(|builder| {
            builder.default_options(ControllerOptions::default().sentinel(sentinel))
        })
        .await;
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        let handler = move |cx: Context<ConfigMap>| {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                if number >= 200 {
                    return Ok(Outcome::done());
                }
                write(&cx, json!({"data": {"n": number.to_string()}})).await?;
                HandlerResult::Ok(Outcome::done())
            }
        };
        bench
            .config_maps
            .register_handler("writes", handler)
            .unwrap();
        bench.start().await;
        bench.create("a").await;
        time::sleep(5 * SECOND).await;
        assert_eq!(count.load(Ordering::SeqCst), 201);
        assert_eq!(bench.status().hot_loops.len(), found);
    }
}

#[tokio::test(start_paused = true)]
async fn a_field_that_is_no_longer_contested_is_not_slowed_for_ever() {
    let bench = Bench::new().await;
    let count = writes(&bench, |_| json!({"data": {"owner": "us"}}));
    bench.start().await;
    bench.create("a").await;
    let rival: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    for _ in 0..100 {
        time::sleep(SECOND).await;
        let undo = Patch::Merge(json!({"data": {"owner": "them"}}));
        rival
            .patch("a", &PatchParams::default(), &undo)
            .await
            .unwrap();
    }
    assert_eq!(bench.status().hot_loops.len(), 1);
    // The rival has ended; others change other fields, and we keep writing.
    for number in 0..20 {
        time::sleep(60 * SECOND).await;
        bench.change("a", &number.to_string()).await;
    }
    assert!(bench.status().hot_loops.is_empty());
    let before = count.load(Ordering::SeqCst);
    bench.change("a", "x").await;
    time::sleep(SECOND / 10).await;
    assert!(count.load(Ordering::SeqCst) > before, "at once");
}

#[tokio::test(start_paused = true)]
async fn a_hot_loop_over_two_kinds_is_slowed_also_if_the_key_was_written_before() {
    let bench = Bench::new().await;
    let secrets = bench.factory.for_object::<Secret>();
    let api: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "s", "labels": {"of": "a"}}})).unwrap();
    api.create(&PostParams::default(), &secret).await.unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let handler = move |cx: Context<ConfigMap>| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let params = PatchParams::default();
            if number == 0 {
                let maps: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
                let patch = Patch::Merge(json!({"data": {"seen": "yes"}}));
                maps.patch(cx.key().name(), &params, &patch).await?;
            }
            let api: Api<Secret> = Api::namespaced(cx.client(), "default");
            let patch = Patch::Merge(json!({"metadata": {"labels": {"n": number.to_string()}}}));
            api.patch("s", &params, &patch).await?;
            HandlerResult::Ok(Outcome::done())
        }
    };
    bench
        .config_maps
        .register_handler("touches", handler)
        .unwrap();
    bench
        .config_maps
        .watch_related(&secrets, Relation::label("of"));
    bench.create("a").await;
    bench.start().await;
    time::sleep(600 * SECOND).await;
    let runs = count.load(Ordering::SeqCst);
    assert!((25..60).contains(&runs), "{runs}");
    assert!(
        bench.status().hot_loops[0].brought_by.is_some(),
        "it is said by what"
    );
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_enqueues_its_own_key_is_found_unless_it_asks_for_later() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    bench
        .config_maps
        .register_handler("spins", |cx: Context<ConfigMap>| {
            match cx.key().name() {
                "now" => cx.enqueue(cx.key()),
                _ => cx.enqueue_after(cx.key(), SECOND),
            }
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    bench.start().await;
    bench.config_maps.enqueue(&key("now"));
    bench.config_maps.enqueue(&key("later"));
    time::sleep(600 * SECOND).await;
    let of = |name: &str| calls.names().iter().filter(|each| *each == name).count();
    assert!((25..60).contains(&of("now")), "{}", of("now"));
    assert!(of("later") > 500, "{}", of("later"));
    let hot_loops = bench.status().hot_loops;
    assert_eq!(hot_loops.len(), 1);
    let brought_by = hot_loops[0].brought_by.clone().unwrap_or_default();
    assert!(
        brought_by.starts_with("enqueued by spins at "),
        "{brought_by}"
    );
}

/// Registers a handler of ConfigMaps that creates one Secret for each call, until there are so many, and relies on the
/// watch of what it created.
fn creates(bench: &Bench, size: usize) {
    let secrets = bench.factory.for_object::<Secret>();
    let cache = secrets.cache();
    bench
        .config_maps
        .watch_related(&secrets, Relation::label("of"));
    let handler = move |cx: Context<ConfigMap>| {
        let have = cache.store().len();
        async move {
            if have < size {
                let metadata = json!({"name": format!("s{have}"), "labels": {"of": "a"}});
                let secret: Secret = serde_json::from_value(json!({"metadata": metadata}))?;
                let api: Api<Secret> = Api::namespaced(cx.client(), "default");
                api.create(&PostParams::default(), &secret).await?;
            }
            HandlerResult::Ok(Outcome::done())
        }
    };
    bench
        .config_maps
        .register_handler("creates", handler)
        .expect("registered");
}

#[tokio::test(start_paused = true)]
async fn work_that_is_done_object_by_object_is_not_slowed() {
    let bench = Bench::new().await;
    creates(&bench, 1000);
    bench.create("a").await;
    bench.start().await;
    time::sleep(SECOND).await;
    let secrets = bench.factory.for_object::<Secret>().cache();
    assert_eq!(secrets.store().len(), 1000);
    assert!(bench.status().hot_loops.is_empty());
}

#[tokio::test(start_paused = true)]
async fn work_that_is_done_field_by_field_is_not_slowed_but_its_last_field_may_not_change_for_ever()
{
    let bench = Bench::new().await;
    let count = writes(&bench, |number| {
        let field = format!("field-{}", number.min(200));
        json!({"data": {field: number.to_string()}})
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(SECOND).await;
    let runs = count.load(Ordering::SeqCst);
    assert!((220..240).contains(&runs), "{runs}");
    time::sleep(600 * SECOND).await;
    let hot_loops = bench.status().hot_loops;
    assert_eq!(hot_loops[0].pattern, Pattern::OwnWrites);
    assert_eq!(hot_loops[0].fields, ["data.field-200"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_counts_into_its_object_and_fails_is_found() {
    let bench = Bench::new().await;
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let handler = move |cx: Context<ConfigMap>| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            write(&cx, json!({"data": {"attempts": number.to_string()}})).await?;
            HandlerResult::Err("not yet".into())
        }
    };
    bench
        .config_maps
        .register_handler("fails", handler)
        .unwrap();
    bench.start().await;
    bench.create("a").await;
    time::sleep(SECOND).await;
    let runs = count.load(Ordering::SeqCst);
    assert!((20..30).contains(&runs), "{runs} runs in the first second");
    let hot_loops = bench.status().hot_loops;
    assert_eq!(hot_loops[0].pattern, Pattern::OwnWrites);
    assert_eq!(hot_loops[0].fields, ["data.attempts"]);
    time::sleep(600 * SECOND).await;
    let runs = count.load(Ordering::SeqCst);
    assert!(runs < 60, "{runs} runs in ten minutes");
    let history = bench.config_maps.history_of(&key("a"));
    let causes = history.last().unwrap().causes.to_string();
    assert!(
        causes.starts_with("added at "),
        "what it is about: {causes}"
    );
    assert!(causes.contains(" of fails, written by fails "), "{causes}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_for_another_reason_keeps_its_delays() {
    let bench = Bench::new().await;
    let calls = bench.on("fails", |_| async { Err("not yet".into()) });
    let count = writes(
        &bench,
        |number| json!({"data": {"n": number.min(24).to_string()}}),
    );
    bench.start().await;
    bench.create("a").await;
    time::sleep(SECOND).await;
    let changes = count.load(Ordering::SeqCst) as usize;
    assert!(changes >= 24, "{changes}");
    let before = calls.len();
    time::sleep(120 * SECOND).await;
    let gaps: Vec<u64> = calls.all()[before..]
        .windows(2)
        .map(|pair| (pair[1].at - pair[0].at).as_secs())
        .collect();
    assert!(
        gaps.iter().all(|gap| *gap <= 31),
        "no pause on top: {gaps:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_hot_loop_is_found_although_the_watch_is_faster_than_the_responses() {
    let bench = Bench::new().await;
    let slow = Rule::new(Action::Bandwidth(1000)).verb("patch");
    bench.cluster.faults().add(slow);
    let count = writes(
        &bench,
        |number| json!({"data": {"seen": number.to_string()}}),
    );
    bench.start().await;
    bench.create("a").await;
    time::sleep(600 * SECOND).await;
    let runs = count.load(Ordering::SeqCst);
    assert!((25..60).contains(&runs), "{runs} runs in ten minutes");
    let history = bench.config_maps.history_of(&key("a"));
    let causes = history.last().unwrap().causes.to_string();
    assert!(causes.starts_with("updated "), "by the watch: {causes}");
    assert_eq!(bench.status().hot_loops[0].pattern, Pattern::OwnWrites);
}

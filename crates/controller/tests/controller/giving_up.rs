//! Keys that handlers have given up, and keys that leave a member while its handler fails for them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cache::Change;
use lariat_controller::{
    Context, Enqueue, HandlerError, HandlerOptions, HandlerResult, Outcome, Predicate, Resync,
    SharedControllerFactory,
};
use lariat_lease::{Lease, Sharding};
use lariat_testing::Logs;
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, Call, SECOND, key, settle};

/// Ends as the value of the object says; a value that is not known succeeds.
async fn obey(call: Call) -> HandlerResult {
    match call.value.as_deref() {
        Some("terminal") => Err(HandlerError::terminal("it is bad")),
        Some("failing") => Err("not yet".into()),
        _ => Ok(Outcome::done()),
    }
}

async fn create(bench: &Bench, name: &str, value: &str) {
    let object = json!({"metadata": {"name": name}, "data": {"value": value}});
    bench.apply(object).await;
}

/// Returns the numbers of failing and given up keys of the first handler.
fn counts(bench: &Bench) -> (usize, usize) {
    let status = bench.status();
    (status.handlers[0].failing, status.handlers[0].given_up)
}

fn given_up(bench: &Bench) -> Vec<String> {
    let keys = bench.config_maps.given_up_keys(100).into_iter();
    keys.map(|given_up| given_up.key.name().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn terminal_and_exhausted_keys_are_given_up_newest_first() {
    let bench = Bench::new().await;
    bench.on_with("obeys", HandlerOptions::default().max_retries(1), obey);
    bench.start().await;
    create(&bench, "a", "failing").await;
    time::sleep(10 * SECOND).await;
    create(&bench, "b", "terminal").await;
    create(&bench, "c", "good").await;
    time::sleep(10 * SECOND).await;
    assert_eq!(counts(&bench), (0, 2));
    let keys = bench.config_maps.given_up_keys(10);
    let shown: Vec<_> = keys
        .iter()
        .map(|each| {
            (
                each.key.name(),
                &*each.handler,
                each.error.as_deref(),
                each.ago.as_secs(),
            )
        })
        .collect();
    let expected = [
        ("b", "obeys", Some("it is bad"), 10),
        ("a", "obeys", Some("not yet"), 19),
    ];
    assert_eq!(shown, expected);
    assert_eq!(bench.config_maps.given_up_keys(1).len(), 1);
    assert_eq!(bench.config_maps.given_up_of(&key("a")).len(), 1);
    assert!(bench.config_maps.given_up_of(&key("c")).is_empty());
    assert!(bench.status().to_string().contains("failing 0  given up 2"));
}

#[tokio::test(start_paused = true)]
async fn key_is_not_given_up_while_a_delayed_call_waits() {
    let bench = Bench::new().await;
    let options = HandlerOptions::default().max_retries(1);
    let calls = bench.on_with("fails", options, |_| async {
        Err(HandlerError::from("not yet").retry_after(10 * SECOND))
    });
    bench.start().await;
    create(&bench, "a", "0").await;
    settle().await;
    bench.change("a", "1").await;
    settle().await;
    // The change has exhausted the retries, and the retry of the first call is still to come.
    assert_eq!((calls.len(), given_up(&bench).len()), (2, 0));
    time::sleep(11 * SECOND).await;
    assert_eq!((calls.len(), given_up(&bench).len()), (3, 0));
    time::sleep(10 * SECOND).await;
    assert_eq!((calls.len(), given_up(&bench).len()), (4, 1));
    time::sleep(1_000 * SECOND).await;
    assert_eq!(calls.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn undecodable_object_is_given_up_until_it_decodes() {
    #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
    struct Picky {
        data: std::collections::BTreeMap<String, u32>,
    }
    let bench = Bench::new().await;
    let maps = &bench.config_maps;
    let reads = |cx: Context<ConfigMap>| async move {
        let Some(raw) = cx.raw() else {
            return Ok(Outcome::done());
        };
        raw.decode::<Picky>(cx.gvk())?;
        HandlerResult::Ok(Outcome::done())
    };
    maps.register_handler("reads", reads).unwrap();
    bench.start().await;
    create(&bench, "a", "none").await;
    settle().await;
    assert_eq!(counts(&bench), (0, 1));
    bench
        .apply(json!({"metadata": {"name": "a"}, "data": null}))
        .await;
    settle().await;
    assert_eq!(given_up(&bench), ["a"], "data is missing now");
    bench.delete("a").await;
    settle().await;
    assert_eq!(counts(&bench), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn given_up_key_leaves_when_a_call_succeeds_or_fails_otherwise() {
    let bench = Bench::new().await;
    bench.on("obeys", obey);
    bench.start().await;
    create(&bench, "a", "terminal").await;
    create(&bench, "b", "terminal").await;
    settle().await;
    assert_eq!(counts(&bench), (0, 2));
    bench.change("a", "good").await;
    bench.change("b", "failing").await;
    settle().await;
    assert_eq!(counts(&bench), (1, 0));
    bench.change("b", "terminal").await;
    // The retry that was delayed before the change comes too.
    time::sleep(60 * SECOND).await;
    assert_eq!(counts(&bench), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn given_up_key_leaves_when_its_object_is_deleted_unseen() {
    let bench = Bench::new().await;
    let additions = Predicate::new(|change| matches!(change, Change::Added { .. }));
    bench.on_with("obeys", HandlerOptions::default().only(additions), obey);
    bench.start().await;
    create(&bench, "a", "terminal").await;
    settle().await;
    assert_eq!(counts(&bench), (0, 1));
    bench.delete("a").await;
    settle().await;
    assert_eq!(counts(&bench), (0, 0));
    create(&bench, "a", "good").await;
    settle().await;
    assert_eq!(counts(&bench), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn key_without_an_object_is_not_given_up() {
    let bench = Bench::new().await;
    bench.on("fails", |_| async { Err(HandlerError::terminal("no")) });
    bench.start().await;
    bench.config_maps.enqueue(&key("nothing"));
    settle().await;
    let status = bench.status();
    assert_eq!(status.handlers[0].failures, 1);
    assert_eq!(counts(&bench), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn final_failure_with_a_requeue_counts_as_failing() {
    let bench = Bench::new().await;
    let options = HandlerOptions::default().requeue_final(|_| Some(60 * SECOND));
    let calls = bench.on_with("obeys", options, obey);
    bench.start().await;
    create(&bench, "a", "terminal").await;
    time::sleep(90 * SECOND).await;
    assert_eq!(calls.len(), 2);
    assert_eq!(counts(&bench), (1, 0));
    let failing = bench.config_maps.failing_keys(1);
    assert!(failing[0].retry_in.is_some());
    bench.change("a", "good").await;
    settle().await;
    assert_eq!(counts(&bench), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn deregistered_handler_has_given_up_nothing_and_its_successor_starts_anew() {
    let bench = Bench::new().await;
    let fails = |cx: Context<ConfigMap>| async move {
        match cx.object()? {
            Some(_) => Err(HandlerError::terminal("it is bad")),
            None => HandlerResult::Ok(Outcome::done()),
        }
    };
    let before = bench.config_maps.register_handler("before", fails).unwrap();
    bench.record("stays");
    bench.start().await;
    bench.create("a").await;
    settle().await;
    assert_eq!(counts(&bench), (0, 1));
    before.deregister().await;
    assert_eq!(counts(&bench), (0, 0));
    assert!(given_up(&bench).is_empty());
    // The renamed handler is called for all objects.
    bench.config_maps.register_handler("after", fails).unwrap();
    settle().await;
    let status = bench.status();
    let renamed = &status.handlers[1];
    assert_eq!((&*renamed.name, renamed.given_up), ("after", 1));
}

#[tokio::test(start_paused = true)]
async fn given_up_key_is_called_again_by_a_resync_and_not_by_a_relist() {
    let bench = Bench::new().await;
    let options = HandlerOptions::default().resync(Resync::Every(600 * SECOND));
    let calls = bench.on_with("obeys", options, obey);
    bench.start().await;
    create(&bench, "a", "terminal").await;
    settle().await;
    assert!(bench.config_maps.relist());
    time::sleep(60 * SECOND).await;
    assert_eq!((calls.len(), counts(&bench)), (1, (0, 1)));
    time::sleep(600 * SECOND).await;
    assert_eq!((calls.len(), counts(&bench)), (2, (0, 1)));
    assert_eq!(calls.last().causes, "resync");
    bench
        .config_maps
        .enqueue_with(&key("a"), &Enqueue::now())
        .unwrap();
    settle().await;
    assert_eq!((calls.len(), counts(&bench)), (3, (0, 1)));
}

#[tokio::test(start_paused = true)]
async fn paused_handler_keeps_its_given_up_keys_until_it_is_resumed() {
    let bench = Bench::new().await;
    bench.on("obeys", obey);
    bench.start().await;
    create(&bench, "a", "terminal").await;
    settle().await;
    bench.config_maps.pause("obeys").unwrap();
    bench.change("a", "good").await;
    settle().await;
    assert_eq!(counts(&bench), (0, 1), "no call has succeeded");
    bench.config_maps.resume("obeys").unwrap();
    settle().await;
    assert_eq!(counts(&bench), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn given_up_keys_count_again_after_a_stop_and_a_start() {
    let bench = Bench::new().await;
    let calls = bench.on("obeys", obey);
    bench.start().await;
    create(&bench, "a", "terminal").await;
    create(&bench, "b", "terminal").await;
    settle().await;
    bench.factory.stop().await.unwrap();
    assert_eq!(counts(&bench), (0, 0), "it does not run");
    bench.delete("b").await;
    bench.start().await;
    settle().await;
    assert_eq!(calls.names().iter().filter(|name| *name == "a").count(), 1);
    assert_eq!(given_up(&bench), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn new_process_gives_the_same_keys_up_after_its_initial_list() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("given-up-by-new-process");
    // Of an earlier run of this test.
    let _ = std::fs::remove_dir_all(&folder);
    let bench = Bench::new().await;
    create(&bench, "a", "terminal").await;
    for run in 0..3 {
        // The second and the third run find the objects of the run before on disk.
        let builder = SharedControllerFactory::builder(bench.cluster.client());
        let factory = builder
            .caches(|caches| caches.warm_restart(&folder))
            .build();
        let maps = factory.for_object::<ConfigMap>();
        let (calls, handler) = crate::bench::recorder(obey);
        maps.register_handler("obeys", handler).unwrap();
        factory.start(1).await.unwrap();
        settle().await;
        let status = maps.status().unwrap();
        assert_eq!(
            (calls.len(), status.handlers[0].given_up),
            (1, 1),
            "run {run}"
        );
        factory.stop().await.unwrap();
    }
}

/// Starts a member of a ring, whose handler ends as the value of the object says.
fn member(bench: &Bench, name: &'static str, down: &Arc<AtomicBool>) -> SharedControllerFactory {
    let ring = Sharding::new(Lease::new("shop").identity(name));
    let builder = SharedControllerFactory::builder(bench.cluster.client());
    let factory = builder.sharding(ring).build();
    let down = Arc::clone(down);
    let (_, handler) = crate::bench::recorder(move |call| {
        let is_down = down.load(Ordering::Relaxed);
        async move {
            match call.value.as_deref() {
                Some("terminal") => Err(HandlerError::terminal("it is bad")),
                _ if is_down => Err("the back end is down".into()),
                _ => Ok(Outcome::done()),
            }
        }
    });
    let maps = factory.for_object::<ConfigMap>();
    maps.register_handler(name, handler).expect("registered");
    factory
}

/// Returns the numbers of failing and given up keys of a member.
fn counts_of(factory: &SharedControllerFactory) -> (usize, usize) {
    let status = factory.for_object::<ConfigMap>().status().expect("in use");
    (status.handlers[0].failing, status.handlers[0].given_up)
}

#[tokio::test(start_paused = true)]
async fn moved_keys_leave_the_counts_of_the_member_that_had_them() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    for number in 0..30 {
        create(&bench, &format!("bad-{number}"), "terminal").await;
        create(&bench, &format!("good-{number}"), "good").await;
    }
    let down = Arc::new(AtomicBool::new(true));
    let one = member(&bench, "one", &down);
    one.start(4).await.unwrap();
    time::sleep(10 * SECOND).await;
    assert_eq!(counts_of(&one), (30, 30));

    let two = member(&bench, "two", &down);
    two.start(4).await.unwrap();
    time::sleep(120 * SECOND).await;
    let (of_one, of_two) = (counts_of(&one), counts_of(&two));
    assert_eq!((of_one.0 + of_two.0, of_one.1 + of_two.1), (30, 30));
    assert!(of_one.0 < 30 && of_one.1 < 30, "{of_one:?}");

    down.store(false, Ordering::Relaxed);
    time::sleep(1800 * SECOND).await;
    assert_eq!((counts_of(&one).0, counts_of(&two).0), (0, 0));

    // The next outage is logged at once by both members: none still counts a key that has moved.
    let before = logs.text().lines().count();
    down.store(true, Ordering::Relaxed);
    for number in 0..30 {
        bench
            .apply(json!({"metadata": {"name": format!("good-{number}"), "labels": {"v": "x"}}}))
            .await;
    }
    time::sleep(SECOND).await;
    let text = logs.text();
    let fresh: Vec<&str> = text.lines().skip(before).collect();
    for name in ["one", "two"] {
        let handler = format!("handler={name} ");
        let said = fresh
            .iter()
            .filter(|line| line.contains("handler failed, retrying"));
        assert_eq!(
            said.filter(|line| line.contains(&handler)).count(),
            1,
            "{fresh:#?}"
        );
    }
    two.stop().await.unwrap();
    time::sleep(10 * SECOND).await;
    assert_eq!(counts_of(&one), (30, 30));
}

//! How a reflector watches on after a failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use lariat_cache::{KindOptions, Phase, Selection, SharedCacheFactory};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_core::Gvk;
use serde_json::json;
use tokio::time;
use tower_service::Service;

use crate::bench::{MINUTE, Recorder, Writer, cached, client_as, cluster, config_maps, factory};
use crate::script::{Answer, BodyEnd, Script, Scripted, event, list, quiet, status};

/// A server that lists `a` at 10, then at 30, and cuts its first watch after some lines.
fn script(lines: Vec<String>, next: impl Fn() -> Answer + Send + Sync + 'static) -> Script {
    Script::new(move |ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a", "b"]),
        (false, _) => list(30, "", &["a", "b"]),
        (true, 0) => Answer::Pieces(lines.clone(), BodyEnd::Cut),
        (true, _) => next(),
    })
}

/// A server without objects, which has no event to repeat, and is at version 15 when its first watch is cut.
fn empty() -> Script {
    Script::new(move |ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &[]),
        (false, _) => list(30, "", &["a"]),
        (true, 0) => Answer::Pieces(vec![bookmark(15)], BodyEnd::Cut),
        (true, _) => quiet(),
    })
}

fn then(line: String) -> impl Fn() -> Answer + Send + Sync {
    move || Answer::Pieces(vec![line.clone()], BodyEnd::Silence)
}

fn bookmark(version: u64) -> String {
    event("BOOKMARK", "", version)
}

/// A line about `a` at version 11 with a label.
fn labelled(label: &str) -> String {
    let metadata = json!({
        "name": "a", "uid": "a", "resourceVersion": "11", "labels": {"label": label},
    });
    let event = json!({"type": "MODIFIED", "object": {"metadata": metadata}});
    format!("{event}\n")
}

#[tokio::test(start_paused = true)]
async fn watch_after_failure_begins_with_the_last_event() {
    for (line, from) in [
        (event("MODIFIED", "a", 11), "resourceVersion=10&"),
        (event("DELETED", "b", 12), "resourceVersion=11&"),
    ] {
        let lines = vec![event("ADDED", "c", 11), line, bookmark(15)];
        let bench = Scripted::of(script(lines, quiet));
        time::sleep(MINUTE).await;
        assert!(bench.script.queries(true)[1].contains(from), "{from}");
        assert_eq!((bench.script.lists(), bench.script.watches()), (1, 2));
        assert_eq!(bench.script.checks(), [""; 0], "no further request");
        assert_eq!(bench.recorder.reported().len(), 4, "nothing twice");
    }
}

#[tokio::test(start_paused = true)]
async fn watch_without_the_last_event_is_followed_by_a_list() {
    let (changed, deleted) = (event("MODIFIED", "a", 11), event("DELETED", "b", 12));
    let recreated = event("DELETED", "b", 12).replace(r#""uid":"b""#, r#""uid":"other""#);
    for (last, first) in [
        (&changed, quiet()),
        (&changed, then(event("MODIFIED", "b", 11))()),
        (&changed, then(event("MODIFIED", "a", 12))()),
        (&changed, then(event("DELETED", "a", 11))()),
        (&changed, then(bookmark(20))()),
        (&changed, then("{}\n".to_owned())()),
        (&deleted, quiet()),
        (&deleted, then(event("MODIFIED", "b", 12))()),
        (&deleted, then(recreated)()),
    ] {
        let first = parking_lot::Mutex::new(Some(first));
        let next = move || first.lock().take().unwrap_or_else(quiet);
        let bench = Scripted::of(script(vec![last.clone()], next).forgetting());
        time::sleep(MINUTE).await;
        assert_eq!(
            (bench.script.lists(), bench.script.watches()),
            (2, 3),
            "{last}"
        );
        assert!(bench.script.queries(true)[2].contains("resourceVersion=30&"));
        assert_eq!(bench.recorder.known().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn last_event_with_other_content_is_followed_by_a_list() {
    for (label, lists) in [("same", 1), ("other", 2)] {
        let next = then(labelled(label));
        let bench = Scripted::of(script(vec![labelled("same")], next).forgetting());
        time::sleep(MINUTE).await;
        assert_eq!(bench.script.lists(), lists, "{label}");
    }
}

#[tokio::test(start_paused = true)]
async fn expired_version_of_the_last_event_is_followed_by_a_list() {
    let lines = vec![event("MODIFIED", "a", 11), bookmark(15)];
    let answers = parking_lot::Mutex::new(vec![status(410, "Expired")]);
    let next = move || answers.lock().pop().unwrap_or_else(quiet);
    let bench = Scripted::of(script(lines, next));
    time::sleep(MINUTE).await;
    assert_eq!((bench.script.lists(), bench.script.watches()), (2, 3));
}

/// `a` and `b` are listed at version 10, and no event follows.
#[tokio::test(start_paused = true)]
async fn watch_after_failure_without_an_event_begins_with_the_newest_listed_object() {
    let bench = Scripted::of(script(vec![bookmark(15)], quiet));
    time::sleep(MINUTE).await;
    assert!(bench.script.queries(true)[1].contains("resourceVersion=9&"));
    assert_eq!((bench.script.lists(), bench.script.watches()), (1, 2));
    assert_eq!(bench.script.checks(), [""; 0], "no further request");
    assert_eq!(bench.recorder.reported().len(), 2, "nothing twice");
}

#[tokio::test(start_paused = true)]
async fn watch_without_the_newest_listed_object_is_followed_by_a_list() {
    for first in [
        quiet(),
        then(event("ADDED", "b", 11))(),
        then(event("DELETED", "b", 10))(),
        then(bookmark(20))(),
    ] {
        let first = parking_lot::Mutex::new(Some(first));
        let next = move || first.lock().take().unwrap_or_else(quiet);
        let bench = Scripted::of(script(vec![bookmark(15)], next).forgetting());
        time::sleep(MINUTE).await;
        assert_eq!((bench.script.lists(), bench.script.watches()), (2, 3));
    }
}

/// The server keeps its history for minutes, and the object may be older.
#[tokio::test(start_paused = true)]
async fn expired_version_of_the_newest_listed_object_is_followed_by_a_check() {
    let expired =
        json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}});
    for first in [status(410, "Expired"), then(format!("{expired}\n"))()] {
        let first = parking_lot::Mutex::new(Some(first));
        let next = move || first.lock().take().unwrap_or_else(quiet);
        let bench = Scripted::of(script(vec![bookmark(15)], next).forgetting());
        time::sleep(MINUTE).await;
        assert!(bench.script.queries(true)[2].contains("resourceVersion=15&"));
        assert_eq!((bench.script.lists(), bench.script.watches()), (1, 3));
        assert_eq!(bench.script.checks(), ["limit=1"]);
    }
}

/// Between the newest listed object and the version of the watch, only objects that were deleted by then have events.
#[tokio::test(start_paused = true)]
async fn change_from_before_the_list_is_followed_by_a_list_if_the_object_was_not_deleted() {
    let (added, deleted) = (event("ADDED", "c", 11), event("DELETED", "c", 12));
    let (changed, later) = (event("MODIFIED", "d", 13), event("ADDED", "d", 16));
    for (lines, lists) in [
        (vec![&deleted], 1),
        (vec![&added, &deleted, &bookmark(15)], 1),
        (vec![&added, &deleted, &later], 1),
        (vec![&added, &deleted, &added, &bookmark(15)], 2),
        (vec![&added, &changed, &deleted, &bookmark(16)], 2),
        (vec![&added, &later], 2),
        (vec![&event("DELETED", "a", 12)], 2),
        (vec![&event("MODIFIED", "a", 12)], 2),
    ] {
        let lines: String = lines.into_iter().map(String::as_str).collect();
        let first = then(format!("{}{lines}", event("ADDED", "b", 10)))();
        let first = parking_lot::Mutex::new(Some(first));
        let next = move || first.lock().take().unwrap_or_else(quiet);
        let bench = Scripted::of(script(vec![bookmark(15)], next).forgetting());
        time::sleep(MINUTE).await;
        assert_eq!(bench.script.lists(), lists, "{lines}");
        assert_eq!(bench.script.checks(), [""; 0]);
    }
}

/// A watch of which no line shows whether an object was deleted before the list.
#[tokio::test(start_paused = true)]
async fn watch_cut_before_the_version_of_the_list_begins_again_before_it() {
    for (ends, lists) in [(vec![event("DELETED", "c", 12)], 1), (vec![], 2)] {
        let (listed, added) = (event("ADDED", "b", 10), event("ADDED", "c", 11));
        let script = Script::new(move |ask| match (ask.watch, ask.number) {
            (false, 0) => list(10, "", &["a", "b"]),
            (false, _) => list(30, "", &["a", "b", "c"]),
            (true, 0) => Answer::Pieces(vec![bookmark(15)], BodyEnd::Cut),
            (true, 1) => Answer::Pieces(vec![listed.clone(), added.clone()], BodyEnd::Cut),
            (true, 2) => {
                let mut lines = vec![listed.clone(), added.clone()];
                lines.extend(ends.clone());
                lines.push(bookmark(15));
                Answer::Pieces(lines, BodyEnd::Silence)
            }
            (true, _) => quiet(),
        });
        let bench = Scripted::of(script.forgetting());
        time::sleep(MINUTE).await;
        assert!(bench.script.queries(true)[2].contains("resourceVersion=9&"));
        assert_eq!(bench.script.lists(), lists);
    }
}

/// A restart forgets old versions; the next one of the same kind is listed at once, without a warning.
#[tokio::test(start_paused = true)]
async fn expired_versions_of_the_newest_object_and_of_the_watch_are_followed_by_a_list_at_once() {
    let answers = parking_lot::Mutex::new(vec![status(410, "Expired"), status(410, "Expired")]);
    let next = move || answers.lock().pop().unwrap_or_else(quiet);
    let bench = Scripted::of(script(vec![bookmark(15)], next).forgetting());
    let begun = time::Instant::now();
    while bench.script.watches() < 4 {
        time::sleep(Duration::from_millis(10)).await;
    }
    // The delay after the watch that was cut, which had no event.
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(bench.script.checks(), ["limit=1"]);
    assert_eq!((bench.script.lists(), bench.status().last_error), (2, None));
}

/// A watch that stays for a time after its first line, and is cut then.
fn cut_after(line: String, stays: Duration) -> Answer {
    let lines = futures::stream::iter([Ok(Frame::data(Bytes::from(line)))]);
    let cut = futures::stream::once(async move {
        time::sleep(stays).await;
        Err("connection reset".into())
    });
    Answer::Body(StreamBody::new(lines.chain(cut)).boxed_unsync())
}

#[tokio::test(start_paused = true)]
async fn expired_event_of_more_than_five_minutes_before_is_followed_by_a_check() {
    for (minutes, lists, checks) in [(4, 2, 0), (6, 1, 1)] {
        let bench = Scripted::start(move |ask| match (ask.watch, ask.number) {
            (false, _) => list(10, "", &["a"]),
            (true, 0) => cut_after(event("MODIFIED", "a", 11), minutes * MINUTE),
            (true, 1) => status(410, "Expired"),
            (true, _) => quiet(),
        });
        time::sleep((minutes + 1) * MINUTE).await;
        assert!(bench.script.queries(true)[1].contains("resourceVersion=10&"));
        assert_eq!(
            (bench.script.lists(), bench.script.checks().len()),
            (lists, checks)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn version_below_a_reached_one_is_followed_by_a_list() {
    for (version, lists) in [(20, 1), (15, 1), (14, 2)] {
        let script = empty();
        let bench = Scripted::of(script.checked(move |_| list(version, "", &["a"])));
        time::sleep(MINUTE).await;
        assert_eq!(bench.script.checks(), ["limit=1"]);
        assert_eq!((bench.script.lists(), bench.script.watches()), (lists, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn refused_request_for_the_version_is_followed_by_a_list() {
    for code in [400, 403, 422, 500] {
        let script = empty();
        let bench = Scripted::of(script.checked(move |_| status(code, "Invalid")));
        // The delays of six failed requests are random, and together a little more than a minute at most.
        let listed = async {
            while bench.script.watches() < 2 {
                time::sleep(Duration::from_secs(1)).await;
            }
        };
        let listed = time::timeout(2 * MINUTE, listed).await;
        listed.expect("the kind is listed");
        assert_eq!(
            (bench.script.lists(), bench.script.watches()),
            (2, 2),
            "{code}"
        );
        assert_eq!(bench.status().phase, Phase::Synced);
        assert_eq!(bench.status().last_error, None);
    }
}

#[tokio::test(start_paused = true)]
async fn version_check_is_repeated_while_the_server_is_away() {
    let script = empty();
    let bench = Scripted::of(script.checked(|ask| match ask.number {
        0..8 => Answer::Nothing,
        8 => status(429, "TooManyRequests"),
        _ => list(20, "", &["a"]),
    }));
    time::sleep(5 * MINUTE / 2).await;
    assert_eq!(bench.script.checks().len(), 10);
    assert_eq!((bench.script.lists(), bench.script.watches()), (1, 2));
}

/// A server that ends closes its watches in good order, before the time that was asked for.
#[tokio::test(start_paused = true)]
async fn watch_that_is_closed_before_its_time_is_followed_by_a_check() {
    for (version, lists) in [(20, 1), (14, 2)] {
        let script = Script::new(|ask| match (ask.watch, ask.number) {
            (false, 0) => list(10, "", &[]),
            (false, _) => list(30, "", &["a"]),
            (true, 0) => Answer::Pieces(vec![bookmark(15)], BodyEnd::Clean),
            (true, _) => quiet(),
        });
        let bench = Scripted::of(script.checked(move |_| list(version, "", &["a"])));
        time::sleep(MINUTE).await;
        assert_eq!((bench.script.lists(), bench.script.watches()), (lists, 2));
        assert_eq!(bench.script.checks().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn watch_after_a_full_timeout_continues_from_its_version() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, _) => list(10, "", &[]),
        (true, 0) => closed_at_its_time(&ask.query),
        (true, _) => quiet(),
    });
    time::sleep(11 * MINUTE).await;
    assert!(bench.script.queries(true)[1].contains("resourceVersion=11&"));
    assert_eq!(bench.script.checks(), [""; 0]);
}

/// A watch with an event and bookmarks that lasts as long as was asked for.
fn closed_at_its_time(query: &str) -> Answer {
    let timeout = query
        .split('&')
        .find_map(|it| it.strip_prefix("timeoutSeconds="));
    let timeout: u64 = timeout
        .expect("it has one")
        .parse()
        .expect("it is a number");
    let first = futures::stream::once(async { Ok(Frame::data(event("MODIFIED", "a", 11).into())) });
    let rest = futures::stream::once(async move {
        time::sleep(Duration::from_secs(timeout)).await;
        Ok(Frame::data(Bytes::new()))
    });
    Answer::Body(StreamBody::new(first.chain(rest)).boxed_unsync())
}

/// Requests of lists of one object, counted.
fn counting(cluster: &Cluster) -> (Client, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let (service, asked) = (cluster.service(), Arc::clone(&count));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        if request.uri().query() == Some("limit=1") {
            asked.fetch_add(1, Ordering::Relaxed);
        }
        service.clone().call(request)
    });
    (Client::new(service, "default"), count)
}

#[tokio::test(start_paused = true)]
async fn kinds_without_events_ask_once_for_the_version_together() {
    let cluster = cluster().await;
    let (client, asked) = counting(&cluster);
    let factory = factory(client);
    let kinds = ["ConfigMap", "Secret", "Service", "ServiceAccount", "Pod"];
    let informers = kinds.map(|kind| factory.for_kind(Gvk::new("", "v1", kind)));
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("synced");
    for cuts in 1..4 {
        time::sleep(2 * MINUTE).await;
        cluster.cut_watches();
        time::sleep(MINUTE).await;
        assert_eq!(asked.load(Ordering::Relaxed), cuts);
    }
    assert!(
        informers
            .iter()
            .all(|informer| informer.status().loads == 1)
    );
}

/// Without it no object is newer than its deletion, which the watch reported.
#[tokio::test(start_paused = true)]
async fn reselected_own_write_is_not_taken_for_a_restore() {
    let cluster = cluster().await;
    let client = cluster.client();
    let others: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let selection = Selection::all().with_labels("colour=red".parse().unwrap());
    let options = KindOptions::default().selection(selection);
    let factory = SharedCacheFactory::builder(client_as(&cluster, "informer"))
        .kind_options(config_maps(), options)
        .build();
    let informer = factory.for_kind(config_maps());
    informer.need::<ConfigMap>();
    factory.start();
    assert!(informer.synced().await);
    let paint = async |api: &Api<ConfigMap>, name: &str, labels: serde_json::Value| {
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        let painted = api.patch(name, &PatchParams::default(), &patch).await;
        painted.expect("patched");
    };
    for name in ["a", "b"] {
        Writer::new(client.clone()).create(name).await;
        paint(&others, name, json!({"colour": "red"})).await;
    }
    for colour in ["blue", "red"] {
        paint(&others, "b", json!({"colour": colour})).await;
    }
    time::sleep(MINUTE).await;
    assert_eq!(cached(&informer).len(), 2);
    let loads = informer.status().loads;

    let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE);
    let rule = Rule::new(Action::Refuse(refusal)).client("informer");
    for verb in ["list", "watch"] {
        let away = rule.clone().verb(verb).for_time(MINUTE / 6);
        cluster.faults().add(away);
    }
    cluster.cut_watches();
    let own: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    paint(&own, "b", json!({"own": "1"})).await;
    time::sleep(2 * MINUTE).await;
    assert!(informer.status().watches > 1);
    assert_eq!(informer.status().loads, loads);
}

/// As a server that forgot what came after its backup, while the watch's end was orderly.
#[tokio::test(start_paused = true)]
async fn a_list_from_before_what_was_reached_is_compared_by_content() {
    let with = |value: &str| {
        let metadata = r#""name":"a","uid":"a","resourceVersion":"11""#;
        format!(r#"{{"metadata":{{{metadata},"labels":{{"v":"{value}"}}}}}}"#)
    };
    let (before, after) = (with("before"), with("after"));
    let modified = format!("{{\"type\":\"MODIFIED\",\"object\":{before}}}\n");
    let script = Script::new(move |ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a"]),
        (false, _) => {
            let items = after.clone();
            let text = format!(r#"{{"metadata":{{"resourceVersion":"11"}},"items":[{items}]}}"#);
            Answer::Whole(200, Vec::new(), text)
        }
        (true, 0) => Answer::Pieces(
            vec![modified.clone(), event("ADDED", "b", 12)],
            BodyEnd::Clean,
        ),
        (true, 1) => status(410, "Expired"),
        (true, _) => quiet(),
    });
    let bench = Scripted::of(script.forgetting());
    time::sleep(MINUTE).await;
    assert_eq!(
        bench.recorder.reported()[2..],
        ["b added at 12", "a updated 11 → 11", "b deleted at 12"]
    );
}

/// The API server sends metadata as `PartialObjectMetadata`, while the answer to a write is a whole object.
#[tokio::test(start_paused = true)]
async fn own_write_to_a_kind_of_metadata_is_not_taken_for_a_restore() {
    let cluster = cluster().await;
    Writer::new(cluster.client()).create("a").await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    let recorder = Arc::new(Recorder::default());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    factory.start();
    assert!(informer.synced().await);
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "1"}}}));
    let patched = api.patch("a", &PatchParams::default(), &patch).await;
    patched.expect("patched");
    time::sleep(MINUTE).await;
    let (loads, reported) = (informer.status().loads, recorder.reported());
    assert_eq!(reported.len(), 2, "{reported:?}");

    cluster.cut_watches();
    time::sleep(MINUTE).await;
    assert!(informer.status().watches > 1);
    assert_eq!(
        (informer.status().loads, recorder.reported()),
        (loads, reported)
    );
}

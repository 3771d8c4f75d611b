//! What a reflector asks before it watches on.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use lariat_cache::{KindOptions, Phase, Selection, SharedCacheFactory};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use serde_json::json;
use tokio::time;

use crate::bench::{MINUTE, Recorder, Writer, cached, client_as, cluster, config_maps, factory};
use crate::script::{Answer, BodyEnd, Script, Scripted, event, list, object, quiet, status};

/// A watch that ends after a moment, having said something.
fn cut() -> Answer {
    Answer::Pieces(vec![event("MODIFIED", "a", 11)], BodyEnd::Cut)
}

/// An answer to a check: the list's version, and an object in it.
fn seen(version: u64, object: Option<String>) -> Answer {
    let object = object.unwrap_or_default();
    let text = format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"items":[{object}]}}"#);
    Answer::Whole(200, Vec::new(), text)
}

/// A server that lists `a` at 10, then at 30, and cuts its first watch after version 11.
fn script(checks: impl Fn(&crate::script::Ask) -> Answer + Send + Sync + 'static) -> Script {
    let script = Script::new(|ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a"]),
        (false, _) => list(30, "", &["a"]),
        (true, 0) => cut(),
        (true, _) => quiet(),
    });
    script.checked(checks)
}

#[tokio::test(start_paused = true)]
async fn the_newest_object_is_asked_for_before_a_watch_goes_on_after_a_failure() {
    let bench = Scripted::of(script(|_| seen(20, Some(object("a", 11)))));
    time::sleep(MINUTE).await;
    let checks = bench.script.checks();
    assert_eq!(checks, ["limit=1&fieldSelector=metadata.name%3Da"]);
    assert!(bench.script.queries(true)[1].contains("resourceVersion=11&"));
    assert_eq!(bench.script.lists(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_that_has_changed_since_is_asked_for_as_it_was() {
    let was = |ask: &crate::script::Ask| ask.query.contains("Exact");
    // It is the same history …
    let bench = Scripted::of(script(move |ask| {
        if was(ask) {
            seen(11, Some(object("a", 11)))
        } else {
            seen(20, Some(object("a", 15)))
        }
    }));
    time::sleep(MINUTE).await;
    let exact = "limit=1&resourceVersion=11&resourceVersionMatch=Exact\
                 &fieldSelector=metadata.name%3Da";
    assert_eq!(bench.script.checks()[1], exact);
    assert_eq!((bench.script.lists(), bench.script.watches()), (1, 2));

    // … or another one, in which the object was older then, or was not there …
    for then in [Some(object("a", 9)), None] {
        let bench = Scripted::of(script(move |ask| {
            if was(ask) {
                seen(11, then.clone())
            } else {
                seen(20, None)
            }
        }));
        time::sleep(MINUTE).await;
        assert_eq!((bench.script.lists(), bench.script.watches()), (2, 2));
        assert!(bench.script.queries(true)[1].contains("resourceVersion=30&"));
    }

    // … or the server does not know any more.
    let bench = Scripted::of(script(move |ask| {
        if was(ask) {
            status(410, "Expired")
        } else {
            seen(20, None)
        }
    }));
    time::sleep(MINUTE).await;
    assert_eq!((bench.script.lists(), bench.script.watches()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn the_last_object_that_was_deleted_is_asked_for_as_well() {
    let with = |now: Option<u64>, then: Option<u64>| {
        let script = Script::new(|ask| match (ask.watch, ask.number) {
            (false, 0) => list(10, "", &["a", "b"]),
            (false, _) => list(30, "", &["a", "b"]),
            (true, 0) => Answer::Pieces(vec![event("DELETED", "b", 12)], BodyEnd::Cut),
            (true, _) => quiet(),
        });
        script.checked(move |ask| {
            let b = |at: Option<u64>| at.map(|version| object("b", version));
            match (ask.query.contains("%3Db"), ask.query.contains("Exact")) {
                (false, _) => seen(20, Some(object("a", 10))),
                (true, false) => seen(20, b(now)),
                (true, true) => seen(12, b(then)),
            }
        })
    };
    let asked = "limit=1&fieldSelector=metadata.name%3Db";
    for (now, then, lists) in [
        // It is the same history …
        (None, None, 1),
        // … and this one too, in which it came back into the selection …
        (Some(15), None, 1),
        // … and this one is another.
        (Some(9), Some(9), 2),
    ] {
        let bench = Scripted::of(with(now, then));
        time::sleep(MINUTE).await;
        assert_eq!(bench.script.checks()[1], asked, "{now:?}");
        assert_eq!(bench.script.lists(), lists, "{now:?}");
        assert_eq!(bench.script.watches(), 2, "{now:?}");
    }
}

/// Another object has the name of the one whose deletion the watch reported.
#[tokio::test(start_paused = true)]
async fn a_name_that_was_deleted_last_shows_the_history_whoever_has_it() {
    let recreated =
        |version: u64| object("b", version).replace(r#""uid":"b""#, r#""uid":"recreated""#);
    for (then, lists) in [
        // It was created again since …
        (None, 1),
        // … or was there all the time, which is another history.
        (Some(recreated(9)), 2),
    ] {
        let script = Script::new(|ask| match (ask.watch, ask.number) {
            (false, 0) => list(10, "", &["a", "b"]),
            (false, _) => list(30, "", &["a", "b"]),
            (true, 0) => Answer::Pieces(vec![event("DELETED", "b", 12)], BodyEnd::Cut),
            (true, _) => quiet(),
        });
        let script = script.checked(move |ask| {
            match (ask.query.contains("%3Db"), ask.query.contains("Exact")) {
                (false, _) => seen(20, Some(object("a", 10))),
                (true, false) => seen(20, Some(recreated(15))),
                (true, true) => seen(12, then.clone()),
            }
        });
        let bench = Scripted::of(script);
        time::sleep(MINUTE).await;
        assert_eq!((bench.script.lists(), bench.script.watches()), (lists, 2));
    }
}

/// Without it no object is newer than its deletion, which the watch reported.
#[tokio::test(start_paused = true)]
async fn what_came_back_into_the_selection_and_was_written_here_is_no_other_history() {
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

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_understand_the_question_is_watched_on() {
    for answer in [400, 403, 422] {
        let bench = Scripted::of(script(move |_| status(answer, "Invalid")));
        time::sleep(MINUTE).await;
        assert_eq!((bench.script.lists(), bench.script.watches()), (1, 2));
    }
    let html = || Answer::Whole(200, Vec::new(), "<html>".to_owned());
    let bench = Scripted::of(script(move |_| html()));
    time::sleep(MINUTE).await;
    assert_eq!((bench.script.lists(), bench.script.watches()), (1, 2));

    // One that fails at it is listed before long.
    let bench = Scripted::of(script(|_| status(500, "InternalError")));
    time::sleep(2 * MINUTE).await;
    assert_eq!((bench.script.lists(), bench.script.watches()), (2, 2));
    assert_eq!(bench.status().phase, Phase::Synced);
    assert_eq!(bench.status().last_error, None);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_still_away_is_asked_again() {
    let bench = Scripted::of(script(|ask| match ask.number {
        0..8 => Answer::Nothing,
        8 => status(429, "TooManyRequests"),
        _ => seen(20, Some(object("a", 11))),
    }));
    time::sleep(5 * MINUTE).await;
    assert_eq!(bench.script.checks().len(), 10);
    assert_eq!((bench.script.lists(), bench.script.watches()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_as_watches_do_are_opened_again_without_a_question() {
    let script = Script::new(|ask| {
        if ask.watch {
            Answer::Pieces(
                vec![event("MODIFIED", "a", 11 + ask.number as u64)],
                BodyEnd::Clean,
            )
        } else {
            list(10, "", &["a"])
        }
    });
    let bench = Scripted::of(script.checked(|_| panic!("it is not asked")));
    time::sleep(MINUTE).await;
    assert!(bench.script.watches() > 10);
    assert_eq!((bench.script.checks().len(), bench.script.lists()), (0, 1));
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
    let bench = Scripted::start(move |ask| match (ask.watch, ask.number) {
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
    time::sleep(MINUTE).await;
    assert_eq!(
        bench.recorder.reported()[2..],
        ["b added at 12", "a updated 11 → 11", "b deleted at 12"]
    );
}

/// The API server sends metadata as `PartialObjectMetadata`, while the answer to a write is a whole object.
#[tokio::test(start_paused = true)]
async fn what_was_written_to_a_kind_of_metadata_is_no_other_history() {
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

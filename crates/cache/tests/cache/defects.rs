//! Ten defects of kube-runtime 5.0, none of which may be found here.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DynamicObject;
use lariat_cache::Phase;
use lariat_core::{Gvk, ObjectKey};
use tokio::time;

use crate::bench::Writer;
use crate::bench::{
    MINUTE, Recorder, cluster, config_maps, eventually, factory, listing, no_client,
};
use crate::script::{Answer, BodyEnd, Script, Scripted, event, list, quiet, status};

#[tokio::test(start_paused = true)]
async fn d1_all_that_wait_for_the_cache_are_woken() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    let waiting = (0..20).map(|_| {
        let informer = informer.clone();
        async move { informer.synced().await }
    });
    let start = async {
        time::sleep(MINUTE).await;
        factory.start();
    };
    let all = futures::future::join(futures::future::join_all(waiting), start);
    let (filled, ()) = time::timeout(2 * MINUTE, all).await.expect("all are woken");
    assert!(filled.into_iter().all(|filled| filled));
}

#[tokio::test(start_paused = true)]
async fn d2_a_reader_of_changes_is_woken_whatever_has_left_the_cache_meanwhile() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, _) => list(1, "", &[]),
        (true, 0) => Answer::Slow(
            vec![
                event("ADDED", "a", 2),
                event("DELETED", "a", 3),
                event("ADDED", "b", 4),
                event("ADDED", "c", 5),
            ],
            Duration::from_secs(1),
        ),
        _ => quiet(),
    });
    let mut changes = bench.informer.changes();
    time::sleep(Duration::from_millis(3500)).await;
    let mut reported = Vec::new();
    for _ in 0..2 {
        let next = time::timeout(MINUTE, changes.next())
            .await
            .expect("it is woken");
        reported.push(next.key().name().to_owned());
    }
    assert_eq!(
        reported,
        ["b", "c"],
        "what came and went unread is left out"
    );
}

#[tokio::test(start_paused = true)]
async fn d3_expiry_as_an_http_status_of_a_watch_leads_to_a_list() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a"]),
        (false, _) => list(20, "", &["b"]),
        (true, 0) => status(410, "Expired"),
        _ => quiet(),
    });
    time::sleep(MINUTE).await;
    assert_eq!((bench.script.lists(), bench.script.watches()), (2, 2));
    assert_eq!(
        bench.recorder.known().into_keys().collect::<Vec<_>>(),
        ["b"]
    );
}

#[tokio::test(start_paused = true)]
async fn d4_a_server_without_streaming_lists_is_listed() {
    let script = Script::new(|ask| match ask.watch {
        true if ask.query.contains("sendInitialEvents") => status(422, "Invalid"),
        true => quiet(),
        false => list(10, "", &["a"]),
    });
    let factory = factory(no_client());
    let informer = factory.for_source(config_maps(), Arc::new(script.clone()));
    factory.start();
    time::sleep(4 * MINUTE).await;
    assert_eq!(informer.status().phase, Phase::Synced);
    assert_eq!((script.lists(), script.watches()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn d5_lists_that_fail_back_off_exponentially() {
    let bench = Scripted::start(|_| status(403, "Forbidden"));
    time::sleep(10 * MINUTE).await;
    let lists = bench.script.lists();
    assert!((15..40).contains(&lists), "{lists} lists in ten minutes");
}

fn expired(token: &str) -> Answer {
    let text = format!(
        r#"{{"kind":"Status","reason":"Expired","code":410,"metadata":{{"continue":"{token}"}}}}"#
    );
    Answer::Whole(410, Vec::new(), text)
}

#[tokio::test(start_paused = true)]
async fn d6_an_expired_token_is_followed_by_the_inconsistent_one_it_comes_with() {
    let bench = Scripted::start(|ask| match () {
        () if ask.watch => quiet(),
        () if ask.query.contains("continue=old") => expired("new"),
        () if ask.query.contains("continue=new") => list(30, "", &["c"]),
        () => list(10, "old", &["a"]),
    });
    time::sleep(MINUTE).await;
    assert_eq!(bench.script.lists(), 3);
    assert_eq!(
        bench.recorder.known().into_keys().collect::<Vec<_>>(),
        ["a", "c"]
    );
    let watch = &bench.script.queries(true)[0];
    assert!(
        watch.contains("resourceVersion=10&"),
        "what the first page missed is reported: {watch}"
    );
}

#[tokio::test(start_paused = true)]
async fn d6_if_the_first_page_is_too_old_to_be_watched_the_list_is_read_in_one_piece() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (true, 0) => status(410, "Expired"),
        (true, _) => quiet(),
        _ if ask.query.contains("continue=old") => expired("new"),
        _ if ask.query.contains("continue=new") => list(30, "", &["c"]),
        _ if ask.query.contains("limit=0") => list(40, "", &["c", "d"]),
        _ => list(10, "old", &["a"]),
    });
    time::sleep(5 * MINUTE).await;
    assert_eq!(bench.script.lists(), 4);
    assert_eq!(
        bench.recorder.known().into_keys().collect::<Vec<_>>(),
        ["c", "d"]
    );
}

#[tokio::test(start_paused = true)]
async fn d7_an_object_that_does_not_decode_is_cached_and_says_which_field_is_wrong() {
    let odd = r#"{"metadata":{"name":"a","resourceVersion":"11"},"data":{"key":5}}"#;
    let line = format!("{{\"type\":\"ADDED\",\"object\":{odd}}}\n");
    let bench = Scripted::start(move |ask| {
        if ask.watch {
            Answer::Pieces(vec![line.clone()], BodyEnd::Silence)
        } else {
            list(10, "", &[])
        }
    });
    bench.informer.need::<ConfigMap>();
    time::sleep(MINUTE).await;
    let key = ObjectKey::cluster("a");
    let error = bench
        .informer
        .cache::<ConfigMap>()
        .get(&key)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("invalid type: integer") && error.contains("at data"),
        "{error}"
    );
    let dynamic = bench.informer.cache::<DynamicObject>().get(&key);
    assert_eq!(dynamic.unwrap().unwrap().data["data"]["key"], 5);
    assert_eq!(bench.status().version, Some(11.into()));
}

#[tokio::test(start_paused = true)]
async fn d8_a_broken_watch_pauses_no_other() {
    let factory = listing(no_client());
    let broken = Script::new(|ask| {
        if ask.watch {
            status(500, "InternalError")
        } else {
            list(10, "", &["a"])
        }
    });
    let busy = Script::new(|ask| match (ask.watch, ask.number) {
        (false, _) => list(10, "", &[]),
        (true, 0) => {
            let lines = (0..60).map(|number| event("ADDED", &format!("o{number}"), 11 + number));
            Answer::Slow(lines.collect(), Duration::from_secs(1))
        }
        _ => quiet(),
    });
    let _broken = factory.for_source(Gvk::new("", "v1", "Secret"), Arc::new(broken));
    let informer = factory.for_source(config_maps(), Arc::new(busy));
    let recorder = Arc::new(Recorder::default());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    factory.start();
    for second in 1..60 {
        time::sleep(Duration::from_secs(1)).await;
        let reported = recorder.reported().len();
        assert!(reported + 1 >= second, "{reported} after {second} seconds");
    }
}

#[tokio::test(start_paused = true)]
async fn d9_every_subscriber_of_a_shared_watch_sees_deletions_dynamic_kinds_included() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    informer.need::<DynamicObject>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let recorders: Vec<Arc<Recorder>> = (0..3).map(|_| Arc::default()).collect();
    // Also those that come after the start.
    let _subscriptions: Vec<_> = recorders
        .iter()
        .map(|recorder| informer.subscribe(Arc::clone(recorder) as _))
        .collect();
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    writer.delete("a").await;
    for recorder in &recorders {
        eventually(async || recorder.reported().len(), 2).await;
        assert!(recorder.known().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn d10_what_vanished_during_an_outage_is_published_with_its_last_state() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a", "b"]),
        (false, _) => list(20, "", &["b"]),
        (true, 0) => status(410, "Expired"),
        _ => quiet(),
    });
    time::sleep(MINUTE).await;
    let reported = bench.recorder.reported();
    assert_eq!(reported[2..], ["b updated 10 → 20", "a deleted at 10"]);
}

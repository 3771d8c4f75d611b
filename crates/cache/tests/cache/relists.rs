//! Relists that were asked for.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use lariat_cache::Phase;
use tokio::time;

use crate::bench::{MINUTE, config_maps, listing, no_client};
use crate::content_filter_bench::{Filtered, both};
use crate::script::{Answer, BodyEnd, Script, Scripted, event, list, quiet, status};

const SECOND: Duration = Duration::from_secs(1);

/// A list that takes ten seconds.
pub(crate) fn slow_list(version: u64, names: &[&str]) -> Answer {
    let Answer::Whole(_, _, text) = list(version, "", names) else {
        unreachable!("lists are whole");
    };
    let body = stream::once(async move {
        time::sleep(10 * SECOND).await;
        Ok(Frame::data(Bytes::from(text)))
    });
    Answer::Body(StreamBody::new(body.boxed()).boxed_unsync())
}

#[tokio::test(start_paused = true)]
async fn a_relist_publishes_only_what_differs_and_the_cache_keeps_its_objects() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a", "b"]),
        (false, _) => slow_list(20, &["b", "c"]),
        (true, _) => quiet(),
    });
    time::sleep(SECOND).await;
    for _ in 0..3 {
        assert!(bench.informer.relist());
    }
    for _ in 0..9 {
        time::sleep(SECOND).await;
        assert_eq!(bench.status().phase, Phase::Synced);
        assert_eq!(bench.informer.store().len(), 2);
    }
    time::sleep(MINUTE).await;
    let reported = bench.recorder.reported();
    assert_eq!(
        reported[2..],
        ["b updated 10 → 20", "c added at 20", "a deleted at 10"]
    );
    assert_eq!((bench.script.lists(), bench.script.watches()), (2, 2));
    assert_eq!(bench.status().loads, 2);
    assert!(bench.script.queries(true)[1].contains("resourceVersion=20"));
}

#[tokio::test(start_paused = true)]
async fn a_list_under_way_does_not_answer_a_later_request() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, number) => slow_list(10 * (number as u64 + 1), &["a"]),
        (true, _) => quiet(),
    });
    time::sleep(5 * SECOND).await;
    // During the first list, which may have passed what the caller is after.
    assert!(bench.informer.relist());
    time::sleep(MINUTE).await;
    assert_eq!((bench.script.lists(), bench.status().loads), (2, 2));
    assert_eq!(
        bench.recorder.reported(),
        ["a added at 10", "a updated 10 → 20"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_relist_that_fails_is_tried_again() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a", "b"]),
        (false, 1) => Answer::Nothing,
        (false, 2) => status(500, "InternalError"),
        (false, 3) => Answer::Pieces(vec![r#"{"metadata":{"resour"#.to_owned()], BodyEnd::Cut),
        (false, _) => list(20, "", &["b"]),
        (true, _) => quiet(),
    });
    time::sleep(SECOND).await;
    assert!(bench.informer.relist());
    time::sleep(100 * Duration::from_millis(1)).await;
    assert_eq!(bench.status().phase, Phase::Synced);
    assert!(bench.status().last_error.is_some());
    assert_eq!(bench.informer.store().len(), 2);
    time::sleep(2 * MINUTE).await;
    assert_eq!((bench.script.lists(), bench.status().loads), (5, 2));
    assert_eq!(
        bench.recorder.reported()[2..],
        ["b updated 10 → 20", "a deleted at 10"]
    );
    assert_eq!(bench.status().last_error, None);
}

/// By lists and by watch lists, while the server refuses everything and cuts the watches.
#[tokio::test(start_paused = true)]
async fn a_relist_during_an_outage_is_one_load_after_it() {
    for options in both() {
        let test = Filtered::begin(options).await;
        let (before, loads) = (test.recorder.reported(), test.loads());
        test.refuse(20 * SECOND);
        assert!(test.informer.relist());
        time::sleep(5 * SECOND).await;
        test.cluster.cut_watches();
        assert!(test.informer.relist());
        assert_eq!(test.informer.status().phase, Phase::Synced);
        time::sleep(2 * MINUTE).await;
        assert_eq!(
            (test.recorder.reported(), test.loads()),
            (before, loads + 1)
        );
        assert_eq!(test.recorder.known(), test.writer.truth().await);
    }
}

#[tokio::test(start_paused = true)]
async fn pages_that_expire_during_a_relist_are_read_in_one_piece() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a", "b"]),
        (false, 1) => list(20, "next", &["a"]),
        (false, 2) => status(410, "Expired"),
        (false, _) => list(30, "", &["a", "c"]),
        (true, _) => quiet(),
    });
    time::sleep(SECOND).await;
    assert!(bench.informer.relist());
    time::sleep(MINUTE).await;
    assert_eq!((bench.script.lists(), bench.status().loads), (4, 2));
    assert_eq!(
        bench.recorder.known().into_keys().collect::<Vec<_>>(),
        ["a", "c"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_during_an_outage_is_acted_on_after_it() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a"]),
        (false, _) => list(20, "", &["a"]),
        (true, 0) => Answer::Pieces(vec![event("ADDED", "b", 11)], BodyEnd::Cut),
        (true, 1..4) => Answer::Nothing,
        (true, _) => quiet(),
    });
    time::sleep(50 * Duration::from_millis(1)).await;
    assert!(bench.informer.relist());
    time::sleep(5 * MINUTE).await;
    assert_eq!(bench.status().loads, 2);
    assert_eq!(
        bench.recorder.reported().last().map(String::as_str),
        Some("b deleted at 11")
    );
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_does_not_run_is_not_read_again() {
    let script = Script::new(|ask| {
        if ask.watch {
            quiet()
        } else {
            slow_list(10, &["a"])
        }
    });
    let factory = listing(no_client());
    let informer = factory.for_source(config_maps(), std::sync::Arc::new(script.clone()));
    assert!(!informer.relist());
    factory.start();
    time::sleep(MINUTE).await;
    assert!(informer.relist());
    time::sleep(SECOND).await;
    // In the middle of the relist.
    factory.stop().await;
    assert!(!informer.relist());
    assert_eq!((script.lists(), informer.store().len()), (2, 1));
    factory.start();
    time::sleep(MINUTE).await;
    assert_eq!(
        (script.lists(), informer.status().phase),
        (3, Phase::Synced)
    );
}

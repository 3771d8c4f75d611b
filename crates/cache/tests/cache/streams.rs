//! Watches that begin with everything there is, and servers that cannot do that.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Phase, SharedCacheFactory};
use tokio::time::{self, Instant};

use crate::bench::{MINUTE, Recorder, config_maps, factory, no_client};
use crate::script::{Answer, Ask, BodyEnd, Script, event, list, quiet, status};

/// The end marker: the bookmark after the initial objects.
fn marker(version: u64) -> String {
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{version}\",\
         \"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}}}}}}}}\n"
    )
}

fn streams(ask: &Ask) -> bool {
    ask.query.contains("sendInitialEvents=true")
}

struct Streamed {
    script: Script,
    informer: lariat_cache::Informer,
    recorder: Arc<Recorder>,
    _factory: SharedCacheFactory,
    _subscription: lariat_cache::Subscription,
}

fn start(play: impl Fn(&Ask) -> Answer + Send + Sync + 'static) -> Streamed {
    let script = Script::new(play);
    let factory = factory(no_client());
    let informer = factory.for_source(config_maps(), Arc::new(script.clone()));
    let recorder = Arc::new(Recorder::default());
    let subscription = informer.subscribe(Arc::clone(&recorder) as _);
    factory.start();
    Streamed {
        script,
        informer,
        recorder,
        _factory: factory,
        _subscription: subscription,
    }
}

#[tokio::test(start_paused = true)]
async fn one_request_fills_the_cache_and_follows_it() {
    let bench = start(|_| {
        let lines = vec![
            event("ADDED", "a", 3),
            event("ADDED", "b", 5),
            marker(9),
            event("MODIFIED", "a", 10),
        ];
        Answer::Pieces(lines, BodyEnd::Silence)
    });
    time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        bench.recorder.reported(),
        ["a added at 3", "b added at 5", "a updated 3 → 10"]
    );
    assert_eq!((bench.script.lists(), bench.script.watches()), (0, 1));
    let status = bench.informer.status();
    assert_eq!(
        (status.phase, status.version),
        (Phase::Synced, Some(10.into()))
    );
    let query = &bench.script.queries(true)[0];
    assert!(
        query.contains("resourceVersionMatch=NotOlderThan&"),
        "{query}"
    );
    assert!(query.contains("allowWatchBookmarks=true"), "{query}");
}

#[tokio::test(start_paused = true)]
async fn nothing_counts_as_filled_before_the_marker() {
    let bench = start(|ask| match ask.number {
        0 => Answer::Pieces(vec![event("ADDED", "a", 3)], BodyEnd::Silence),
        _ => Answer::Never,
    });
    time::sleep(Duration::from_secs(5)).await;
    let phase = bench.informer.status().phase;
    assert_eq!(phase.to_string(), "listing, 1 so far");
    assert_eq!(
        bench.recorder.reported(),
        ["a added at 3"],
        "it is shown all the same"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_watch_lists_is_asked_for_lists_from_then_on() {
    for code in [400, 422] {
        let bench = start(move |ask| match (ask.watch, ask.number) {
            (true, _) if streams(ask) => status(code, "Invalid"),
            (false, _) => list(10, "", &["a"]),
            (true, 1) => status(410, "Expired"),
            (true, _) => quiet(),
        });
        time::sleep(Duration::from_millis(1)).await;
        assert_eq!(bench.informer.status().phase, Phase::Synced);
        time::sleep(MINUTE).await;
        assert_eq!(bench.script.lists(), 2);
        let queries = bench.script.queries(true);
        assert_eq!(
            queries
                .iter()
                .filter(|q| q.contains("sendInitialEvents"))
                .count(),
            1
        );
    }
}

/// Aggregated API servers, and every mock, at some time.
#[tokio::test(start_paused = true)]
async fn a_stream_whose_end_is_never_marked_gives_way_to_lists() {
    let bench = start(|ask| match ask.watch {
        true if streams(ask) => Answer::Pieces(
            vec![event("ADDED", "a", 3), event("ADDED", "b", 4)],
            BodyEnd::Silence,
        ),
        false => list(10, "", &["a"]),
        true => quiet(),
    });
    let begun = Instant::now();
    assert!(bench.informer.synced().await);
    assert!(
        begun.elapsed() < Duration::from_secs(12),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        bench.recorder.reported(),
        [
            "a added at 3",
            "b added at 4",
            "a updated 3 → 10",
            "b deleted at 4"
        ]
    );
    assert_eq!(bench.script.lists(), 1);
}

/// The same for a kind on which so much happens that the watch is never silent.
#[tokio::test(start_paused = true)]
async fn a_busy_stream_whose_end_is_never_marked_gives_way_to_lists() {
    let lines = (0..100)
        .map(|number| event("MODIFIED", "a", 4 + number))
        .collect::<Vec<_>>();
    let bench = start(move |ask| match ask.watch {
        true if streams(ask) => {
            let added = vec![event("ADDED", "a", 3)];
            Answer::Slow([added, lines.clone()].concat(), Duration::from_secs(1))
        }
        false => list(200, "", &["a"]),
        true => quiet(),
    });
    let begun = Instant::now();
    assert!(bench.informer.synced().await);
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_begins_again_and_nothing_is_lost() {
    let bench = start(|ask| match ask.number {
        0 => Answer::Pieces(
            vec![event("ADDED", "a", 3), event("ADDED", "b", 4)],
            BodyEnd::Cut,
        ),
        1 => Answer::Pieces(vec![event("ADDED", "b", 4), marker(9)], BodyEnd::Silence),
        _ => quiet(),
    });
    time::sleep(MINUTE).await;
    assert_eq!(
        bench.recorder.reported(),
        ["a added at 3", "b added at 4", "a deleted at 3"]
    );
    assert_eq!(bench.script.lists(), 0);
}

#[tokio::test(start_paused = true)]
async fn after_expiry_a_watch_list_updates_the_cache_and_unchanged_objects_are_not_published() {
    let bench = start(|ask| match ask.number {
        0 => Answer::Pieces(
            vec![event("ADDED", "a", 3), event("ADDED", "b", 4), marker(9)],
            BodyEnd::Clean,
        ),
        1 | 2 => status(410, "Expired"),
        3 => Answer::Pieces(vec![event("ADDED", "a", 3), marker(20)], BodyEnd::Silence),
        _ => quiet(),
    });
    time::sleep(MINUTE).await;
    assert_eq!(
        bench.recorder.reported(),
        ["a added at 3", "b added at 4", "b deleted at 4"]
    );
    assert_eq!(bench.informer.status().version, Some(20.into()));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_among_the_initial_events_is_published() {
    let bench = start(|_| {
        let lines = vec![
            event("ADDED", "a", 3),
            event("ADDED", "b", 4),
            event("DELETED", "a", 8),
            marker(9),
        ];
        Answer::Pieces(lines, BodyEnd::Silence)
    });
    time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        bench.recorder.reported(),
        ["a added at 3", "b added at 4", "a deleted at 8"]
    );
}

/// Overloaded and starting servers, and those that reject a token, say nothing about watch lists.
#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_everybody_is_asked_for_streams_all_the_same() {
    for code in [401, 403, 429, 503] {
        let bench = start(move |ask| match ask.number {
            0..5 => status(code, "InternalError"),
            _ => Answer::Pieces(vec![event("ADDED", "a", 3), marker(9)], BodyEnd::Silence),
        });
        time::sleep(MINUTE).await;
        assert_eq!(bench.informer.status().phase, Phase::Synced, "{code}");
        assert_eq!((bench.script.lists(), bench.script.watches()), (0, 6));
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_in_the_place_of_a_stream_that_failed_is_the_only_one() {
    let bench = start(|ask| match (ask.watch, ask.number) {
        (true, 0..3) => status(500, "InternalError"),
        (false, _) => list(10, "", &["a"]),
        (true, 3) => status(410, "Expired"),
        (true, _) => Answer::Pieces(vec![event("ADDED", "a", 10), marker(20)], BodyEnd::Silence),
    });
    time::sleep(MINUTE).await;
    assert_eq!((bench.script.lists(), bench.script.watches()), (1, 5));
    assert_eq!(bench.informer.status().version, Some(20.into()));
}

/// An API server may be upgraded under a program that runs.
#[tokio::test(start_paused = true)]
async fn a_server_that_could_not_stream_is_asked_again_later() {
    let begun = Instant::now();
    let bench = start(move |ask| match ask.watch {
        true if streams(ask) && begun.elapsed() < 10 * MINUTE => status(422, "Invalid"),
        true if streams(ask) => {
            Answer::Pieces(vec![event("ADDED", "a", 10), marker(20)], BodyEnd::Silence)
        }
        false => list(10, "", &["a"]),
        true if begun.elapsed() > 40 * MINUTE => status(410, "Expired"),
        true => quiet(),
    });
    let is_read_again = async {
        while bench.informer.status().version != Some(20.into()) {
            time::sleep(Duration::from_secs(1)).await;
        }
    };
    // A watch lasts for ten minutes at most.
    let read_again = time::timeout(55 * MINUTE, is_read_again).await;
    let queries = bench.script.queries(true);
    read_again.unwrap_or_else(|_| panic!("{queries:?}"));
    let streams = queries.iter().filter(|q| q.contains("sendInitialEvents"));
    assert_eq!(streams.count(), 2, "{queries:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_at_streams_whatever_it_says_is_listed_before_long() {
    for code in [500, 504] {
        let bench = start(move |ask| match ask.watch {
            true if streams(ask) => status(code, "InternalError"),
            false => list(10, "", &["a"]),
            true => quiet(),
        });
        time::sleep(MINUTE).await;
        assert_eq!(bench.informer.status().phase, Phase::Synced, "{code}");
        assert_eq!(bench.script.lists(), 1);
    }
}

/// Its watch cache has not reached the version that etcd has: `Too large resource version`.
#[tokio::test(start_paused = true)]
async fn watch_list_that_is_refused_for_its_version_is_replaced_by_a_list() {
    let bench = start(move |ask| match ask.watch {
        true if streams(ask) => {
            let text = r#"{"kind":"Status","status":"Failure","code":504,"reason":"Timeout",
                "message":"Too large resource version: 9, current: 5",
                "details":{"retryAfterSeconds":1}}"#;
            Answer::Whole(504, Vec::new(), text.to_owned())
        }
        false => list(10, "", &["a"]),
        true => quiet(),
    });
    time::sleep(Duration::from_secs(2)).await;
    assert_eq!(bench.informer.status().phase, Phase::Synced);
    assert_eq!((bench.script.lists(), bench.script.watches()), (1, 2));
}

/// Until then the store has the objects from before the outage.
#[tokio::test(start_paused = true)]
async fn cache_is_not_current_until_a_watch_list_has_ended() {
    let bench = start(|ask| match ask.number {
        0 => Answer::Pieces(vec![event("ADDED", "a", 3), marker(9)], BodyEnd::Cut),
        1 | 2 => status(410, "Expired"),
        _ => {
            let (a, b) = (event("ADDED", "a", 3), event("ADDED", "b", 20));
            Answer::Slow(vec![a, b, marker(21)], Duration::from_secs(8))
        }
    });
    time::sleep(Duration::from_secs(18)).await;
    assert!(!bench.informer.is_current());
    assert_eq!(bench.informer.status().phase, Phase::Synced);
    time::sleep(Duration::from_secs(20)).await;
    assert!(bench.informer.is_current());
}

/// The cache has the newer one already.
#[tokio::test(start_paused = true)]
async fn states_of_one_object_that_a_watch_list_sends_at_once_stay_in_their_order() {
    let bench = start(|ask| match ask.number {
        0 => Answer::Pieces(vec![event("ADDED", "a", 33), marker(34)], BodyEnd::Clean),
        1 | 2 => status(410, "Expired"),
        3 => {
            let lines = [
                event("ADDED", "a", 20),
                event("MODIFIED", "a", 33),
                marker(34),
            ];
            Answer::Pieces(vec![lines.concat()], BodyEnd::Silence)
        }
        _ => quiet(),
    });
    time::sleep(MINUTE).await;
    let last = bench.recorder.reported().pop();
    assert_eq!(last.as_deref(), Some("a updated 20 → 33"));
}

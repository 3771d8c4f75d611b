//! What a reflector does with answers that cannot be read or never come.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cache::{Phase, SourceError};
use lariat_core::ObjectKey;
use lariat_testing::Logs;
use parking_lot::Mutex;
use tokio::time::{self, Instant};

use crate::bench::MINUTE;
use crate::script::{Answer, BodyEnd, Scripted, event, list, object, quiet, status};

#[tokio::test(start_paused = true)]
async fn an_item_that_cannot_be_read_is_passed_over_counted_and_logged_as_one_of_a_list() {
    let logs = Logs::warnings();
    let bench = Scripted::start(|ask| {
        if ask.watch {
            quiet()
        } else {
            let items = r#"[{"metadata":{"name":"a","resourceVersion":"1"}},{"metadata":{}}]"#;
            let text = format!(r#"{{"metadata":{{"resourceVersion":"10"}},"items":{items}}}"#);
            Answer::Whole(200, Vec::new(), text)
        }
    });
    time::sleep(MINUTE).await;
    assert_eq!(bench.recorder.reported(), ["a added at 1"]);
    assert_eq!(bench.status().unreadable, 1);
    let warnings = logs.lines();
    let is_of_list = |line: &&String| line.contains("error=list: malformed answer: ");
    assert_eq!(
        warnings.iter().filter(is_of_list).count(),
        1,
        "{warnings:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_keeps_its_last_state_and_delays_no_other() {
    let bad = r#"{"metadata":{"name":"a","resourceVersion":"11","ownerReferences":[5]}}"#;
    let bench = Scripted::start(move |ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a"]),
        (false, _) => {
            let text = format!(r#"{{"metadata":{{"resourceVersion":"20"}},"items":[{bad}]}}"#);
            Answer::Whole(200, Vec::new(), text)
        }
        (true, 0) => {
            let line = format!("{{\"type\":\"MODIFIED\",\"object\":{bad}}}\n");
            Answer::Pieces(vec![line, event("ADDED", "b", 12)], BodyEnd::Silence)
        }
        (true, 1 | 2) => status(410, "Expired"),
        (true, _) => quiet(),
    });
    time::sleep(MINUTE).await;
    assert_eq!(
        bench.recorder.reported(),
        ["a added at 10", "b added at 12"]
    );
    assert_eq!((bench.script.lists(), bench.status().unreadable), (1, 1));

    // A list that mentions it does not sweep it away either. It follows the watch, whose length is random.
    while bench.script.watches() < 4 {
        time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(bench.script.lists(), 2);
    let reported = bench.recorder.reported();
    assert_eq!(reported[2..], ["b deleted at 12"]);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_cannot_be_read_leads_to_a_list_so_that_nothing_stays_stale() {
    for bad in ["not json\n", "{\"type\":\"STRANGE\",\"object\":{}}\n"] {
        let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
            (false, 0) => list(10, "", &["a"]),
            (false, _) => list(12, "", &["a"]),
            (true, 0) => Answer::Pieces(
                vec![
                    event("ADDED", "b", 11),
                    bad.to_owned(),
                    event("ADDED", "c", 12),
                ],
                BodyEnd::Silence,
            ),
            (true, _) => quiet(),
        });
        time::sleep(MINUTE).await;
        assert_eq!(
            bench.recorder.reported(),
            [
                "a added at 10",
                "b added at 11",
                "a updated 10 → 12",
                "b deleted at 11"
            ]
        );
        assert_eq!((bench.script.lists(), bench.status().unreadable), (2, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn lines_that_can_never_be_read_do_not_list_in_a_hot_loop() {
    let bench = Scripted::start(|ask| {
        if ask.watch {
            Answer::Pieces(
                vec![event("ADDED", "b", 11), "?\n".into()],
                BodyEnd::Silence,
            )
        } else {
            list(10, "", &["a"])
        }
    });
    time::sleep(10 * MINUTE).await;
    let lists = bench.script.lists();
    assert!((15..40).contains(&lists), "{lists} lists in ten minutes");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_is_given_up_and_named() {
    // Nothing comes at all …
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, 0) => Answer::Never,
        (true, 0) => Answer::Never,
        (false, _) => list(10, "", &["a"]),
        (true, _) => quiet(),
    });
    time::sleep(Duration::from_millis(65_500)).await;
    let error = bench.status().last_error.unwrap();
    assert_eq!(error, "list: no answer from the API server within 65s");
    time::sleep(3 * MINUTE).await;
    assert_eq!((bench.script.lists(), bench.script.watches()), (2, 2));
    assert_eq!(bench.status().phase, Phase::Synced);

    // … or the beginning of a list, and then nothing.
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, 0) => Answer::Pieces(vec!["{".into()], BodyEnd::Silence),
        (false, _) => list(10, "", &["a"]),
        (true, _) => quiet(),
    });
    time::sleep(Duration::from_millis(65_500)).await;
    assert_eq!(
        bench.status().last_error.unwrap(),
        "list: nothing received for 65s"
    );
    time::sleep(MINUTE).await;
    assert_eq!(bench.status().phase, Phase::Synced);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_missing_until_it_is() {
    let start = Instant::now();
    let bench = Scripted::start(move |ask| match ask.watch {
        false if start.elapsed() < MINUTE => status(404, "NotFound"),
        false => list(10, "", &["a"]),
        true => quiet(),
    });
    time::sleep(Duration::from_secs(1)).await;
    let sync = bench.factory.wait_for_sync(MINUTE).await;
    let error = sync.unwrap_err().to_string();
    assert!(
        error
            .starts_with("1 kind cannot be synced: v1 ConfigMap: not served by the API server; is"),
        "{error}"
    );
    assert!(start.elapsed() < MINUTE, "it is known immediately");
    time::sleep(MINUTE).await;
    assert_eq!(
        bench.status().phase,
        Phase::Synced,
        "asked for every few seconds"
    );
    assert!(bench.script.lists() < 40);
}

#[tokio::test(start_paused = true)]
async fn a_byte_that_is_no_utf_8_in_one_object_takes_nothing_from_the_others() {
    let bench = Scripted::start(|ask| {
        if ask.watch {
            quiet()
        } else {
            let mut text = br#"{"metadata":{"resourceVersion":"10"},"items":["#.to_vec();
            text.extend_from_slice(object("a", 3).as_bytes());
            text.extend_from_slice(
                br#",{"metadata":{"name":"b","resourceVersion":"4"},"data":{"x":""#,
            );
            text.extend_from_slice(b"\xff\"}}]}");
            let body = Full::new(Bytes::from(text)).map_err(SourceError::from);
            Answer::Body(body.boxed_unsync())
        }
    });
    time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.recorder.reported(), ["a added at 3", "b added at 4"]);
    assert_eq!((bench.script.lists(), bench.status().unreadable), (1, 0));
}

/// What follows the metadata is left to decoders.
#[tokio::test(start_paused = true)]
async fn an_object_with_damaged_content_fails_only_its_own_readers_until_it_changes() {
    let line = |version: u64, data: &str| {
        let object = object("a", version);
        let metadata = object.strip_suffix('}').unwrap_or_default();
        format!("{{\"type\":\"MODIFIED\",\"object\":{metadata},\"data\":{data}}}}}\n")
    };
    let bench = Scripted::start(move |ask| {
        if ask.watch {
            Answer::Slow(
                vec![
                    event("ADDED", "b", 11),
                    line(12, r#"{"key":"hunter2",}"#),
                    event("ADDED", "c", 13),
                    line(14, r#"{"key":"value"}"#),
                ],
                MINUTE,
            )
        } else {
            list(10, "", &["a"])
        }
    });
    bench.informer.need::<ConfigMap>();
    let read = |name: &str| {
        let read = bench
            .informer
            .cache::<ConfigMap>()
            .get(&ObjectKey::cluster(name));
        read.map_err(|error| error.to_string())
    };
    time::sleep(3 * MINUTE + Duration::from_secs(30)).await;
    let error = read("a").unwrap_err();
    assert!(
        error.contains("v1 ConfigMap a") && !error.contains("hunter2"),
        "{error}"
    );
    assert!(read("b").unwrap().is_some() && read("c").unwrap().is_some());
    time::sleep(MINUTE).await;
    let data = read("a").unwrap().unwrap().data.clone();
    assert_eq!(data.unwrap()["key"], "value");
    let reported = bench.recorder.reported();
    assert_eq!(
        reported[1..],
        [
            "b added at 11",
            "a updated 10 → 12",
            "c added at 13",
            "a updated 12 → 14"
        ]
    );
    assert_eq!(bench.script.lists(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_item_with_damaged_content_takes_nothing_from_the_list() {
    let bench = Scripted::start(|ask| {
        if ask.watch {
            quiet()
        } else {
            // A control character is an error inside of a text.
            let bad = "{\"metadata\":{\"name\":\"a\"},\"data\":{\"key\":\"\u{1}\"}}";
            let items = format!("[{bad},{}]", object("b", 2));
            let text = format!(r#"{{"metadata":{{"resourceVersion":"10"}},"items":{items}}}"#);
            Answer::Whole(200, Vec::new(), text)
        }
    });
    bench.informer.need::<ConfigMap>();
    time::sleep(MINUTE).await;
    let config_maps = bench.informer.cache::<ConfigMap>();
    let error = config_maps.get(&ObjectKey::cluster("a")).unwrap_err();
    assert!(error.to_string().contains("control character"), "{error}");
    let other = config_maps.get(&ObjectKey::cluster("b"));
    assert!(other.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_member_behind_the_object_of_an_event_is_no_part_of_it() {
    let bench = Scripted::start(|ask| {
        if ask.watch {
            let lines = [11, 12].map(|version| {
                let object = object("b", version);
                format!("{{\"type\":\"MODIFIED\",\"object\":{object},\"x\":{{}}}}\n")
            });
            Answer::Pieces(lines.to_vec(), BodyEnd::Silence)
        } else {
            list(10, "", &[])
        }
    });
    bench.informer.need::<ConfigMap>();
    time::sleep(MINUTE).await;
    let found = bench.informer.cache::<ConfigMap>();
    let found = found.get(&ObjectKey::cluster("b")).unwrap().unwrap();
    assert_eq!(found.metadata.resource_version.as_deref(), Some("12"));
    assert_eq!(bench.script.lists(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_member_behind_the_object_of_an_event_does_not_lead_to_a_list() {
    let bench = Scripted::start(|ask| {
        if ask.watch {
            let lines = ["ADDED", "DELETED"].map(|kind| {
                let object = object("b", 11);
                format!("{{\"type\":\"{kind}\",\"object\":{object},\"x\":{{}}}}\n")
            });
            Answer::Pieces(lines.to_vec(), BodyEnd::Silence)
        } else {
            list(10, "", &["a"])
        }
    });
    time::sleep(MINUTE).await;
    let reported = bench.recorder.reported();
    assert_eq!(reported[1..], ["b added at 11", "b deleted at 11"]);
    assert_eq!((bench.script.lists(), bench.status().unreadable), (1, 0));
}

/// A body on which there is always something more does not keep the thread for itself.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_always_ready_lets_others_run() {
    let turns = Arc::new(AtomicUsize::new(0));
    // The turns of others at the first piece and at the last.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (others, looks) = (Arc::clone(&turns), Arc::clone(&seen));
    let blank = Bytes::from([vec![b' '; 256 * 1024], vec![b'\n']].concat());
    let _bench = Scripted::start(move |ask| match (ask.watch, ask.number) {
        (false, _) => list(10, "", &[]),
        (true, 0) => {
            let (others, looks) = (Arc::clone(&others), Arc::clone(&looks));
            let blank = blank.clone();
            let pieces = stream::iter(0..400).map(move |number| {
                if number == 0 || number == 399 {
                    looks.lock().push(others.load(Ordering::Relaxed));
                }
                Ok(Frame::data(blank.clone()))
            });
            Answer::Body(StreamBody::new(pieces.chain(stream::pending())).boxed_unsync())
        }
        (true, _) => quiet(),
    });
    for _ in 0..1_000_000 {
        if seen.lock().len() == 2 {
            break;
        }
        turns.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
    let seen = seen.lock();
    assert!(seen.len() == 2 && seen[1] > seen[0], "{seen:?}");
}

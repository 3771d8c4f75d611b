//! What a reflector does when the server does not do what it should.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::Phase;
use tokio::time::{self, Instant};

use crate::bench::{MINUTE, config_maps, listing, no_client};
use crate::script::{Answer, BodyEnd, Script, Scripted, event, list, quiet, status};

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_cut_goes_on_where_it_was() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, _) => list(10, "", &["a"]),
        // The third line is cut in the middle.
        (true, 0) => {
            let half = event("ADDED", "c", 12)[..20].to_owned();
            Answer::Pieces(vec![event("ADDED", "b", 11), half], BodyEnd::Cut)
        }
        (true, 1) => Answer::Pieces(vec![event("ADDED", "c", 12)], BodyEnd::Silence),
        (true, _) => quiet(),
    });
    time::sleep(MINUTE).await;
    assert_eq!(
        bench.recorder.reported(),
        ["a added at 10", "b added at 11", "c added at 12"]
    );
    assert_eq!(bench.script.lists(), 1);
    assert!(bench.script.queries(true)[1].contains("resourceVersion=10&"));
    assert!(bench.script.gaps(true)[0] < 0.5, "it continues immediately");
}

#[tokio::test(start_paused = true)]
async fn lines_may_come_in_any_pieces() {
    let bench = Scripted::start(|ask| {
        if ask.watch {
            let text = event("ADDED", "b", 11) + "\n" + &event("MODIFIED", "b", 12);
            let pieces = text.as_bytes().chunks(7);
            let pieces = pieces.map(|piece| String::from_utf8_lossy(piece).into_owned());
            Answer::Pieces(pieces.collect(), BodyEnd::Silence)
        } else {
            list(10, "", &[])
        }
    });
    time::sleep(MINUTE).await;
    assert_eq!(
        bench.recorder.reported(),
        ["b added at 11", "b updated 11 → 12"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_lists_again_and_publishes_only_what_changed() {
    for code_in_stream in [true, false] {
        let bench = Scripted::start(move |ask| match (ask.watch, ask.number) {
            (false, 0) => list(10, "", &["a", "b"]),
            // Meanwhile `a` went and `c` came; `b` has a new version with the list.
            (false, _) => list(20, "", &["b", "c"]),
            (true, 0) if code_in_stream => {
                let error = r#"{"type":"ERROR","object":{"code":410,"reason":"Expired"}}"#;
                Answer::Pieces(vec![format!("{error}\n")], BodyEnd::Clean)
            }
            (true, 0) => status(410, "Expired"),
            (true, _) => quiet(),
        });
        time::sleep(MINUTE).await;
        let reported = bench.recorder.reported();
        assert_eq!(
            reported[2..],
            ["b updated 10 → 20", "c added at 20", "a deleted at 10"]
        );
        assert_eq!((bench.script.lists(), bench.script.watches()), (2, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_always_expires_does_not_list_in_a_hot_loop() {
    let bench = Scripted::start(|ask| {
        if ask.watch {
            status(410, "Expired")
        } else {
            list(10, "", &["a"])
        }
    });
    time::sleep(10 * MINUTE).await;
    let lists = bench.script.lists();
    assert!((15..40).contains(&lists), "{lists} lists in ten minutes");
    assert_eq!(bench.recorder.reported().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_refused_backs_off_exponentially_and_says_why() {
    let bench = Scripted::start(|_| status(403, "Forbidden"));
    time::sleep(10 * MINUTE).await;
    let lists = bench.script.lists();
    assert!((15..40).contains(&lists), "{lists} lists in ten minutes");
    let gaps = bench.script.gaps(false);
    assert!(gaps[0] < 1.1 && gaps[10] > 20.0, "{gaps:?}");
    let error = bench.status().last_error.unwrap();
    assert!(error.contains("list refused: 403 Forbidden: no"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_left_alone_as_long_as_it_asks_and_the_list_is_kept() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a"]),
        // Flow control answers in plain text.
        (true, 0) => {
            let text = "Too many requests, please try again later.\n".to_owned();
            Answer::Whole(429, vec![("retry-after", "7")], text)
        }
        (true, 1) => status(500, "InternalError"),
        (true, 2) => Answer::Nothing,
        _ => quiet(),
    });
    time::sleep(MINUTE).await;
    assert_eq!((bench.script.lists(), bench.script.watches()), (1, 4));
    let gaps = bench.script.gaps(true);
    assert!(gaps[0] >= 7.0, "{gaps:?}");
    assert!(
        bench
            .script
            .queries(true)
            .iter()
            .all(|query| query.contains("Version=10&") || query.contains("Version=9&"))
    );
    assert_eq!(bench.status().last_error, None, "all is well again");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_keeps_failing_is_replaced_by_a_list() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, _) => list(10, "", &["a"]),
        (true, 0..8) => status(500, "InternalError"),
        (true, _) => quiet(),
    });
    time::sleep(10 * MINUTE).await;
    assert!(
        bench.script.lists() > 1,
        "the version itself may be what the server cannot stand"
    );
    assert_eq!(bench.status().phase, Phase::Synced);
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_token_expires_is_read_as_a_whole() {
    let bench = Scripted::start(|ask| {
        if ask.watch {
            return quiet();
        }
        match () {
            () if ask.query.contains("continue=") => status(410, "Expired"),
            () if ask.query.contains("limit=500") => list(10, "token", &["a"]),
            () => list(20, "", &["b", "c"]),
        }
    });
    time::sleep(10 * MINUTE).await;
    assert_eq!(bench.script.lists(), 3);
    assert_eq!(
        bench.recorder.known().into_keys().collect::<Vec<_>>(),
        ["b", "c"]
    );
    assert!(bench.script.queries(true)[0].contains("resourceVersion=20&"));
}

#[tokio::test(start_paused = true)]
async fn pages_are_read_to_the_end_and_the_watch_begins_at_the_first() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "one", &["a"]),
        (false, 1) => list(10, "two", &["b"]),
        (false, _) => list(15, "", &["c"]),
        (true, _) => quiet(),
    });
    time::sleep(MINUTE).await;
    let tokens: Vec<bool> = bench
        .script
        .queries(false)
        .iter()
        .map(|query| query.contains("continue="))
        .collect();
    assert_eq!(tokens, [false, true, true]);
    assert!(bench.script.queries(true)[0].contains("resourceVersion=10&"));
    assert_eq!(bench.status().objects, 3);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_given_up() {
    // Without bookmarks a watch may be silent for as long as it was asked to last …
    let bench = Scripted::start(|ask| {
        if ask.watch {
            quiet()
        } else {
            list(10, "", &["a"])
        }
    });
    time::sleep(11 * MINUTE).await;
    let gaps = bench.script.gaps(true);
    assert!((310.0..=612.0).contains(&gaps[0]), "{gaps:?}");

    // … but a server that sends bookmarks sends one a minute.
    let bench = Scripted::start(|ask| {
        if ask.watch {
            Answer::Pieces(vec![event("BOOKMARK", "", 30)], BodyEnd::Silence)
        } else {
            list(10, "", &["a"])
        }
    });
    time::sleep(2 * MINUTE).await;
    let gaps = bench.script.gaps(true);
    assert!((89.0..=91.0).contains(&gaps[0]), "{gaps:?}");
    assert!(
        bench.script.queries(true)[1].contains("resourceVersion=9&"),
        "from the listed object"
    );
    assert_eq!(bench.script.lists(), 1);
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_back_off() {
    let bench = Scripted::start(|ask| {
        if ask.watch {
            Answer::Pieces(Vec::new(), BodyEnd::Clean)
        } else {
            list(10, "", &["a"])
        }
    });
    time::sleep(10 * MINUTE).await;
    let watches = bench.script.watches();
    assert!(
        (15..40).contains(&watches),
        "{watches} watches in ten minutes"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_comes_and_goes_costs_one_request_per_delay() {
    let start = Instant::now();
    let bench = Scripted::start(move |ask| match ask.watch {
        _ if start.elapsed() < 5 * MINUTE => Answer::Nothing,
        false => list(10, "", &["a"]),
        true => quiet(),
    });
    time::sleep(4 * MINUTE).await;
    let error = bench.status().last_error.unwrap();
    assert!(
        error.contains("no answer from the API server: connection refused"),
        "{error}"
    );
    time::sleep(2 * MINUTE).await;
    assert_eq!(bench.status().phase, Phase::Synced);
    assert!(bench.script.lists() < 25, "{}", bench.script.lists());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_kind_is_reported_immediately_beside_one_that_does_not_answer() {
    let factory = listing(no_client());
    let slow = factory.for_source(config_maps(), Arc::new(Script::new(|_| Answer::Never)));
    let unknown = Script::new(|_| status(404, "NotFound"));
    let secrets = lariat_core::Gvk::new("", "v1", "Secret");
    let _unknown = factory.for_source(secrets, Arc::new(unknown));
    let start = Instant::now();
    factory.start();
    let error = factory.wait_for_sync(MINUTE).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(1));
    assert!(
        error
            .to_string()
            .starts_with("1 kind cannot be synced: v1 Secret: not served")
    );
    assert_eq!(slow.status().phase.to_string(), "listing, 0 so far");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_down_does_not_slow_another() {
    let factory = listing(no_client());
    let down = Script::new(|_| Answer::Nothing);
    let up = Script::new(|ask| {
        if ask.watch {
            quiet()
        } else {
            list(10, "", &["a"])
        }
    });
    let secrets = lariat_core::Gvk::new("", "v1", "Secret");
    let _down = factory.for_source(secrets, Arc::new(down));
    let up = factory.for_source(config_maps(), Arc::new(up));
    factory.start();
    time::sleep(Duration::from_millis(10)).await;
    assert_eq!(up.status().phase, Phase::Synced);
    let error = factory.wait_for_sync(MINUTE).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 kind not synced after 60s: v1 Secret: list: no answer from the API server: connection \
         refused"
    );
}

/// A server restored from a backup is silent on watches from versions it has yet to reach.
#[tokio::test(start_paused = true)]
async fn a_server_that_comes_back_in_the_past_is_noticed_and_its_state_used() {
    let bookmark = event("BOOKMARK", "", 905);
    let script = Script::new(move |ask| match (ask.watch, ask.number) {
        (false, 0) => list(900, "", &["a", "b"]),
        (false, _) => list(50, "", &["a", "c"]),
        (true, 0) => Answer::Pieces(vec![bookmark.clone()], BodyEnd::Cut),
        (true, 1) => quiet(),
        (true, _) => Answer::Pieces(vec![event("MODIFIED", "c", 51)], BodyEnd::Silence),
    });
    let bench = Scripted::of(script.forgetting());
    time::sleep(Duration::from_secs(11)).await;
    assert_eq!(
        bench.recorder.reported()[2..],
        [
            "a updated 900 → 50",
            "c added at 50",
            "b deleted at 900",
            "c updated 50 → 51"
        ]
    );
    assert_eq!(bench.script.lists(), 2);
}

#[tokio::test(start_paused = true)]
async fn pages_that_lead_nowhere_are_not_read_in_a_hot_loop() {
    let number = std::sync::atomic::AtomicUsize::new(0);
    type Play = dyn Fn(&crate::script::Ask) -> Answer + Send + Sync;
    let scripts: [Box<Play>; 2] = [
        Box::new(|_| list(10, "same", &["a"])),
        Box::new(move |ask| {
            let next = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if ask.query.contains("limit=0") {
                return status(500, "InternalError");
            }
            let text = format!(
                r#"{{"kind":"Status","reason":"Expired","code":410,"metadata":{{"continue":"{next}"}}}}"#
            );
            Answer::Whole(410, Vec::new(), text)
        }),
    ];
    for script in scripts {
        let bench = Scripted::start(script);
        time::sleep(10 * MINUTE).await;
        let lists = bench.script.lists();
        assert!((15..120).contains(&lists), "{lists} lists in ten minutes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_has_events_and_expires_does_not_list_in_a_hot_loop() {
    let gone = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
    let bench = Scripted::start(move |ask| {
        if ask.watch {
            Answer::Pieces(
                vec![event("MODIFIED", "a", 11), format!("{gone}\n")],
                BodyEnd::Clean,
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
async fn a_bookmark_from_the_past_leads_to_a_list() {
    let bookmark = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"40"}}}"#;
    let bookmark = format!("{bookmark}\n");
    let bench = Scripted::start(move |ask| match (ask.watch, ask.number) {
        (false, 0) => list(900, "", &["a"]),
        (false, _) => list(40, "", &["b"]),
        (true, 0) => Answer::Pieces(vec![bookmark.clone()], BodyEnd::Silence),
        _ => quiet(),
    });
    time::sleep(MINUTE).await;
    assert_eq!(
        bench.recorder.known().into_keys().collect::<Vec<_>>(),
        ["b"]
    );
}

//! What a reflector does with answers that cannot be read or never come.

use std::time::Duration;

use lariat_cache::Phase;
use tokio::time::{self, Instant};

use crate::bench::MINUTE;
use crate::script::{Answer, Ending, Scripted, event, list, quiet, status};

#[tokio::test(start_paused = true)]
async fn an_item_that_cannot_be_read_is_passed_over_and_counted() {
    let bench = Scripted::start(|ask| match ask.watch {
        false => {
            let items = r#"[{"metadata":{"name":"a","resourceVersion":"1"}},{"metadata":{}}]"#;
            let text = format!(r#"{{"metadata":{{"resourceVersion":"10"}},"items":{items}}}"#);
            Answer::Whole(200, Vec::new(), text)
        }
        true => quiet(),
    });
    time::sleep(MINUTE).await;
    assert_eq!(bench.recorder.told(), ["a added at 1"]);
    assert_eq!(bench.status().unreadable, 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_keeps_its_last_state_and_delays_nobody() {
    let bad = r#"{"metadata":{"name":"a","resourceVersion":"11","ownerReferences":[5]}}"#;
    let bench = Scripted::start(move |ask| match (ask.watch, ask.number) {
        (false, 0) => list(10, "", &["a"]),
        (false, _) => {
            let text = format!(r#"{{"metadata":{{"resourceVersion":"20"}},"items":[{bad}]}}"#);
            Answer::Whole(200, Vec::new(), text)
        }
        (true, 0) => {
            let line = format!("{{\"type\":\"MODIFIED\",\"object\":{bad}}}\n");
            Answer::Pieces(vec![line, event("ADDED", "b", 12)], Ending::Silence)
        }
        (true, 1) => status(410, "Expired"),
        (true, _) => quiet(),
    });
    time::sleep(MINUTE).await;
    assert_eq!(bench.recorder.told(), ["a added at 10", "b added at 12"]);
    assert_eq!((bench.script.lists(), bench.status().unreadable), (1, 1));

    // A list that mentions it does not sweep it away either.
    time::sleep(12 * MINUTE).await;
    assert_eq!(bench.script.lists(), 2);
    let told = bench.recorder.told();
    assert_eq!(told[2..], ["b deleted at 12"]);
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
                Ending::Silence,
            ),
            (true, _) => quiet(),
        });
        time::sleep(MINUTE).await;
        assert_eq!(
            bench.recorder.told(),
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
    let bench = Scripted::start(|ask| match ask.watch {
        false => list(10, "", &["a"]),
        true => Answer::Pieces(vec![event("ADDED", "b", 11), "?\n".into()], Ending::Silence),
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
        (false, 0) => Answer::Pieces(vec!["{".into()], Ending::Silence),
        (false, _) => list(10, "", &["a"]),
        (true, _) => quiet(),
    });
    time::sleep(Duration::from_millis(65_500)).await;
    assert_eq!(bench.status().last_error.unwrap(), "list: silent for 65s");
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
    assert!(start.elapsed() < MINUTE, "it is known at once");
    time::sleep(MINUTE).await;
    assert_eq!(
        bench.status().phase,
        Phase::Synced,
        "asked for every few seconds"
    );
    assert!(bench.script.lists() < 40);
}

//! Deletions, as handlers see them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lariat_controller::Outcome;
use lariat_testing::Logs;
use tokio::time;

use crate::bench::{Bench, Calls, SECOND, key, settle};

#[tokio::test(start_paused = true)]
async fn a_deletion_comes_with_the_last_known_state() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    bench.start().await;
    bench.create("a").await;
    bench.change("a", "final").await;
    settle().await;
    bench.delete("a").await;
    settle().await;
    let last = calls.last();
    assert_eq!((last.value, last.deleted.as_deref()), (None, Some("final")));

    // What is enqueued later has nothing to do with the deletion.
    bench.config_maps.enqueue(&key("a"));
    settle().await;
    assert_eq!((calls.last().value, calls.last().deleted), (None, None));
}

#[tokio::test(start_paused = true)]
async fn each_of_several_deletions_is_handled_once_by_each_handler_that_does_not_fail() {
    let bench = Bench::new().await;
    let fails = Arc::new(AtomicBool::new(true));
    let is_down = Arc::clone(&fails);
    // Fails on the first deletion it sees, and asks to come again after the second.
    let cleanup = bench.on("cleanup", move |call| {
        let is_down = is_down.load(Ordering::SeqCst);
        async move {
            match call.deleted.as_deref() {
                Some("first") if is_down => Err("not yet".into()),
                Some("second") => Ok(Outcome::requeue_after(SECOND)),
                _ => Ok(Outcome::done()),
            }
        }
    });
    let other = bench.record("other");
    bench.start().await;
    for value in ["first", "second", "third"] {
        bench.create("a").await;
        bench.change("a", value).await;
        settle().await;
        bench.delete("a").await;
        time::sleep(Duration::from_millis(20)).await;
    }
    time::sleep(60 * SECOND).await;
    let shown = |calls: &Calls| {
        let deleted = calls.all().into_iter().filter_map(|call| call.deleted);
        deleted.collect::<Vec<String>>()
    };
    assert_eq!(shown(&other), ["first", "second", "third"]);
    let mut later = shown(&cleanup);
    assert!(later.len() > 10, "the first is tried again and again");
    later.retain(|value| value != "first");
    assert_eq!(
        later,
        ["second", "third"],
        "it does not keep the others back"
    );

    fails.store(false, Ordering::SeqCst);
    time::sleep(60 * SECOND).await;
    assert_eq!(cleanup.last().deleted.as_deref(), Some("first"));
    bench.create("a").await;
    settle().await;
    assert_eq!((cleanup.last().deleted, other.last().deleted), (None, None));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_deleted_and_made_again_is_seen_as_another() {
    let bench = Bench::new().await;
    let calls = bench.on("slow", |_| async {
        time::sleep(10 * SECOND).await;
        Ok(Outcome::done())
    });
    bench.start().await;
    bench.create("a").await;
    bench.change("a", "old").await;
    time::sleep(20 * SECOND).await;
    bench.change("a", "older").await;
    settle().await;
    // All of this happens while the handler is busy with the key.
    bench.delete("a").await;
    bench.create("a").await;
    bench.change("a", "new").await;
    time::sleep(20 * SECOND).await;
    let last = calls.last();
    assert_eq!(
        (last.value.as_deref(), last.deleted.as_deref()),
        (Some("new"), Some("older"))
    );
    assert!(
        last.causes.contains("deleted at") && last.causes.contains("added at"),
        "{}",
        last.causes
    );
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_fails_is_tried_again_with_the_last_known_state() {
    let bench = Bench::new().await;
    let calls = bench.on("cleanup", |call| async move {
        match call.value {
            None if call.attempt < 3 => Err("not yet".into()),
            _ => Ok(Outcome::done()),
        }
    });
    let other = bench.record("other");
    bench.start().await;
    bench.create("a").await;
    bench.change("a", "final").await;
    settle().await;
    let before = calls.len();
    bench.delete("a").await;
    time::sleep(SECOND).await;
    let after = calls.all().split_off(before);
    assert_eq!(after.len(), 3);
    assert!(
        after
            .iter()
            .all(|call| call.deleted.as_deref() == Some("final"))
    );
    assert!(
        after[2].causes.contains("deleted at") && after[2].causes.contains("retry 2 of cleanup")
    );
    assert_eq!(
        other
            .all()
            .iter()
            .filter(|call| call.value.is_none())
            .count(),
        1
    );
    assert_eq!(
        bench.status().queue.delayed,
        0,
        "nothing is kept of what is done"
    );
}

#[tokio::test(start_paused = true)]
async fn deletions_that_wait_for_a_busy_handler_are_shown_one_by_one_in_their_order() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    let gone = bench.on("gone", |_| async {
        time::sleep(SECOND).await;
        Ok(Outcome::done())
    });
    bench.start().await;
    bench.create("a").await;
    settle().await;
    for number in 0..40 {
        bench.change("a", &number.to_string()).await;
        bench.delete("a").await;
        bench.create("a").await;
    }
    time::sleep(100 * SECOND).await;
    let calls = gone.all();
    let deleted: Vec<String> = calls
        .iter()
        .filter_map(|call| call.deleted.clone())
        .collect();
    let kept: Vec<String> = (8..40).map(|number| number.to_string()).collect();
    assert_eq!(deleted, kept, "the last 32 of them");
    assert!(
        calls.iter().all(|call| call.value.is_some()),
        "beside what there is by now"
    );
    assert_eq!(calls.len(), 1 + 32);
    assert!(logs.text().contains("lost=8"), "{}", logs.text());
}

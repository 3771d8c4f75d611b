//! The KronJob.

use lariat_integration::{example, interrupted, run};

#[tokio::test]
async fn the_kronjob_plays_its_story() {
    let (code, stdout, stderr) = run(example("kronjob", &[])).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(stderr, "");
    for expected in [
        "▸ the operator's clock goes fast: a minute of it is a second here",
        "started hello-",
        "beyond the limit of the history",
        "▸ it goes on: the latest it has missed is made up for, and the others are not",
        "the schedule \\\"every minute\\\" cannot be read",
        "▸ the KronJob is deleted, and its Jobs with it",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
}

#[cfg(unix)]
#[tokio::test]
async fn the_kronjob_ends_cleanly_while_it_waits_for_the_next_minute() {
    let command = example("kronjob", &[]);
    let (code, text) = interrupted(command, "INT", &["started hello-"]).await;
    assert_eq!(code, Some(0), "{text}");
    // Between the two a start may be told that was under way.
    assert!(text.contains("▸ stopping\n"), "{text}");
    assert!(text.ends_with("stopped\n"), "{text}");
}

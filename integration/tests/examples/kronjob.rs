//! The KronJob.

use lariat_integration::{example, interrupted, run};

#[tokio::test]
async fn the_kronjob_plays_its_story() {
    let (code, stdout, stderr) = run(example("kronjob", &[])).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(stderr, "");
    for expected in [
        "▸ the operator's clock is fast: one minute per second",
        "started hello-",
        "beyond the limit of the history",
        "▸ it is resumed: only the latest missed Job is started",
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
    // Between the two the start of another Job may be printed.
    assert!(text.contains("▸ stopping\n"), "{text}");
    assert!(text.ends_with("stopped\n"), "{text}");
}

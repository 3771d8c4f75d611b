//! The pod logger.

use lariat_integration::{example, interrupted, run};

#[tokio::test]
async fn pods_that_come_and_go_are_logged() {
    let (code, stdout, stderr) = run(example("pod_logger", &[])).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    for expected in [
        "created      web-0",
        "updated      web-0                Running",
        "deleted      web-1                Running",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_ends_it_cleanly() {
    let command = example("pod_logger", &["--watch"]);
    let (code, text) = interrupted(command, "TERM", &["running; namespace"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("stopped\n"), "{text}");
}

//! The metrics for Prometheus.

use lariat_integration::{example, interrupted, run};

use super::assert_refused;

#[tokio::test]
async fn metrics_are_read_over_a_socket() {
    let (code, stdout, stderr) = run(example(
        "metrics",
        &["--listen", "127.0.0.1:0", "--seed", "7"],
    ))
    .await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    for expected in [
        "metrics are at http://127.0.0.1:",
        "lariat_handler_runs_total",
        "failed",
        "workqueue_retries_total",
        "lariat_reflector_watches_total",
        "readyz check passed",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_ends_the_server_too() {
    let command = example("metrics", &["--listen", "127.0.0.1:0", "--watch"]);
    let (code, text) = interrupted(command, "TERM", &["running; namespace"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("stopped\n"), "{text}");
}

#[tokio::test]
async fn an_address_or_a_seed_that_is_none_is_refused_in_one_line() {
    for (option, reason) in [
        ("--listen", "invalid socket address syntax"),
        ("--seed", "invalid digit found in string"),
    ] {
        let reason = format!("{option} cannot be \"here\": {reason}");
        assert_refused("metrics", &[option, "here"], &reason).await;
    }
}

//! The controller with all options set.

use lariat_integration::{example, run};

use super::assert_refused;

#[tokio::test]
async fn retries_timeouts_and_resyncs_are_as_they_were_chosen() {
    let arguments = ["--retries", "2", "--timeout-ms", "100", "--resync-s", "1"];
    let (code, stdout, stderr) = run(example("custom_config", &arguments)).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    for expected in [
        "is fine: added at",
        "fails: attempt 3",
        "hangs: attempt 3",
        "a call is dropped after 100ms",
        "is fine: resync",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    assert!(!stdout.contains("attempt 4"), "{stdout}");
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
}

#[tokio::test]
async fn zero_is_refused_where_it_makes_no_sense() {
    for option in ["--timeout-ms", "--resync-s"] {
        let reason = format!("{option} cannot be \"0\": number would be zero for non-zero type");
        assert_refused("custom_config", &[option, "0"], &reason).await;
    }
}

//! Websites, with webhooks that the API server calls over loopback.

use lariat_integration::{example, interrupted, run};

use super::assert_refused;

/// One test, since the runs would take each other's conversion.
#[tokio::test]
async fn websites_are_served_converted_and_taken_down() {
    let (code, stdout, stderr) = run(example("website", &[])).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    for expected in [
        "waits: there is no Secret shop",
        "is in v1 too, at shop.website-",
        "▸ the Secret changes: the pods are replaced",
        "has in v1alpha1 website.demo.dev/v1: {",
        "spec.host: is the host of website-",
        "cleans up: ",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    assert!(!stdout.contains("ERROR"), "{stdout}");
    assert!(!stdout.contains("stay"), "{stdout}");
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
    #[cfg(unix)]
    ends_in_the_middle().await;
}

#[cfg(unix)]
async fn ends_in_the_middle() {
    let command = example("website", &[]);
    let (code, text) = interrupted(command, "TERM", &["▸ the Secret is created"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("stopped\n"), "{text}");
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_in_one_line() {
    let reason = "--listen cannot be \"here\": invalid socket address syntax";
    assert_refused("website", &["--listen", "here"], reason).await;
}

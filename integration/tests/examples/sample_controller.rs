//! The sample-controller.

use lariat_integration::{example, interrupted, run};

/// One test, since the runs would delete each other's CRD.
#[tokio::test]
async fn the_sample_controller_keeps_deployments_and_ends_well() {
    let (code, stdout, stderr) = run(example("sample_controller", &[])).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    for expected in [
        "▸ a Foo is created: it gets its Deployment",
        "already exists and is not managed by Foo",
        "▸ the Foo is deleted, and the Deployment with it",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    assert!(!stdout.contains("ERROR"), "{stdout}");
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
    #[cfg(unix)]
    ends_in_the_middle().await;
}

#[cfg(unix)]
async fn ends_in_the_middle() {
    let command = example("sample_controller", &[]);
    let (code, text) = interrupted(command, "TERM", &["▸ the Foo is scaled up"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("stopped\n"), "{text}");
}

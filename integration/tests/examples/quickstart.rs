//! The quickstart.

use lariat_integration::{example, interrupted, run};

#[tokio::test]
async fn the_quickstart_ends_by_itself_with_a_summary() {
    let (code, stdout, stderr) = run(example("quickstart", &[])).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    for expected in [
        "no such pod",
        "runs v1",
        "✗ attempt 1",
        "✗ attempt 2",
        "✓ registered at attempt 3",
        "has size 5",
        "is deleted; it ran v2",
        "v1 Pod",
        "demo.dev/v1 Widget",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    assert_eq!(stderr, "");
    // One key before the start, and one with a delay.
    for name in ["absent announce", "web-1  announce"] {
        let is_it = |line: &str| line.contains(name) && line.contains("enqueued at main.rs");
        assert!(stdout.lines().any(is_it), "no {name:?} in:\n{stdout}");
    }
    if std::env::var_os("KUBECONFIG").is_none() {
        let seen = "the API server saw 2 watches for 2 kinds and 4 handlers";
        assert!(stdout.contains(seen), "{stdout}");
    }
}

#[tokio::test]
async fn bad_options_of_the_quickstart_are_refused() {
    for (arguments, expected) in [
        (
            &["--bogus"][..],
            "error: unexpected argument '--bogus' found\n",
        ),
        (
            &["--kubeconfig"],
            "error: a value is required for '--kubeconfig <PATH>' but none was supplied\n",
        ),
        (
            &["--kubeconfig", "/nonexistent"],
            "error: the kubeconfig \"/nonexistent\" cannot be used: No such file or directory (os error 2)\n",
        ),
    ] {
        let (code, stdout, stderr) = run(example("quickstart", arguments)).await;
        assert_eq!((code, &*stdout), (Some(1), ""));
        assert!(stderr.starts_with(expected), "{stderr}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_quickstart_that_goes_on_ends_cleanly_at_ctrl_c() {
    let command = example("quickstart", &["--watch"]);
    let (code, text) = interrupted(command, "INT", &["▸ again; Ctrl-C ends"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("▸ stopping") && text.contains("demo.dev/v1 Widget"),
        "{text}"
    );
}

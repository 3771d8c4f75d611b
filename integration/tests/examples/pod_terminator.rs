//! The pod terminator.

use lariat_integration::{example, interrupted, run};

#[tokio::test]
async fn pods_are_killed_as_the_terminator_says_until_it_is_deleted() {
    let (code, stdout, stderr) = run(example("pod_terminator", &["--seed", "7"])).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    for expected in [
        "would kill 5 of 10",
        "killed 3 of 10, as 7 must stay",
        "kills 25 % of its pods every 1 s",
        "killed 2 of 10",
        "its finalizer keeps it",
        "10 of 10 pods live on",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_ends_the_killers_too() {
    let expected = ["would kill 5 of 10"];
    let (code, text) = interrupted(example("pod_terminator", &[]), "TERM", &expected).await;
    assert_eq!(code, Some(0), "{text}");
    let mut lines = text.lines().map(str::trim);
    let ends = |line: &str| line.starts_with("Terminator") && line.ends_with(" ends");
    assert!(lines.any(ends), "{text}");
    assert!(text.ends_with("stopped\n"), "{text}");
}

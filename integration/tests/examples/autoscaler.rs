//! The two Autoscalers.

use std::collections::BTreeSet;

use lariat_integration::{example, interrupted, run};

#[tokio::test]
async fn the_autoscaler_plays_its_story() {
    let (code, stdout, stderr) = run(example("autoscaler", &[])).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(stderr, "");
    for expected in ["-blue/web-0", "-blue/web-1", "-blue/web-2", "-green/web-0"] {
        let created = stdout
            .lines()
            .any(|line| line.contains("created pod") && line.ends_with(expected));
        assert!(created, "no {expected:?} in:\n{stdout}");
    }
    for (what, expected) in [("created pod", 5), ("deleted pod", 4)] {
        assert_eq!(stdout.matches(what).count(), expected, "{what}:\n{stdout}");
    }
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
}

#[cfg(unix)]
#[tokio::test]
async fn the_autoscaler_that_is_interrupted_takes_its_pods_away() {
    let command = example("autoscaler", &[]);
    let (code, text) = interrupted(command, "TERM", &["created pod"]).await;
    assert_eq!(code, Some(0), "{text}");
    let mut left = BTreeSet::new();
    for line in text.lines() {
        if let Some((_, pod)) = line.split_once("created pod ") {
            left.insert(pod);
        } else if let Some((_, pod)) = line.split_once("deleted pod ") {
            left.remove(pod);
        }
    }
    // On a busy machine the signal may come after the story has deleted a pod itself.
    if text.contains("▸ one of them is deleted") {
        left.retain(|pod| !pod.ends_with("-blue/web-1"));
    }
    assert!(left.is_empty(), "{left:?} stay after:\n{text}");
    assert!(text.ends_with("stopped\n"), "{text}");
}

#[tokio::test]
async fn the_counting_autoscaler_plays_its_story() {
    let (code, stdout, stderr) = run(example("cpu_autoscaler", &[])).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(stderr, "");
    for expected in [
        "web                  0 ready, should be 2",
        "web                  4 ready, should be 3",
        "batch                1 ready",
        "web                  1 ready, should be 2",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
}

//! The browser of a fleet of pods.

use lariat_integration::{example, interrupted, run};

#[tokio::test]
async fn pods_are_listed_sorted_found_and_counted() {
    let (code, stdout, stderr) = run(example("fleet_browser", &["--pods", "600"])).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    for expected in [
        "pods are in SQLite after",
        "? search=envoy",
        "namespace",
        "value",
        "pods in ",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    if std::env::var_os("KUBECONFIG").is_none() {
        assert!(stdout.contains("600 pods are in SQLite"), "{stdout}");
        assert!(stdout.contains("5 of 600 pods"), "{stdout}");
    }
    assert_eq!(stderr, "");
}

#[cfg(unix)]
#[tokio::test]
async fn it_is_served_until_a_signal() {
    let command = example("fleet_browser", &["--pods", "10", "--serve", "127.0.0.1:0"]);
    let (code, text) = interrupted(command, "INT", &["browse http://127.0.0.1:"]).await;
    assert_eq!(code, Some(0), "{text}");
}

#[tokio::test]
async fn a_question_about_an_unknown_field_names_the_known() {
    let question = &["--pods", "10", "filter=spec.node=a"];
    let (code, _, stderr) = run(example("fleet_browser", question)).await;
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("has no indexed field \"spec.node\"; it has metadata.namespace"),
        "{stderr}"
    );
}

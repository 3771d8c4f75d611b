//! Options of `lariat-bench run` that cannot be.

mod common;

use common::complaint;

#[test]
fn bad_options_are_named() {
    let cases: [(&[&str], &str); 15] = [
        (
            &["sync", "--subject", "flor"],
            "--subject: \"flor\" is none of",
        ),
        (
            &["relist", "--subject", "floor"],
            "--subject: \"floor\" is none of",
        ),
        (
            &["sync", "--server"],
            "a value is required for '--server <URL>'",
        ),
        (
            &["sync", "--server", "localhost"],
            "--server \"localhost\" is no URL",
        ),
        (
            &["sync", "--server", "https://localhost:1"],
            "--kubeconfig FILE, or KUBECONFIG",
        ),
        (
            &["sync", "--kubeconfig", "/not/there"],
            "/not/there: there is no such kubeconfig",
        ),
        (
            &["relist", "--server", "http://localhost:1"],
            "--server is for sync, storm and latency",
        ),
        (&["sync", "--create"], "--create needs a server"),
        (
            &["sync", "--server", "http://localhost:1", "--n", "5"],
            "needs --create",
        ),
        (
            &["sync", "--n", "5", "--pods", "5"],
            "--pods and --n are the same",
        ),
        (&["queue", "--pods", "5"], "--pods is for"),
        (&["sync", "--rate", "5"], "--rate is for"),
        (
            &["storm", "--rate", "0"],
            "invalid value '0' for '--rate <R,...>': it is no number above 0",
        ),
        (&["queue", "--runs"], "a value is required for '--runs <N>'"),
        (
            &["storm", "--interlave"],
            "a similar argument exists: '--interleave'",
        ),
    ];
    for (arguments, expected) in cases {
        let complaint = complaint(arguments);
        assert!(complaint.contains(expected), "{arguments:?}: {complaint}");
    }
}

#[test]
fn a_kubeconfig_that_cannot_be_read_keeps_its_secrets() {
    let file = std::env::temp_dir().join(format!("lariat-bench-{}.yaml", std::process::id()));
    std::fs::write(&file, "users: [{name: a, user: {token: s3cret").unwrap();
    let complaint = complaint(&["sync", "--kubeconfig", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    assert!(complaint.contains("cannot be used"), "{complaint}");
    assert!(!complaint.contains("s3cret"), "{complaint}");
}

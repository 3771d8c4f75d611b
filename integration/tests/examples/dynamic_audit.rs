//! The dynamic audit.

use lariat_integration::{example, interrupted, run};

#[tokio::test]
async fn the_audit_reports_every_kind_and_deletions() {
    let (code, stdout, stderr) = run(example("dynamic_audit", &[])).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    let has = |kind: &str, what: &str| {
        let mut lines = stdout.lines().map(str::trim_start);
        lines.any(|line| line.starts_with(kind) && line.contains(what))
    };
    for kind in ["ConfigMap", "Deployment", "ReplicaSet", "Pod", "Gadget"] {
        for what in ["appears", "is deleted"] {
            assert!(has(kind, what), "{kind} {what}:\n{stdout}");
        }
    }
    assert!(
        !has("Event", "") && stdout.ends_with("stopped\n"),
        "{stdout}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn the_audit_ends_cleanly_at_ctrl_c() {
    let command = example("dynamic_audit", &["--watch"]);
    let (code, text) = interrupted(command, "INT", &["Ctrl-C ends"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("stopped\n"), "{text}");
}

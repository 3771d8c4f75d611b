//! Related kinds.

use lariat_integration::{example, run};

#[tokio::test]
async fn deployments_restart_because_of_config_maps() {
    let (code, stdout, stderr) = run(example("related_kinds", &[])).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    for expected in [
        "restarts: ConfigMap web-config updated",
        "restarts: ConfigMap common updated",
        "restarts: ConfigMap web-config deleted",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
}

//! Related kinds.

use lariat_integration::{example, run};

#[tokio::test]
async fn deployments_restart_because_of_config_maps() {
    let (code, stdout, stderr) = run(example("related_kinds", &[])).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    for (name, expected) in [
        ("web ", "for web-config, for common, for web-config"),
        ("api ", "for common"),
    ] {
        let of_it = stdout.lines().filter(|line| line.contains(name));
        let restarts = of_it.filter_map(|line| line.split_once("restarts ")?.1.split_once(':'));
        let restarts: Vec<&str> = restarts.map(|(reason, _)| reason).collect();
        assert_eq!(restarts.join(", "), expected, "{stdout}");
    }
    // Most of them say what happened to the ConfigMap.
    assert!(stdout.contains(": ConfigMap "), "{stdout}");
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
}

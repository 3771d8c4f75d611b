//! One handler for two kinds.

use lariat_integration::{example, run};

#[tokio::test]
async fn both_kinds_are_reported_by_one_handler() {
    let (code, stdout, stderr) = run(example("multi_resource", &[])).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    for expected in [
        "Deployment   web                  2 of 2 ready",
        "StatefulSet  db                   3 of 3 ready",
        "Deployment   web                  4 of 4 ready",
        "StatefulSet  db                   1 of 1 ready",
        "Deployment   web                  is deleted",
        "StatefulSet  db                   is deleted",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
}

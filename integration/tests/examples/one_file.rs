//! The examples of one file: they run to their end, and print what their headers promise.

use lariat_integration::{example, run};

/// Runs an example that has to succeed and to print some texts; returns its output.
async fn runs(name: &str, expected: &[&str]) -> String {
    let (code, stdout, stderr) = run(example(name, &[])).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{name}:\n{stdout}");
    for text in expected {
        assert!(stdout.contains(text), "no {text:?} in:\n{stdout}");
    }
    stdout
}

#[tokio::test]
async fn quickstart() {
    let expected = [
        "▸ a Pod is created",
        "✓ succeeds    added at",
        "▸ a Secret is created, and changes nine times",
        "takes 100 ms",
        "▸ code enqueues the Pod",
        "(an API request)",
        "(an API request), retry 1 of register",
        "(an API request), retry 2 of register",
        "▸ the Pod is deleted",
        "phase     is deleted",
        "v1 Pod ",
    ];
    let output = runs("quickstart", &expected).await;
    // The nine changes were merged.
    let calls = output.matches("rotate    takes 100 ms").count();
    assert!((2..10).contains(&calls), "{output}");
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_read_is_named_with_what_to_do() {
    let mut quickstart = example("quickstart", &[]);
    quickstart.env("KUBECONFIG", "/nonexistent/kubeconfig");
    let (code, stdout, stderr) = run(quickstart).await;
    assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
    for expected in [
        "the cluster of KUBECONFIG cannot be used; unset it to use the embedded cluster\n",
        "the kubeconfig \"/nonexistent/kubeconfig\" cannot be used: No such file or directory",
    ] {
        assert!(stderr.contains(expected), "no {expected:?} in {stderr}");
    }
}

#[tokio::test]
async fn handlers() {
    let output = runs("handlers", &["retry 3 of flaky"]).await;
    let of = |handler: &str| {
        let lines = output.lines().map(str::trim_start);
        lines.filter(|line| line.starts_with(handler)).count()
    };
    // `flaky` fails three times for each of the two changes, `limited` and `slow` once.
    for (handler, calls) in [
        ("flaky", 8),
        ("limited", 4),
        ("invalid", 2),
        ("slow", 4),
        ("labels", 1),
    ] {
        assert_eq!(of(handler), calls, "{handler}:\n{output}");
    }
    assert!(of("poll") >= 3, "{output}");
}

#[tokio::test]
async fn relations() {
    let expected = [
        "red   uses 1 of 2 Pods",
        "red   uses 0 of 2 Pods",
        "blue  uses 1 of 2 Pods",
        "blue  uses 0 of 2 Pods",
    ];
    runs("relations", &expected).await;
}

#[tokio::test]
async fn metadata() {
    let output = runs("metadata", &["config-0 has 2 keys", "config-0 has 1 keys"]).await;
    let sizes = output
        .lines()
        .filter_map(|line| line.trim().strip_suffix(" kB"));
    let sizes: Vec<u64> = sizes.filter_map(|size| size.parse().ok()).collect();
    let [plain, compressed, transformed, metadata] = sizes[..] else {
        panic!("{output}");
    };
    assert!(
        plain > 4 * compressed && plain > 4 * transformed,
        "{output}"
    );
    assert!(transformed > metadata, "{output}");
}

#[tokio::test]
async fn custom_resource() {
    let expected = [
        "shop: orders every 24 h, 7 are kept",
        "spec.database",
        "a month at most",
    ];
    runs("custom_resource", &expected).await;
}

#[tokio::test]
async fn finalizer() {
    let expected = [
        "shop-images is created; finalizers: [\"demo.dev/bucket\"]",
        "▸ it is deleted",
        "shop-images is not deleted: the cloud is busy",
        "shop-images is deleted",
        "▸ it is removed",
    ];
    runs("finalizer", &expected).await;
}

#[tokio::test]
async fn status() {
    let expected = [
        "plan free: Ready=True Provisioned: 3 seats",
        "plan gold: Ready=False ",
        "there is no plan \"gold\"",
        "plan team: Ready=True Provisioned: 50 seats",
    ];
    runs("status", &expected).await;
}

#[tokio::test]
async fn server_side_apply() {
    let expected = [
        "2 created",
        "▸ ben is renamed",
        "1 created, 1 unchanged, 1 pruned",
        "Secret cid: user=cid",
        "▸ a Secret is deleted by hand",
        "1 created, 1 unchanged",
        "▸ a field is changed by hand",
        "Secret ann: user=ann Some(\"hand\")",
    ];
    runs("server_side_apply", &expected).await;
}

#[tokio::test]
async fn leader_election() {
    let output = runs("leader_election", &["counts to 5"]).await;
    for name in ["red", "green", "blue"] {
        let leads = output.matches(&format!("▸ {name} leads after")).count();
        assert_eq!(leads, 1, "{output}");
    }
}

#[tokio::test]
async fn webhook() {
    let expected = [
        "port \"http\" is denied",
        "data.port",
        "port \"8080\" is allowed",
    ];
    runs("webhook", &expected).await;
}

#[cfg(unix)]
#[tokio::test]
async fn metrics() {
    let command = example("metrics", &["127.0.0.1:0"]);
    let (code, text) = lariat_integration::interrupted(command, "TERM", &["Ctrl-C ends"]).await;
    assert_eq!(code, Some(0), "{text}");
    for expected in [
        "lariat_handler_calls_total{",
        "result=\"failed\"",
        "workqueue_retries_total{",
        "readyz check passed",
    ] {
        assert!(text.contains(expected), "no {expected:?} in:\n{text}");
    }
}

#[tokio::test]
async fn testing() {
    runs("testing", &["3 tests passed"]).await;
}

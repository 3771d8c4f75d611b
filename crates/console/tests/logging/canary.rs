//! Tokens and the data of Secrets are never logged.

use std::fs;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_cluster::Cluster;
use lariat_cluster::testing::eventually;
use lariat_console::logging::{Format, Logging};
use lariat_controller::{Context, HandlerResult, SharedControllerFactory};
use serde_json::json;

use crate::support::Log;

/// A secret in the token of a kubeconfig, in the output of an exec plugin, and in Secrets.
const CANARY: &str = "canary-5f3c1d";

/// The base64 form of [`CANARY`], as in the data of a Secret.
const ENCODED: &str = "Y2FuYXJ5LTVmM2MxZA";

async fn touches(cx: Context<Secret>) -> HandlerResult {
    let api: Api<Secret> = Api::namespaced(cx.client(), "default");
    let data = cx.object()?.and_then(|secret| secret.data.clone());
    let patch =
        json!({"metadata": {"annotations": {"seen": "yes"}}, "stringData": {"again": CANARY}});
    api.patch(
        cx.key().name(),
        &PatchParams::default(),
        &Patch::Merge(patch),
    )
    .await?;
    // It is refused, and the refusal is logged.
    let patch = json!({"data": {"bad key": CANARY}, "immutable": CANARY});
    let refused = api
        .patch(
            cx.key().name(),
            &PatchParams::default(),
            &Patch::Merge(patch),
        )
        .await;
    assert!(refused.is_err() && data.is_some());
    Err("not today".into())
}

async fn run_program(client: Client) {
    let api: Api<Secret> = Api::namespaced(client.clone(), "default");
    let secret = json!({"metadata": {"name": "door"}, "stringData": {"code": CANARY}});
    let secret: Secret = serde_json::from_value(secret).expect("a Secret");
    drop(api.create(&PostParams::default(), &secret).await);
    let factory = SharedControllerFactory::builder(client).build();
    let secrets = factory.for_object::<Secret>();
    secrets
        .register_handler("touch", touches)
        .expect("registered");
    factory.start(1).await.expect("started");
    let failed = || async {
        let failures = secrets
            .status()
            .map_or(0, |status| status.handlers[0].failures);
        if failures >= 2 {
            Ok(())
        } else {
            Err("no failure yet")
        }
    };
    eventually(Duration::from_secs(30), failed)
        .await
        .expect("it is called");
    factory.stop().await.expect("stopped");
}

async fn check(user: serde_json::Value, format: Format) {
    let log = Log::begin("trace", Logging::builder().format(format));
    let cluster = Cluster::builder()
        .listen()
        .token(CANARY)
        .require_authentication();
    let cluster = cluster.start().await.expect("a cluster");
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": cluster.url()}}],
        "users": [{"name": "it", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    });
    let file =
        std::env::temp_dir().join(format!("lariat-logging-{}-{format:?}", std::process::id()));
    fs::write(&file, kubeconfig.to_string()).expect("written");
    let client = lariat_client::from_kubeconfig(&file).await;
    fs::remove_file(&file).expect("removed");
    run_program(client.expect("a client")).await;
    cluster.shutdown().await;
    let text = log.text();
    let ours = text.lines().filter(|line| line.contains("lariat")).count();
    assert!(ours > 5, "the program logs: {text}");
    for reported in [CANARY, ENCODED] {
        let lines: Vec<_> = text
            .lines()
            .filter(|line| line.contains(reported))
            .collect();
        assert!(lines.is_empty(), "{reported} is in {lines:#?}");
    }
}

#[tokio::test]
async fn a_token_of_a_kubeconfig_is_in_no_line() {
    check(json!({"token": CANARY}), Format::Text).await;
}

#[tokio::test]
async fn the_output_of_an_exec_plugin_is_in_no_line() {
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": CANARY},
    });
    let user = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "/bin/sh",
        "args": ["-c", "echo noise >&2; echo \"$0\"", credential.to_string()],
        "interactiveMode": "Never",
    }});
    check(user, Format::Json).await;
}

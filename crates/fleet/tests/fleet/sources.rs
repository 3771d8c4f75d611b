//! Where clusters come from.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_controller::SharedControllerFactory;
use lariat_fleet::{ClusterSource, FleetError};
use serde_json::{Value, json};
use tokio::time;

use crate::bench::{Run, SECOND, cluster, create, logging};
use crate::places::{DEADLINE, Directory, logs, reaches, secret, served};

#[tokio::test]
async fn files_of_a_directory_are_clusters() {
    let directory = Directory::new("files");
    let ((eu, eu_config), (us, us_config)) = (served().await, served().await);
    directory.write("eu.kubeconfig", &eu_config);
    directory.write(".hidden", "no kubeconfig");
    let (builder, log) = logging();
    let source = ClusterSource::directory(&directory.0).every(SECOND);
    let fleet = builder.source(source).build();
    let run = Run::begin(&fleet);
    create(&eu, "a").await;
    logs(&log, "eu: default/a").await;
    create(&us, "b").await;
    directory.write("us.yaml", &us_config);
    directory.write("us.yml", "a second file of the name");
    logs(&log, "us: default/b").await;
    reaches(&run, &["eu: running", "us: running"]).await;

    // Another cluster under the same name: it leaves and joins again.
    directory.remove("us.yml");
    directory.remove("us.yaml");
    reaches(&run, &["eu: running"]).await;
    create(&us, "c").await;
    directory.write("eu.kubeconfig", &us_config);
    logs(&log, "eu: default/c").await;
    reaches(&run, &["eu: running"]).await;

    // A file that is no kubeconfig is a cluster that cannot be started, and says why without its content.
    directory.write("bad", "token: hunter2");
    let waiting = async {
        while !run
            .status()
            .iter()
            .any(|line| line.starts_with("bad: retrying"))
        {
            time::sleep(Duration::from_millis(20)).await;
        }
    };
    time::timeout(DEADLINE, waiting).await.expect("it is tried");
    let status = run.status().join("\n");
    assert!(
        status.contains("eu: running") && !status.contains("hunter2"),
        "{status}"
    );
    run.stop().await.expect("stopped");
}

#[tokio::test]
async fn secrets_of_a_hub_are_clusters() {
    let hub = cluster().await;
    let (eu, eu_config) = served().await;
    let (_us, us_config) = served().await;
    let secrets: Api<Secret> = Api::namespaced(hub.client(), "default");
    let factory = SharedControllerFactory::builder(hub.client()).build();
    let (builder, log) = logging();
    let labelled = ClusterSource::secrets(&factory, "cluster=yes");
    let capi = ClusterSource::cluster_api(&factory).namespace("default");
    let fleet = builder.source(labelled).source(capi).build();
    let run = Run::begin(&fleet);
    factory.start(1).await.expect("started");
    let post = PostParams::default();
    let labels = json!({"cluster": "yes"});
    let eu_secret = secret("eu", &labels, "kubeconfig", &eu_config);
    secrets.create(&post, &eu_secret).await.expect("created");
    create(&eu, "a").await;
    logs(&log, "default/eu: default/a").await;
    reaches(&run, &["default/eu: running"]).await;

    let labels = json!({"cluster.x-k8s.io/cluster-name": "us"});
    let us_secret = secret("us-kubeconfig", &labels, "value", &us_config);
    secrets.create(&post, &us_secret).await.expect("created");
    let certificates = secret("us-ca", &labels, "tls.crt", "");
    secrets.create(&post, &certificates).await.expect("created");
    reaches(&run, &["default/eu: running", "us: running"]).await;

    let patch = json!({"metadata": {"labels": {"cluster": null}}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    let patched = secrets.patch("eu", &params, &patch).await;
    patched.expect("patched");
    reaches(&run, &["us: running"]).await;
    let params = DeleteParams::default();
    let deleted = secrets.delete("us-kubeconfig", &params).await;
    deleted.expect("deleted");
    reaches(&run, &[]).await;
    run.stop().await.expect("stopped");
    factory.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_secret_may_not_run_commands_or_read_files_here() {
    let hub = cluster().await;
    let (_eu, config) = served().await;
    let secrets: Api<Secret> = Api::namespaced(hub.client(), "default");
    let factory = SharedControllerFactory::builder(hub.client()).build();
    let (builder, _) = logging();
    let source = ClusterSource::secrets(&factory, "cluster").namespace("default");
    let fleet = builder.source(source).build();
    let run = Run::begin(&fleet);
    factory.start(1).await.expect("started");
    let mut kubeconfig: Value = serde_json::from_str(&config).unwrap_or_else(|_| {
        // The user of the kubeconfig is replaced, whatever it is.
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        })
    });
    for (user, what) in [
        (
            json!({"exec": {"command": "touch", "args": ["/tmp/hunter2"]}}),
            "a command to run",
        ),
        (json!({"tokenFile": "/etc/hunter2"}), "a file with a token"),
        (json!({"client-key": "/etc/hunter2"}), "a file with a key"),
    ] {
        kubeconfig["users"] = json!([{"name": "u", "user": user}]);
        let labels = json!({"cluster": "yes"});
        let secret = secret("eu", &labels, "kubeconfig", &kubeconfig.to_string());
        let created = secrets.create(&PostParams::default(), &secret).await;
        created.expect("created");
        let waiting = async {
            while !run.status().iter().any(|line| line.contains(what)) {
                time::sleep(Duration::from_millis(20)).await;
            }
        };
        time::timeout(DEADLINE, waiting)
            .await
            .expect("it is refused");
        assert!(!run.status().join("").contains("hunter2"));
        let deleted = secrets.delete("eu", &DeleteParams::default()).await;
        deleted.expect("deleted");
        reaches(&run, &[]).await;
    }
    run.stop().await.expect("stopped");
    factory.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_cannot_be_read_ends_the_run() {
    let hub = cluster().await;
    let factory = SharedControllerFactory::builder(hub.client()).build();
    let (builder, _) = logging();
    let fleet = builder
        .source(ClusterSource::secrets(&factory, "a in ("))
        .build();
    let ended = Run::begin(&fleet).ended().await;
    assert!(matches!(ended, Err(FleetError::Source { .. })));
}

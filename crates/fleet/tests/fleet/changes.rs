//! Credentials that change, directories that vanish, clusters that come twice, hubs that are replicated.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_controller::SharedControllerFactory;
use lariat_core::describe;
use lariat_fleet::{ClusterSource, FleetError, MemberPhase};
use lariat_lease::Lease;
use serde_json::json;
use tokio::time;

use crate::bench::{Run, SECOND, cluster, create, logging, settle};
use crate::places::{Directory, logs, reaches, secret, served, shows};

#[tokio::test]
async fn broken_kubeconfig_keeps_running_operator() {
    let directory = Directory::new("broken");
    let (eu, config) = served().await;
    directory.write("eu.kubeconfig", &config);
    let (builder, log) = logging();
    let source = ClusterSource::directory(&directory.0).every(SECOND);
    let fleet = builder.source(source).build();
    let run = Run::begin(&fleet);
    reaches(&run, &["eu: running"]).await;
    // Refuses connections.
    let nowhere = config.replace("127.0.0.1:", "127.0.0.2:");
    let half = &config[..config.len() / 2];
    for (name, broken) in [("a", half), ("b", &nowhere)] {
        directory.write("eu.kubeconfig", broken);
        shows(&run, "eu: running: the new credentials are not used: ").await;
        create(&eu, name).await;
        logs(&log, &format!("eu: default/{name}")).await;
        // The same again: nothing is started anew.
        directory.write("eu.kubeconfig", &config);
        reaches(&run, &["eu: running"]).await;
    }
    let starts = eu.journal().select().verb("watch").resource("configmaps");
    assert_eq!(starts.count(), 1);
    run.stop().await.expect("stopped");
}

#[tokio::test]
async fn vanished_directory_keeps_clusters_and_missing_file_removes_one() {
    let directory = Directory::new("vanished");
    let ((_eu, eu_config), (_us, us_config)) = (served().await, served().await);
    directory.write("eu.kubeconfig", &eu_config);
    directory.write("us.kubeconfig", &us_config);
    let (builder, _) = logging();
    let source = ClusterSource::directory(&directory.0).every(SECOND);
    let fleet = builder.source(source).build();
    let run = Run::begin(&fleet);
    let both = ["eu: running", "us: running"];
    reaches(&run, &both).await;
    // As of a mount that came off: first without its files, then without the directory.
    directory.remove("eu.kubeconfig");
    directory.remove("us.kubeconfig");
    time::sleep(4 * SECOND).await;
    assert_eq!(run.status(), both);
    std::fs::remove_dir(&directory.0).expect("removed");
    time::sleep(4 * SECOND).await;
    assert_eq!(run.status(), both);
    std::fs::create_dir(&directory.0).expect("created");
    directory.write("us.kubeconfig", &us_config);
    reaches(&run, &["us: running"]).await;
    directory.write(".keep", "");
    directory.remove("us.kubeconfig");
    reaches(&run, &[]).await;
    run.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn cluster_under_two_names_has_one_member() {
    let (eu, us) = (cluster().await, cluster().await);
    let (builder, log) = logging();
    let fleet = builder.build();
    fleet.add("eu", eu.client()).expect("added");
    let run = Run::begin(&fleet);
    settle().await;
    fleet.add("eu-again", eu.client()).expect("added");
    fleet.add("us", us.client()).expect("added");
    create(&eu, "a").await;
    settle().await;
    assert_eq!(log.take(), ["eu: default/a"]);
    let status = run.status();
    let twin = "eu-again: retrying in 1s: it is the cluster of the member \"eu\" (uid ";
    assert!(status[1].starts_with(twin), "{status:?}");
    assert_eq!(status[2], "us: running");
    // The other one has left.
    fleet.remove("eu");
    time::sleep(120 * SECOND).await;
    assert_eq!(run.status(), ["eu-again: running", "us: running"]);
    assert_eq!(log.take(), ["eu-again: default/a"]);
    run.stop().await.expect("stopped");
}

#[tokio::test]
async fn user_kubeconfig_of_cluster_api_is_no_second_member() {
    let hub = cluster().await;
    let (prod, config) = served().await;
    let secrets: Api<Secret> = Api::namespaced(hub.client(), "default");
    let factory = SharedControllerFactory::builder(hub.client()).build();
    let (builder, log) = logging();
    let source = ClusterSource::cluster_api(&factory).namespace("default");
    let fleet = builder.source(source).build();
    let run = Run::begin(&fleet);
    factory.start(1).await.expect("started");
    for name in ["prod", "prod-user"] {
        let labels = json!({"cluster.x-k8s.io/cluster-name": name});
        let secret = secret(&format!("{name}-kubeconfig"), &labels, "value", &config);
        let created = secrets.create(&PostParams::default(), &secret).await;
        created.expect("created");
        // In this order, so that the first one has the cluster.
        shows(&run, "prod: running").await;
    }
    shows(&run, "prod-user: retrying in ").await;
    create(&prod, "a").await;
    logs(&log, "prod: default/a").await;
    let status = run.status().join("\n");
    assert!(
        status.contains("the cluster of the member \"prod\""),
        "{status}"
    );
    run.stop().await.expect("stopped");
    factory.stop().await.expect("stopped");
}

#[tokio::test]
async fn secret_that_is_not_served_keeps_its_cluster() {
    let hub = cluster().await;
    let (_eu, config) = served().await;
    let secrets: Api<Secret> = Api::namespaced(hub.client(), "default");
    let factory = SharedControllerFactory::builder(hub.client()).build();
    let (builder, _) = logging();
    let source = ClusterSource::secrets(&factory, "cluster");
    let fleet = builder.source(source).build();
    let run = Run::begin(&fleet);
    factory.start(1).await.expect("started");
    let eu = secret("eu", &json!({"cluster": "yes"}), "kubeconfig", &config);
    let post = PostParams::default();
    secrets.create(&post, &eu).await.expect("created");
    reaches(&run, &["default/eu: running"]).await;
    let unserved = Action::Refuse(Refusal::new(StatusCode::NOT_FOUND));
    let unserved = Rule::new(unserved).resource("secrets").verb("get");
    let unserved = hub.faults().add(unserved);
    let patch = Patch::Merge(json!({"metadata": {"labels": {"another": "label"}}}));
    let patched = secrets.patch("eu", &PatchParams::default(), &patch).await;
    patched.expect("patched");
    let repeated = async {
        while hub.faults().hits(unserved) < 2 {
            time::sleep(Duration::from_millis(5)).await;
        }
    };
    let repeated = time::timeout(60 * SECOND, repeated).await;
    repeated.expect("the read is repeated");
    assert_eq!(run.status(), ["default/eu: running"]);
    run.stop().await.expect("stopped");
    factory.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn sharded_hub_is_refused() {
    let hub = cluster().await;
    let lease = Lease::new("hub").namespace("default").identity("one");
    let factory = SharedControllerFactory::builder(hub.client())
        .sharding(lease)
        .build();
    let (builder, _) = logging();
    let source = ClusterSource::secrets(&factory, "cluster");
    let ended = Run::begin(&builder.source(source).build()).ended().await;
    let error = ended.expect_err("it is refused");
    assert!(matches!(error, FleetError::Source { .. }));
    let text = describe(&error);
    assert!(text.contains("divides keys among replicas"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn lost_lease_of_hub_ends_run() {
    let hub = cluster().await;
    let lease = Lease::new("hub").namespace("default").identity("one");
    let factory = SharedControllerFactory::builder(hub.client())
        .leader_election(lease)
        .build();
    let (builder, _) = logging();
    let source = ClusterSource::secrets(&factory, "cluster");
    let mut run = Run::begin(&builder.source(source).build());
    factory.start(1).await.expect("started");
    time::sleep(60 * SECOND).await;
    hub.faults().block_leases("");
    let text = describe(&run.ended().await.expect_err("the lease is lost"));
    assert_eq!(
        text,
        "the lease default/hub was lost, which fences the fleet"
    );
    let _ = factory.stop().await;
}

#[tokio::test(start_paused = true)]
async fn silent_cluster_is_retried_after_time_limit() {
    let eu = cluster().await;
    let (builder, _) = logging();
    let fleet = builder.build();
    fleet.add("eu", eu.client()).expect("added");
    let silence = eu.faults().blackhole("");
    let run = Run::begin(&fleet);
    time::sleep(30 * SECOND + SECOND / 2).await;
    let status = &fleet.status()[0];
    assert_eq!(status.phase, MemberPhase::Waiting(SECOND), "{status}");
    eu.faults().remove(silence);
    time::sleep(60 * SECOND).await;
    assert_eq!(run.status(), ["eu: running"]);
    run.stop().await.expect("stopped");
}

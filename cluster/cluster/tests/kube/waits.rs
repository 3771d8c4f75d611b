//! The waits of `lariat_cluster::testing`.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_cluster::testing::{
    config_map, crd, define, deployment, pod, wait_for, wait_for_condition, wait_until_gone,
};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_wait_sees_what_happens_after_it_began() {
    let cluster = Cluster::for_test().await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let happen = async {
        pods.create(&PostParams::default(), &pod("web").to())
            .await?;
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let patch = Patch::Merge(status);
        pods.patch_status("web", &PatchParams::default(), &patch)
            .await?;
        pods.delete("web", &DeleteParams::default()).await
    };
    let ready = wait_for_condition(&pods, "web", "Ready");
    let (ready, happened) = tokio::join!(ready, happen);
    happened.unwrap();
    assert_eq!(ready.unwrap().metadata.name.as_deref(), Some("web"));
    wait_until_gone(&pods, "web").await.unwrap();
    let lists = cluster.journal().count("list", "pods");
    assert_eq!(lists, 2, "what happens is watched, not polled for");
}

#[tokio::test(start_paused = true)]
async fn a_wait_in_vain_reports_what_it_saw() {
    let cluster = Cluster::builder().seed(1).for_test().await;
    let client = cluster.client();
    let pods: Api<DynamicObject> = pod("web").api(&client);
    let never = cluster.wait(&pods, "web").condition("Ready").await;
    let never = never.expect_err("it is never created").to_string();
    let expected = "waited 30s for pods default/web until condition Ready is True; it was never seen\nlast requests:\n";
    assert!(never.starts_with(expected), "{never}");

    let conditions =
        json!([{"type": "Ready", "status": "False", "reason": "NoNode", "message": "no node"}]);
    let web = pod("web").set("/metadata/annotations", json!({"a": "hunter2"}));
    web.create(&client).await.unwrap();
    let patch = Patch::Merge(json!({"status": {"phase": "Pending", "conditions": conditions}}));
    pods.patch_status("web", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let event = json!({
        "metadata": {"name": "web.1"}, "reason": "FailedScheduling", "message": "no nodes", "type": "Warning",
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
    });
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::default_namespaced(client);
    let event = serde_json::from_value(event).unwrap();
    events.create(&PostParams::default(), &event).await.unwrap();
    let text = format!(
        "{:?}",
        wait_for_condition(&pods, "web", "Ready").await.unwrap_err()
    );
    for expected in [
        "until condition Ready is True; last seen:\n  pods default/web, version ",
        "\n  status {\"phase\":\"Pending\"",
        "\n  CONDITION  STATUS  REASON  MESSAGE\n  Ready      False   NoNode  no node",
        "\nevents:\n  Warning FailedScheduling: no nodes",
    ] {
        assert!(text.contains(expected), "no {expected:?} in:\n{text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_replaced_is_gone() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let settings = config_map("settings", &[("a", "1")]);
    let config_maps = settings.api(&client);
    settings.create(&client).await.unwrap();
    let replace = async {
        config_maps
            .delete("settings", &DeleteParams::default())
            .await?;
        settings.create(&client).await
    };
    let (gone, replaced) = tokio::join!(wait_until_gone(&config_maps, "settings"), replace);
    replaced.unwrap();
    gone.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_outlives_refusals_and_cut_watches() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let web = deployment("web", 3);
    let deployments = web.api(&client);
    let refused = Rule::new(Action::Refuse(Refusal::too_many_requests())).times(3);
    cluster.faults().add(refused);
    let happen = async {
        let watched = cluster.journal();
        let watched = lariat_cluster::testing::eventually(Duration::from_secs(60), async || {
            match watched.count("watch", "deployments") {
                0 => Err("no watch yet"),
                _ => Ok(()),
            }
        });
        watched.await.unwrap();
        cluster.cut_watches();
        web.create(&client).await
    };
    let found = wait_for(&deployments, "web", |web| web.data["spec"]["replicas"] == 3);
    let (found, happened) = tokio::join!(found, happen);
    happened.unwrap();
    found.unwrap();
}

#[tokio::test]
async fn a_definition_that_is_refused_says_why() {
    let cluster = Cluster::for_test().await;
    let definition = crd("demo.dev", "v1", "Widget").set("/spec/scope", "Everywhere");
    let error = define(&cluster.client(), &definition)
        .await
        .unwrap_err()
        .to_string();
    let expected = "customresourcedefinitions widgets.demo.dev was refused: ";
    assert!(
        error.starts_with(expected) && error.contains("Everywhere"),
        "{error}"
    );
}

#[tokio::test]
async fn waits_work_over_sockets() {
    let cluster = Cluster::builder().listen().for_test().await;
    let url = cluster.url().unwrap().parse().unwrap();
    let mut config = kube::Config::new(url);
    config.default_namespace = "default".to_owned();
    let client = kube::Client::try_from(config).unwrap();
    let pods = pod("web").api(&client);
    let web = pod("web");
    let (found, made) = tokio::join!(wait_for(&pods, "web", |_| true), web.create(&client));
    assert_eq!(found.unwrap().metadata.uid, made.unwrap().metadata.uid);
}

//! Reports of both kinds, and that they run together or not at all.

use std::sync::Arc;
use std::time::Duration;

use lariat::cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat::cluster::testing::{deployment, object};
use lariat::cluster::{Cluster, Workloads};
use lariat::kube::Api;
use lariat::kube::api::{DeleteParams, DynamicObject};
use lariat::prelude::*;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::sleep;

use super::register;

type Lines = Arc<Mutex<Vec<String>>>;

fn reporting(factory: &SharedControllerFactory) -> Lines {
    let lines = Lines::default();
    let log = Arc::clone(&lines);
    let registered = register(factory, move |kind, key, replicas| {
        let what = replicas.map_or("gone".to_owned(), |r| format!("{}/{}", r.ready, r.wanted));
        log.lock()
            .push(format!("{} {} {what}", kind.kind(), key.name()));
    });
    registered.expect("registered");
    lines
}

async fn settled(lines: &Lines) -> Vec<String> {
    sleep(Duration::from_secs(5)).await;
    std::mem::take(&mut *lines.lock())
}

#[tokio::test(start_paused = true)]
async fn both_kinds_are_reported_and_each_state_once() {
    let cluster = Cluster::builder().simulate_workloads(Workloads::default());
    let cluster = cluster.for_test().await;
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let lines = reporting(&factory);
    factory.start(2).await.unwrap();
    let web = deployment("web", 2);
    web.create(&cluster.client()).await.unwrap();
    let spec = deployment("db", 1).value()["spec"].clone();
    let db = object("apps/v1", "StatefulSet", "db").set("/spec", spec);
    db.set("/spec/serviceName", "db")
        .create(&cluster.client())
        .await
        .unwrap();
    let mut seen = settled(&lines).await;
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all, "a line twice: {seen:?}");
    for expected in [
        "Deployment web 0/2",
        "Deployment web 2/2",
        "StatefulSet db 0/1",
        "StatefulSet db 1/1",
    ] {
        assert!(
            seen.iter().any(|line| line == expected),
            "no {expected} in {seen:?}"
        );
    }
    let deployments: Api<DynamicObject> = web.api(&cluster.client());
    deployments
        .delete("web", &DeleteParams::background())
        .await
        .unwrap();
    assert_eq!(
        settled(&lines).await.last().map(String::as_str),
        Some("Deployment web gone")
    );
    for resource in ["deployments", "statefulsets"] {
        assert_eq!(cluster.journal().count("watch", resource), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_other_things_are_not_reported() {
    let cluster = Cluster::for_test().await;
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let lines = reporting(&factory);
    factory.start(2).await.unwrap();
    let web = deployment("web", 2);
    web.create(&cluster.client()).await.unwrap();
    assert_eq!(settled(&lines).await, ["Deployment web 0/2"]);
    let labels = json!({"metadata": {"labels": {"team": "shop"}}});
    let patch = lariat::kube::api::Patch::Merge(labels);
    let deployments: Api<DynamicObject> = web.api(&cluster.client());
    deployments
        .patch("web", &Default::default(), &patch)
        .await
        .unwrap();
    assert_eq!(settled(&lines).await, [""; 0]);
}

/// The original has a controller for each kind, and ends when either does.
#[tokio::test(start_paused = true)]
async fn without_one_kind_the_other_does_not_run_alone() {
    let cluster = Cluster::for_test().await;
    let refusal = Action::Refuse(Refusal::new(StatusCode::FORBIDDEN));
    cluster
        .faults()
        .add(Rule::new(refusal).resource("statefulsets"));
    let builder = SharedControllerFactory::builder(cluster.client());
    let factory = builder.sync_timeout(Duration::from_secs(5)).build();
    let lines = reporting(&factory);
    let error = factory.start(2).await.unwrap_err();
    let text = lariat::describe(&error);
    assert!(text.contains("StatefulSet"), "{text}");
    let web = deployment("web", 2);
    web.create(&cluster.client()).await.unwrap();
    assert_eq!(settled(&lines).await, [""; 0], "all has been stopped");
}

#[tokio::test(start_paused = true)]
async fn both_are_registered_or_neither() {
    let cluster = Cluster::for_test().await;
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let sets = factory.for_object::<k8s_openapi::api::apps::v1::StatefulSet>();
    let taken = sets.register_handler("report", |_| async { Ok(Outcome::done()) });
    taken.unwrap();
    assert!(register(&factory, |_, _, _| {}).is_err());
    factory.start(2).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(cluster.journal().count("watch", "deployments"), 0);
}

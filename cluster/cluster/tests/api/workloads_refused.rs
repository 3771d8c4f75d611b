//! What controllers of simulated workloads say about Pods that are refused, on paused time.

use std::time::Duration;

use http::Method;
use lariat_cluster::Workloads;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bench::{Bench, text};
use crate::workloads::{
    DEPLOYMENTS, JOBS, PODS, REPLICA_SETS, bench, condition, settle, template, workload,
};

const EVENTS: &str = "/api/v1/namespaces/default/events";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

async fn limit_pods(bench: &Bench, count: &str) {
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": count}}});
    bench.make(QUOTAS, &quota).await;
}

async fn raise(bench: &Bench, count: &str) {
    let patch = json!({"spec": {"hard": {"pods": count}}}).to_string();
    let merge = [("content-type", "application/merge-patch+json")];
    let path = format!("{QUOTAS}/q");
    let answer = bench.ask(Method::PATCH, &path, &merge, patch).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
}

/// Returns the events about a kind.
async fn events(bench: &Bench, kind: &str) -> Vec<Value> {
    let path = format!("{EVENTS}?fieldSelector=involvedObject.kind={kind}");
    bench.items(&path).await
}

#[tokio::test(start_paused = true)]
async fn a_deployment_says_that_its_pods_are_refused_until_they_are_not() {
    let bench = bench(Workloads::default()).await;
    limit_pods(&bench, "1").await;
    let web = workload("web", &json!({"replicas": 3}));
    bench.make(DEPLOYMENTS, &web).await;
    settle().await;

    let set = bench.items(REPLICA_SETS).await.remove(0);
    let failure = condition(&set["status"], "ReplicaFailure");
    assert_eq!(
        (&failure["status"], &failure["reason"]),
        (&json!("True"), &json!("FailedCreate"))
    );
    let message = text(failure, "/message");
    let name = text(&set, "/metadata/name");
    let expected =
        "is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1";
    assert!(message.starts_with(&format!("pods \"{name}-")), "{message}");
    assert!(message.ends_with(expected), "{message}");
    let status = bench.status(&format!("{DEPLOYMENTS}/web")).await;
    let above = condition(&status, "ReplicaFailure");
    assert_eq!(above["message"], failure["message"]);
    assert_eq!(above["lastUpdateTime"], failure["lastTransitionTime"]);

    let events = events(&bench, "ReplicaSet").await;
    let event = &events[0];
    assert!(
        text(event, "/message").starts_with("Error creating: pods \""),
        "{event:#}"
    );
    assert!(text(event, "/message").ends_with(expected), "{event:#}");
    for (pointer, value) in [
        ("/type", "Warning"),
        ("/reason", "FailedCreate"),
        ("/source/component", "replicaset-controller"),
        ("/reportingComponent", "replicaset-controller"),
        ("/involvedObject/apiVersion", "apps/v1"),
        ("/involvedObject/name", name),
        ("/involvedObject/uid", text(&set, "/metadata/uid")),
    ] {
        assert_eq!(text(event, pointer), value, "{event:#}");
    }

    // The controller does not watch quotas; it tries again after a while that grows.
    raise(&bench, "3").await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.items(PODS).await.len(), 3);
    let set = bench.status(&format!("{REPLICA_SETS}/{name}")).await;
    assert_eq!(set["conditions"], Value::Null);
    let status = bench.status(&format!("{DEPLOYMENTS}/web")).await;
    let conditions = status["conditions"].as_array().expect("there are others");
    assert!(
        conditions
            .iter()
            .all(|each| each["type"] != "ReplicaFailure"),
        "{status:#}"
    );
}

#[tokio::test(start_paused = true)]
async fn similar_events_become_one_that_is_counted() {
    let bench = bench(Workloads::default()).await;
    limit_pods(&bench, "0").await;
    bench
        .make(REPLICA_SETS, &workload("web", &json!({"replicas": 1})))
        .await;
    sleep(Duration::from_secs(300)).await;
    // Each names another Pod, so each has a text of its own.
    let events = events(&bench, "ReplicaSet").await;
    assert_eq!(events.len(), 10, "{events:#?}");
    let is_combined = |event: &&Value| {
        let message = text(event, "/message");
        message.starts_with("(combined from similar events): Error creating: pods \"web-")
    };
    let combined: Vec<&Value> = events.iter().filter(is_combined).collect();
    assert_eq!(combined.len(), 1, "{events:#?}");
    assert!(combined[0]["count"].as_i64() > Some(3), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_may_refuse_what_pods_are_allowed_to_do() {
    let bench = bench(Workloads::default()).await;
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let space = json!({"metadata": {"name": "tight", "labels": labels}});
    bench.make("/api/v1/namespaces", &space).await;
    let sets = "/apis/apps/v1/namespaces/tight/replicasets";
    bench.make(sets, &workload("web", &json!({}))).await;
    settle().await;
    let events = bench.items("/api/v1/namespaces/tight/events").await;
    let message = text(&events[0], "/message");
    assert!(
        message.contains("is forbidden: violates PodSecurity \"restricted:latest\""),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn each_controller_words_it_in_its_own_way() {
    let bench = bench(Workloads::default()).await;
    limit_pods(&bench, "0").await;
    let excess =
        "is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0";
    let job =
        json!({"metadata": {"name": "j"}, "spec": {"template": template("j", "i:1", "Never")}});
    for (path, kind, component, object, beginning) in [
        (
            JOBS,
            "Job",
            "job-controller",
            job,
            "Error creating: pods \"j-",
        ),
        (
            "/apis/apps/v1/namespaces/default/daemonsets",
            "DaemonSet",
            "daemonset-controller",
            workload("d", &json!({})),
            "Error creating: pods \"d-",
        ),
        (
            "/apis/apps/v1/namespaces/default/statefulsets",
            "StatefulSet",
            "statefulset-controller",
            workload("s", &json!({"serviceName": "s"})),
            "Create Pod s-0 in StatefulSet s failed error: pods \"s-0\"",
        ),
    ] {
        bench.make(path, &object).await;
        settle().await;
        let events = events(&bench, kind).await;
        // Where several were refused the later ones are combined.
        let mut own = events.iter();
        let own = own.find(|event| text(event, "/message").starts_with(beginning));
        let event = own.unwrap_or_else(|| panic!("{kind}: {events:#?}"));
        let message = text(event, "/message");
        assert!(message.ends_with(excess), "{message}");
        assert_eq!(text(event, "/reason"), "FailedCreate");
        assert_eq!(text(event, "/source/component"), component);
    }
    raise(&bench, "9").await;
    sleep(Duration::from_secs(60)).await;
    // One of the Job, one of the StatefulSet, and one of the DaemonSet on each node.
    let pods = bench.items(PODS).await;
    for prefix in ["j-", "d-", "s-0"] {
        assert!(
            pods.iter()
                .any(|pod| text(pod, "/metadata/name").starts_with(prefix)),
            "{prefix}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn refused_sets_claims_and_jobs_are_told_of_too() {
    let bench = bench(Workloads::default()).await;
    let hard = json!({"count/replicasets.apps": "0", "persistentvolumeclaims": "0", "count/jobs.batch": "0"});
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    bench.make(QUOTAS, &quota).await;
    bench.make(DEPLOYMENTS, &workload("web", &json!({}))).await;
    let claim = json!({"metadata": {"name": "v"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let stateful = workload(
        "s",
        &json!({"serviceName": "s", "volumeClaimTemplates": [claim]}),
    );
    bench
        .make("/apis/apps/v1/namespaces/default/statefulsets", &stateful)
        .await;
    settle().await;

    let status = bench.status(&format!("{DEPLOYMENTS}/web")).await;
    let progressing = condition(&status, "Progressing");
    assert_eq!(progressing["reason"], "ReplicaSetCreateError");
    let events_of_deployment = events(&bench, "Deployment").await;
    let message = text(&events_of_deployment[0], "/message");
    assert!(
        message.starts_with("Failed to create new replica set \"web-"),
        "{message}"
    );
    assert_eq!(progressing["message"], message);

    let events = events(&bench, "StatefulSet").await;
    let messages: Vec<&str> = events.iter().map(|event| text(event, "/message")).collect();
    for beginning in [
        "Create Claim v-s-0 for Pod s-0 in StatefulSet s failed error: persistentvolumeclaims \"v-s-0\" is forbidden",
        "Create Pod s-0 in StatefulSet s failed error: failed to create PVC v-s-0: persistentvolumeclaims \"v-s-0\"",
    ] {
        assert!(
            messages
                .iter()
                .any(|message| message.starts_with(beginning)),
            "{messages:#?}"
        );
    }
}

//! How simulated Deployments roll out, on paused time.

use std::time::Duration;

use lariat_cluster::Workloads;
use serde_json::json;
use tokio::time::sleep;

use crate::bench::{Bench, text};
use crate::workloads::{DEPLOYMENTS, PODS, REPLICA_SETS, bench, condition, settle, workload};

/// Changes the image and follows the rollout to its end.
async fn roll_to_second_image(bench: &Bench, path: &str) {
    let mut watch = bench.watch(&format!("{DEPLOYMENTS}?watch=1")).await;
    watch.short().await;
    let patch =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}});
    bench.merge(path, patch).await;
    loop {
        let (_, deployment) = watch.event().await;
        let status = &deployment["status"];
        let number = |member: &str| status[member].as_i64().unwrap_or(0);
        assert!(number("replicas") <= 5, "{status:#}");
        assert!(number("availableReplicas") >= 3, "{status:#}");
        let is_over = status["observedGeneration"] == 2 && number("updatedReplicas") == 4;
        if is_over && number("replicas") == 4 && number("availableReplicas") == 4 {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollout_keeps_within_its_limits_and_says_when_it_is_over() {
    let bench = bench(Workloads::default()).await;
    let path = format!("{DEPLOYMENTS}/web");
    let strategy = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}});
    bench
        .make(
            DEPLOYMENTS,
            &workload("web", &json!({"replicas": 4, "strategy": strategy})),
        )
        .await;
    settle().await;
    let deployment = bench.get(&path).await.json();
    assert_eq!(
        deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "1"
    );
    assert_eq!(deployment["metadata"]["generation"], 1);
    let status = &deployment["status"];
    for member in [
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ] {
        assert_eq!(status[member], 4, "{member}");
    }
    assert_eq!(
        condition(status, "Available")["reason"],
        "MinimumReplicasAvailable"
    );
    assert_eq!(
        condition(status, "Progressing")["reason"],
        "NewReplicaSetAvailable"
    );

    roll_to_second_image(&bench, &path).await;
    settle().await;
    let pods = bench.items(PODS).await;
    assert_eq!(pods.len(), 4);
    assert!(
        pods.iter()
            .all(|pod| pod["spec"]["containers"][0]["image"] == "i:2")
    );
    let sets = bench.items(REPLICA_SETS).await;
    let mut replicas: Vec<i64> = sets
        .iter()
        .filter_map(|set| set["spec"]["replicas"].as_i64())
        .collect();
    replicas.sort_unstable();
    assert_eq!(replicas, [0, 4]);
    let deployment = bench.get(&path).await.json();
    assert_eq!(
        deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "2"
    );
}

#[tokio::test(start_paused = true)]
async fn a_deployment_takes_over_the_set_it_left_and_goes_round_one_of_others() {
    let bench = bench(Workloads::default()).await;
    let web = workload("web", &json!({"replicas": 2}));
    bench.make(DEPLOYMENTS, &web).await;
    settle().await;
    let left = bench.items(REPLICA_SETS).await;
    let path = format!("{DEPLOYMENTS}/web");
    bench
        .delete(&format!("{path}?propagationPolicy=Orphan"))
        .await;
    settle().await;
    bench.make(DEPLOYMENTS, &web).await;
    settle().await;
    let sets = bench.items(REPLICA_SETS).await;
    assert_eq!(sets.len(), 1);
    assert_eq!(sets[0]["metadata"]["uid"], left[0]["metadata"]["uid"]);
    assert_eq!(bench.status(&path).await["availableReplicas"], 2);

    bench
        .delete(&format!("{path}?propagationPolicy=Orphan"))
        .await;
    settle().await;
    let taken = text(&sets[0], "/metadata/name").to_owned();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "controller": true,
        "uid": text(&bench.config_map("c", json!({})).await, "/metadata/uid")});
    let owned = json!({"metadata": {"ownerReferences": [owner]}});
    bench.merge(&format!("{REPLICA_SETS}/{taken}"), owned).await;
    bench.make(DEPLOYMENTS, &web).await;
    settle().await;
    let status = bench.status(&path).await;
    assert_eq!(status["collisionCount"], 1, "{status}");
    assert_eq!(bench.items(REPLICA_SETS).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn recreating_waits_until_the_old_pods_are_gone() {
    let bench = bench(Workloads::default().termination(Duration::from_secs(10))).await;
    let path = format!("{DEPLOYMENTS}/web");
    let spec = json!({"replicas": 2, "strategy": {"type": "Recreate"}, "revisionHistoryLimit": 0});
    bench.make(DEPLOYMENTS, &workload("web", &spec)).await;
    settle().await;
    let patch =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}});
    bench.merge(&path, patch).await;
    settle().await;
    let pods = bench.items(PODS).await;
    assert!(
        pods.iter()
            .all(|pod| pod["spec"]["containers"][0]["image"] == "i:1")
    );
    sleep(Duration::from_secs(10)).await;
    settle().await;
    let pods = bench.items(PODS).await;
    assert_eq!(pods.len(), 2);
    assert!(
        pods.iter()
            .all(|pod| pod["spec"]["containers"][0]["image"] == "i:2")
    );
    assert_eq!(
        bench.items(REPLICA_SETS).await.len(),
        1,
        "no history is kept"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_goes_nowhere_is_said_to_have_timed_out() {
    let bench = bench(Workloads::default().nodes(0)).await;
    bench
        .make(
            DEPLOYMENTS,
            &workload(
                "web",
                &json!({"replicas": 1, "progressDeadlineSeconds": 60}),
            ),
        )
        .await;
    settle().await;
    let path = format!("{DEPLOYMENTS}/web");
    assert_eq!(
        condition(&bench.status(&path).await, "Progressing")["status"],
        "True"
    );
    sleep(Duration::from_secs(60)).await;
    let status = bench.status(&path).await;
    assert_eq!(
        condition(&status, "Progressing")["reason"],
        "ProgressDeadlineExceeded"
    );
    assert_eq!(condition(&status, "Available")["status"], "False");
}

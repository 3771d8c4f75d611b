//! Tests of records that somebody else has written: a patch of the owner causes few requests.

use lariat_operator::Desired;
use serde_json::json;
use tokio::time;

use crate::apply_rig::{Rig, config};
use crate::apply_steps_bench::rig_with;
use crate::bench::SECOND;

/// Kinds that a server has.
const KINDS: [&str; 25] = [
    "v1/ConfigMap",
    "v1/Secret",
    "v1/Pod",
    "v1/Service",
    "v1/ServiceAccount",
    "v1/Event",
    "v1/Endpoints",
    "v1/LimitRange",
    "v1/ResourceQuota",
    "v1/PersistentVolumeClaim",
    "v1/ReplicationController",
    "v1/PodTemplate",
    "apps/v1/Deployment",
    "apps/v1/StatefulSet",
    "apps/v1/DaemonSet",
    "apps/v1/ReplicaSet",
    "apps/v1/ControllerRevision",
    "batch/v1/Job",
    "batch/v1/CronJob",
    "networking.k8s.io/v1/Ingress",
    "networking.k8s.io/v1/NetworkPolicy",
    "rbac.authorization.k8s.io/v1/Role",
    "rbac.authorization.k8s.io/v1/RoleBinding",
    "coordination.k8s.io/v1/Lease",
    "policy/v1/PodDisruptionBudget",
];

/// Writes the record of the owner, and returns the number of requests that follow.
async fn attack(rig: &Rig, record: String) -> u64 {
    let (key, _) = rig.noted().await.pop().expect("a record");
    let before = rig.cluster().journal().total();
    let patch = json!({"metadata": {"annotations": {key: record}}, "spec": {"size": 7}});
    rig.bench.merge("a", patch).await;
    time::sleep(120 * SECOND).await;
    rig.cluster().journal().total() - before
}

fn namespaces(count: usize) -> String {
    let names: Vec<String> = (0..count).map(|number| format!("n{number}")).collect();
    names.join(",")
}

#[tokio::test(start_paused = true)]
async fn forged_record_of_many_namespaces_causes_few_requests() {
    let rig = rig_with(Desired::new().with_value(config("one", "1"))).await;
    rig.calls();
    let record = format!("{};{}", KINDS.join(","), namespaces(1000));
    let requests = attack(&rig, record).await;
    assert!(requests < 80, "{requests}");
    // Nothing was found, so the record is what it was, and the set works on.
    assert_eq!(rig.noted().await.pop().expect("a record").1, "v1/ConfigMap");
    rig.apply_all(Desired::new().with_value(config("two", "1")))
        .await;
    assert!(rig.config_map("one").await.is_none() && rig.config_map("two").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn forged_record_of_some_namespaces_causes_few_requests() {
    let rig = rig_with(Desired::new().with_value(config("one", "1"))).await;
    let record = format!("{};{}", KINDS[4..].join(","), namespaces(50));
    let requests = attack(&rig, record).await;
    assert!(requests < 80, "{requests}");
}

#[tokio::test(start_paused = true)]
async fn forged_record_of_unknown_groups_causes_one_discovery() {
    let rig = rig_with(Desired::new().with_value(config("one", "1"))).await;
    rig.calls();
    let kinds: Vec<String> = (0..10_000)
        .map(|number| format!("g{number}.io/v1/K"))
        .collect();
    let requests = attack(&rig, kinds.join(",")).await;
    assert!(requests < 20, "{requests}");
    let applied = rig.last().expect("applied");
    assert!(!applied.is_gone());
    assert!(
        applied.to_string().contains("more kinds not searched"),
        "{applied}"
    );
    rig.apply_all(Desired::new().with_value(config("two", "1")))
        .await;
    assert!(rig.config_map("one").await.is_none() && rig.config_map("two").await.is_some());
}

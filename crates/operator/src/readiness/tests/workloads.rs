//! Tests of kinds with replicas.

use serde_json::{Value, json};

use super::{check, with, without};

/// Returns the status of a Deployment whose three replicas are available.
fn deployed() -> Value {
    json!({
        "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "conditions": [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
                "message": "Deployment has minimum availability."},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable",
                "message": "ReplicaSet \"a-7d\" has successfully progressed."}],
    })
}

#[test]
fn a_deployment_is_ready_once_all_its_replicas_are_new_and_available() {
    let done = deployed();
    let three = || json!({"replicas": 3});
    check(
        "apps/v1/Deployment",
        [
            (three(), done.clone(), "ready"),
            (
                three(),
                json!({}),
                "in progress: its controller has not observed it",
            ),
            (
                three(),
                Value::Null,
                "in progress: its controller has not observed it",
            ),
            (
                three(),
                with(done.clone(), json!({"observedGeneration": 1})),
                "in progress: its controller has observed generation 1",
            ),
            // A scale-up: the first status after it.
            (
                json!({"replicas": 5}),
                done.clone(),
                "in progress: 3 of 5 replicas are created",
            ),
            // The middle of a rolling update with a surge of one.
            (
                three(),
                with(done.clone(), json!({"replicas": 4, "updatedReplicas": 2})),
                "in progress: 2 of 3 replicas are updated",
            ),
            (
                three(),
                with(done.clone(), json!({"replicas": 4})),
                "in progress: 1 old replicas are left",
            ),
        ],
    );
}

#[test]
fn a_deployment_whose_replicas_are_new_may_be_unavailable_or_given_up() {
    let done = deployed();
    let three = || json!({"replicas": 3});
    let deadline = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
        "message": "ReplicaSet \"a-7d\" has timed out progressing."}]);
    let unavailable = json!([{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable",
        "message": "Deployment does not have minimum availability."}]);
    check(
        "apps/v1/Deployment",
        [
            (
                three(),
                with(done.clone(), json!({"availableReplicas": 2})),
                "in progress: 2 of 3 replicas are available",
            ),
            (
                three(),
                without(done.clone(), &["availableReplicas", "readyReplicas"]),
                "in progress: 0 of 3 replicas are available",
            ),
            (
                three(),
                with(done.clone(), json!({"readyReplicas": 2})),
                "in progress: 2 of 3 replicas are ready",
            ),
            (
                three(),
                with(
                    done.clone(),
                    json!({"updatedReplicas": 1, "conditions": deadline}),
                ),
                "failed: ReplicaSet \"a-7d\" has timed out",
            ),
            (
                three(),
                with(done.clone(), json!({"conditions": unavailable})),
                "in progress: Deployment does not have minimum",
            ),
            // Without a number of replicas it is one.
            (
                json!({}),
                json!({"observedGeneration": 2}),
                "in progress: 0 of 1",
            ),
            (
                json!({"replicas": 0}),
                json!({"observedGeneration": 2}),
                "ready",
            ),
        ],
    );
}

#[test]
fn a_stateful_set_is_ready_once_all_its_replicas_are_of_the_last_revision() {
    let done = json!({
        "observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "currentReplicas": 3, "updatedReplicas": 3,
        "availableReplicas": 3, "currentRevision": "a-6f", "updateRevision": "a-6f", "collisionCount": 0,
    });
    let three = || json!({"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}});
    let staged = json!({"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}});
    let by_hand = json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}});
    let rolling = json!({"updateRevision": "a-8c", "currentReplicas": 2, "updatedReplicas": 1});
    check(
        "apps/v1/StatefulSet",
        [
            (three(), done.clone(), "ready"),
            (
                three(),
                json!({}),
                "in progress: its controller has not observed it",
            ),
            (
                three(),
                with(done.clone(), json!({"replicas": 1, "readyReplicas": 1})),
                "in progress: 1 of 3 replicas are created",
            ),
            (
                three(),
                with(done.clone(), json!({"readyReplicas": 2})),
                "in progress: 2 of 3 replicas are ready",
            ),
            (
                three(),
                with(done.clone(), json!({"replicas": 5, "readyReplicas": 5})),
                "in progress: 2 old replicas are left",
            ),
            (
                three(),
                with(done.clone(), rolling.clone()),
                "in progress: 1 of 3 replicas are updated",
            ),
            (staged.clone(), with(done.clone(), rolling.clone()), "ready"),
            (
                staged,
                with(
                    done.clone(),
                    json!({"updateRevision": "a-8c", "updatedReplicas": 0}),
                ),
                "in progress: 0 of 1 replicas are updated",
            ),
            (by_hand, with(done.clone(), rolling), "ready"),
            (
                json!({"replicas": 0}),
                json!({"observedGeneration": 2, "replicas": 0}),
                "ready",
            ),
        ],
    );
}

#[test]
fn a_daemon_set_is_ready_once_it_is_on_all_nodes() {
    let done = json!({
        "observedGeneration": 2, "desiredNumberScheduled": 4, "currentNumberScheduled": 4,
        "updatedNumberScheduled": 4, "numberAvailable": 4, "numberReady": 4, "numberMisscheduled": 0,
    });
    check(
        "apps/v1/DaemonSet",
        [
            (json!({}), done.clone(), "ready"),
            (
                json!({}),
                json!({}),
                "in progress: its controller has not observed it",
            ),
            (
                json!({}),
                with(done.clone(), json!({"currentNumberScheduled": 3})),
                "in progress: 3 of 4 replicas are scheduled",
            ),
            (
                json!({}),
                without(done.clone(), &["updatedNumberScheduled"]),
                "in progress: 0 of 4 replicas are updated",
            ),
            (
                json!({}),
                with(done.clone(), json!({"numberAvailable": 1})),
                "in progress: 1 of 4 replicas are available",
            ),
            (
                json!({"updateStrategy": {"type": "OnDelete"}}),
                without(done.clone(), &["updatedNumberScheduled"]),
                "ready",
            ),
            // A cluster without fitting nodes.
            (
                json!({}),
                json!({"observedGeneration": 2, "desiredNumberScheduled": 0, "numberReady": 0}),
                "ready",
            ),
        ],
    );
}

#[test]
fn a_replica_set_is_ready_once_its_replicas_are() {
    let done = json!({"observedGeneration": 2, "replicas": 2, "fullyLabeledReplicas": 2,
        "readyReplicas": 2, "availableReplicas": 2});
    let quota = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
        "message": "pods \"a-x\" is forbidden: exceeded quota"}]);
    let two = || json!({"replicas": 2});
    check(
        "apps/v1/ReplicaSet",
        [
            (two(), done.clone(), "ready"),
            (
                two(),
                json!({"replicas": 0}),
                "in progress: its controller has not observed it",
            ),
            (
                two(),
                with(done.clone(), json!({"readyReplicas": 1})),
                "in progress: 1 of 2 replicas are ready",
            ),
            (
                two(),
                with(done.clone(), json!({"replicas": 3})),
                "in progress: 1 old replicas",
            ),
            (
                two(),
                json!({"observedGeneration": 2, "replicas": 0, "conditions": quota}),
                "in progress: pods \"a-x\" is forbidden",
            ),
        ],
    );
}

//! Tests of kinds without replicas.

use serde_json::json;

use super::{check, with};

#[test]
fn a_job_is_ready_once_it_is_complete() {
    let condition = |kind: &str, reason: &str| {
        json!({"startTime": "2026-11-27T10:00:00Z", "conditions": [
            {"type": kind, "status": "True", "reason": reason, "message": format!("it is {reason}")}]})
    };
    check(
        "batch/v1/Job",
        [
            (json!({}), json!({}), "in progress: the Job has not started"),
            (
                json!({"completions": 3}),
                json!({"startTime": "2026-11-27T10:00:00Z", "active": 1, "succeeded": 1}),
                "in progress: 1 of 3 Pods have succeeded",
            ),
            (
                json!({}),
                condition("Complete", "CompletionsReached"),
                "ready",
            ),
            (
                json!({}),
                condition("Failed", "BackoffLimitExceeded"),
                "failed: it is BackoffLimitExceeded",
            ),
            // The Pods of a Job that is given up are still being deleted.
            (
                json!({}),
                condition("FailureTarget", "PodFailurePolicy"),
                "in progress: 0 of 1",
            ),
            (
                json!({"suspend": true}),
                condition("Suspended", "JobSuspended"),
                "ready",
            ),
        ],
    );
}

#[test]
fn a_pod_is_ready_once_it_says_so_or_has_succeeded() {
    let running = |ready: &str| {
        json!({"phase": "Running", "conditions": [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Ready", "status": ready, "reason": "ContainersNotReady",
                "message": "containers with unready status: [web]"}]})
    };
    let crashing = json!([{"name": "web", "ready": false, "restartCount": 7,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}}]);
    let unschedulable = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/3 nodes are available"}]});
    check(
        "v1/Pod",
        [
            (json!({}), running("True"), "ready"),
            (
                json!({}),
                running("False"),
                "in progress: containers with unready status",
            ),
            (
                json!({}),
                with(running("False"), json!({"containerStatuses": crashing})),
                "failed: the container web is in CrashLoopBackOff",
            ),
            (json!({}), json!({"phase": "Succeeded"}), "ready"),
            (
                json!({}),
                json!({"phase": "Failed"}),
                "failed: the Pod has failed",
            ),
            (
                json!({}),
                json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}),
                "failed: The node was low",
            ),
            (
                json!({}),
                json!({"phase": "Pending"}),
                "in progress: the Pod is pending",
            ),
            (
                json!({}),
                unschedulable,
                "in progress: 0/3 nodes are available",
            ),
            (json!({}), json!({}), "in progress: the Pod has no phase"),
        ],
    );
}

#[test]
fn claims_services_and_budgets_have_rules_of_their_own() {
    check(
        "v1/PersistentVolumeClaim",
        [
            (
                json!({}),
                json!({"phase": "Bound", "capacity": {"storage": "1Gi"}}),
                "ready",
            ),
            (
                json!({}),
                json!({"phase": "Lost"}),
                "in progress: the claim is not bound (Lost)",
            ),
            (json!({}), json!({}), "in progress: the claim is not bound"),
        ],
    );
    check(
        "v1/Service",
        [
            (
                json!({"type": "ClusterIP"}),
                json!({"loadBalancer": {}}),
                "ready",
            ),
            (
                json!({"type": "LoadBalancer"}),
                json!({"loadBalancer": {}}),
                "in progress: the load",
            ),
            (
                json!({"type": "LoadBalancer", "clusterIP": "10.0.0.7"}),
                json!({}),
                "ready",
            ),
            (json!({"type": "ExternalName"}), json!({}), "ready"),
        ],
    );
    check(
        "policy/v1/PodDisruptionBudget",
        [
            (json!({}), json!({}), "in progress: the allowed disruptions"),
            (
                json!({}),
                json!({"observedGeneration": 2, "currentHealthy": 1, "desiredHealthy": 2, "expectedPods": 3,
                    "disruptionsAllowed": 0}),
                "ready",
            ),
        ],
    );
}

#[test]
fn a_definition_is_ready_once_it_is_established() {
    let definition = |names: &str, established: &str, reason: &str| {
        json!({"conditions": [
            {"type": "NamesAccepted", "status": names, "reason": "NoConflicts", "message": "names"},
            {"type": "Established", "status": established, "reason": reason,
                "message": "the initial names have been accepted"}]})
    };
    check(
        "apiextensions.k8s.io/v1/CustomResourceDefinition",
        [
            (
                json!({}),
                definition("True", "True", "InitialNamesAccepted"),
                "ready",
            ),
            (
                json!({}),
                definition("True", "False", "Installing"),
                "in progress: the initial names",
            ),
            (
                json!({}),
                definition("False", "False", "NotAccepted"),
                "failed: names",
            ),
            (
                json!({}),
                json!({}),
                "in progress: the CRD is not established",
            ),
        ],
    );
}

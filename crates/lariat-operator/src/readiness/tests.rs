//! Tables of objects and whether they are ready; the statuses are those that genuine controllers write.

use serde_json::{Value, json};

use super::Readiness;

/// Returns an object with metadata of a generation, a spec and a status.
fn object(kind: &str, spec: Value, status: Value) -> Value {
    let (version, kind) = kind.rsplit_once('/').expect("a version and a kind");
    json!({"apiVersion": version, "kind": kind, "spec": spec, "status": status,
        "metadata": {"name": "a", "generation": 2}})
}

/// Checks the readiness of objects of a kind: what it begins with when printed.
fn check<const N: usize>(kind: &str, table: [(Value, Value, &str); N]) {
    for (spec, status, expected) in table {
        let found = Readiness::of(&object(kind, spec.clone(), status.clone())).to_string();
        let fits = found.starts_with(expected) && (expected != "ready" || found == "ready");
        assert!(fits, "{kind} {spec} {status}: {found}, not {expected}");
    }
}

/// Returns a status without some of its members.
fn without(mut status: Value, names: &[&str]) -> Value {
    for name in names {
        status.as_object_mut().expect("a status").remove(*name);
    }
    status
}

/// Returns a status with other values.
fn with(mut status: Value, changes: Value) -> Value {
    let Value::Object(changes) = changes else {
        panic!("not a status")
    };
    for (name, value) in changes {
        status[name] = value;
    }
    status
}

#[test]
fn a_deployment_is_ready_once_all_its_replicas_are_new_and_available() {
    let done = json!({
        "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "conditions": [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
                "message": "Deployment has minimum availability."},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable",
                "message": "ReplicaSet \"a-7d\" has successfully progressed."}],
    });
    let three = || json!({"replicas": 3});
    let deadline = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
        "message": "ReplicaSet \"a-7d\" has timed out progressing."}]);
    let unavailable = json!([{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable",
        "message": "Deployment does not have minimum availability."}]);
    check(
        "apps/v1/Deployment",
        [
            (three(), done.clone(), "ready"),
            (
                three(),
                json!({}),
                "in progress: its controller has not seen it",
            ),
            (
                three(),
                Value::Null,
                "in progress: its controller has not seen it",
            ),
            (
                three(),
                with(done.clone(), json!({"observedGeneration": 1})),
                "in progress: its controller has seen generation 1",
            ),
            // A scale-up: the first status after it.
            (
                json!({"replicas": 5}),
                done.clone(),
                "in progress: 3 of 5 replicas are there",
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
                "in progress: 1 replicas of before are left",
            ),
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
                "in progress: its controller has not seen it",
            ),
            (
                three(),
                with(done.clone(), json!({"replicas": 1, "readyReplicas": 1})),
                "in progress: 1 of 3 replicas are there",
            ),
            (
                three(),
                with(done.clone(), json!({"readyReplicas": 2})),
                "in progress: 2 of 3 replicas are ready",
            ),
            (
                three(),
                with(done.clone(), json!({"replicas": 5, "readyReplicas": 5})),
                "in progress: 2 replicas of before are left",
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
                "in progress: its controller has not seen it",
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
                "in progress: its controller has not seen it",
            ),
            (
                two(),
                with(done.clone(), json!({"readyReplicas": 1})),
                "in progress: 1 of 2 replicas are ready",
            ),
            (
                two(),
                with(done.clone(), json!({"replicas": 3})),
                "in progress: 1 replicas of before",
            ),
            (
                two(),
                json!({"observedGeneration": 2, "replicas": 0, "conditions": quota}),
                "in progress: pods \"a-x\" is forbidden",
            ),
        ],
    );
}

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
                "failed: the container web crashes",
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
            (json!({}), json!({}), "in progress: the Pod was not seen"),
        ],
    );
}

#[test]
fn claims_services_budgets_and_definitions_have_rules_of_their_own() {
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
                "in progress: the definition is not established",
            ),
        ],
    );
}

#[test]
fn custom_kinds_have_conditions_and_configuration_is_ready_at_once() {
    let conditions = |conditions: Value| json!({"observedGeneration": 2, "conditions": conditions});
    check(
        "demo.dev/v1/Database",
        [
            (json!({}), Value::Null, "ready"),
            (
                json!({}),
                json!({"observedGeneration": 1}),
                "in progress: its controller has seen",
            ),
            (
                json!({}),
                conditions(json!([{"type": "Ready", "status": "True"}])),
                "ready",
            ),
            (
                json!({}),
                conditions(json!([{"type": "Ready", "status": "True", "observedGeneration": 1}])),
                "in progress: its condition Ready is of an earlier generation",
            ),
            (
                json!({}),
                conditions(json!([{"type": "Ready", "status": "False", "message": "no primary"}])),
                "in progress: no primary",
            ),
            (
                json!({}),
                conditions(json!([{"type": "Ready", "status": "Unknown", "reason": "Starting"}])),
                "in progress: Starting",
            ),
            (
                json!({}),
                conditions(json!([{"type": "Ready", "status": "True"},
                    {"type": "Reconciling", "status": "True", "message": "a new version"}])),
                "in progress: a new version",
            ),
            (
                json!({}),
                conditions(
                    json!([{"type": "Stalled", "status": "True", "message": "bad image"},
                    {"type": "Reconciling", "status": "True"}]),
                ),
                "failed: bad image",
            ),
            (
                json!({}),
                conditions(json!([{"type": "Stalled", "status": "False"}])),
                "ready",
            ),
        ],
    );
    // Knative's Services are not those of Kubernetes.
    check(
        "serving.knative.dev/v1/Service",
        [(
            json!({"type": "LoadBalancer"}),
            json!({"conditions": [{"type": "Ready", "status": "False", "message": "no revision"}]}),
            "in progress: no revision",
        )],
    );
    check("v1/ConfigMap", [(json!({}), Value::Null, "ready")]);
}

#[test]
fn what_is_being_deleted_is_not_ready_whatever_its_status_says() {
    let mut pod = object("v1/Pod", json!({}), json!({"phase": "Succeeded"}));
    pod["metadata"]["deletionTimestamp"] = json!("2026-11-27T10:00:00Z");
    assert_eq!(Readiness::of(&pod), Readiness::Deleting);
    assert_eq!(Readiness::of_condition(&pod, "Ready"), Readiness::Deleting);
}

#[test]
fn a_condition_can_be_required() {
    let database = |status: Value| {
        let object = object("demo.dev/v1/Database", json!({}), status);
        Readiness::of_condition(&object, "Synced").to_string()
    };
    let synced = |status: &str, generation: i64| json!({"conditions": [{"type": "Synced", "status": status, "observedGeneration": generation}]});
    assert!(database(Value::Null).contains("no condition Synced yet"));
    assert_eq!(database(synced("True", 2)), "ready");
    assert!(database(synced("True", 1)).contains("earlier generation"));
    assert_eq!(database(synced("False", 2)), "in progress: Synced is False");
}

#[test]
fn values_of_wrong_types_are_read_as_missing() {
    for odd in [
        json!(null),
        json!([]),
        json!({"apiVersion": 1, "kind": {}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": "fine", "spec": []}),
        json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": {"type": 1}}}),
        json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": 1, "conditions": [1, null]}}),
    ] {
        let _ = Readiness::of(&odd).to_string();
        let _ = Readiness::of_condition(&odd, "Ready").to_string();
    }
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 1},
        "spec": {"replicas": "3"}, "status": {"observedGeneration": "1", "replicas": true}});
    assert!(!Readiness::of(&deployment).is_ready());
}

//! The status new objects begin with.

use serde_json::{Value, json};

use crate::kinds::Resource;

/// Returns the status of a new object of a built-in kind that has one.
pub fn initial(resource: &Resource) -> Option<Value> {
    if resource.rules.custom || !resource.rules.status {
        return None;
    }
    Some(match resource.kind.as_str() {
        "ReplicaSet" | "ReplicationController" => json!({"replicas": 0}),
        "StatefulSet" => json!({"replicas": 0, "availableReplicas": 0}),
        "DaemonSet" => json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0,
            "numberMisscheduled": 0, "numberReady": 0}),
        "PodDisruptionBudget" => json!({"currentHealthy": 0, "desiredHealthy": 0,
            "disruptionsAllowed": 0, "expectedPods": 0}),
        "HorizontalPodAutoscaler" => json!({"desiredReplicas": 0, "currentMetrics": null}),
        "PersistentVolumeClaim" | "PersistentVolume" => json!({"phase": "Pending"}),
        "Service" | "Ingress" => json!({"loadBalancer": {}}),
        "VolumeAttachment" => json!({"attached": false}),
        "FlowSchema" | "CustomResourceDefinition" => return None,
        _ => json!({}),
    })
}

//! Ready nodes.

use lariat_apimachinery::KUBERNETES;
use serde_json::{Value, json};

use super::managed;
use super::names::{self, hex};
use super::options::Load;
use crate::strategy::NODE_FEATURES;

const NODES: u64 = 3;

/// Conditions, their status, and why.
const CONDITIONS: [(&str, &str, &str, &str); 4] = [
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    (
        "DiskPressure",
        "False",
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
    ),
    (
        "PIDPressure",
        "False",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
    ),
    (
        "Ready",
        "True",
        "KubeletReady",
        "kubelet is posting ready status",
    ),
];

pub(super) fn node(load: &Load, number: usize) -> Value {
    let mut rng = names::random(load.seed, NODES, number);
    let name = names::node(number);
    let zone = format!("eu-central-1{}", ["a", "b", "c"][number % 3]);
    let fields = json!({"f:metadata": {"f:labels": {}}, "f:spec": {}, "f:status": {}});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": names::uid(&mut rng), "creationTimestamp": names::time(number as u32 % 3600),
            "labels": {
                "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "m7i.4xlarge",
                "topology.kubernetes.io/region": "eu-central-1", "topology.kubernetes.io/zone": zone,
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
            "managedFields": managed::whole("kubelet", fields, number as u32 % 3600),
        },
        "spec": {"providerID": format!("aws:///{zone}/i-{}", hex(&mut rng, 17))},
        "status": status(&name, number, &mut rng),
    })
}

fn status(name: &str, number: usize, rng: &mut fastrand::Rng) -> Value {
    let conditions = CONDITIONS.map(|(kind, status, reason, message)| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": names::time(86_400), "lastTransitionTime": names::time(3600),
        })
    });
    let capacity = json!({"cpu": "16", "ephemeral-storage": "104845292Ki", "memory": "64761380Ki", "pods": "110"});
    json!({
        "addresses": [
            {"type": "InternalIP", "address": names::dotted(names::address(number))},
            {"type": "Hostname", "address": name},
        ],
        "allocatable": capacity, "capacity": capacity, "conditions": conditions,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}, "declaredFeatures": NODE_FEATURES,
        "nodeInfo": {
            "architecture": "amd64", "bootID": names::uid(rng), "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": "6.12.40", "kubeProxyVersion": "", "kubeletVersion": format!("v{KUBERNETES}.0"),
            "machineID": hex(rng, 32), "operatingSystem": "linux", "osImage": "Flatcar Container Linux",
            "systemUUID": names::uid(rng),
        },
    })
}

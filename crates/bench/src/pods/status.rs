//! What a kubelet reports of a pod.

use fastrand::Rng;
use serde_json::{Value, json};

use super::plan::{Plan, hex, seed};
use super::spec;

/// Conditions, and how many seconds after the scheduling each came true.
pub(super) const CONDITIONS: [(&str, u32); 5] = [
    ("PodReadyToStartContainers", 2),
    ("Initialized", 0),
    ("Ready", 14),
    ("ContainersReady", 14),
    ("PodScheduled", 0),
];

pub(super) fn status(plan: &Plan, rng: &mut Rng) -> Value {
    let conditions = CONDITIONS.map(|(name, after)| {
        json!({
            "type": name, "observedGeneration": 1, "status": "True", "lastProbeTime": null,
            "lastTransitionTime": plan.time(after),
        })
    });
    let containers: Vec<Value> = (0..plan.containers)
        .map(|number| container(plan, number, rng))
        .collect();
    let host = format!("10.0.{}.{}", plan.started % 40, plan.started % 7 + 10);
    json!({
        "observedGeneration": 1, "phase": "Running", "qosClass": "Burstable", "conditions": conditions,
        "containerStatuses": containers, "hostIP": host, "hostIPs": [{"ip": host}],
        "podIP": plan.ip, "podIPs": [{"ip": plan.ip}], "startTime": plan.time(0),
    })
}

fn container(plan: &Plan, number: usize, rng: &mut Rng) -> Value {
    let image = spec::image(plan, number);
    let (repository, _) = image.rsplit_once(':').unwrap_or_default();
    let digest = hex(&mut Rng::with_seed(seed(&image)), 64);
    json!({
        "name": spec::container_name(plan, number), "image": image,
        "imageID": format!("{repository}@sha256:{digest}"),
        "containerID": format!("containerd://{}", hex(rng, 64)),
        "ready": true, "started": true, "restartCount": rng.u8(..3), "lastState": {},
        "state": {"running": {"startedAt": plan.time(2 + rng.u32(..3))}},
    })
}

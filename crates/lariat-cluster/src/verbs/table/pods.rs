//! Rows of Pods.

use serde_json::{Value, json};

use super::age;
use super::column::{AGE, NAME, Printer, text, wide};
use super::row::{Cells, NONE, Row};

pub(super) const PODS: Printer = Printer {
    columns: &[
        NAME,
        text("Ready"),
        text("Status"),
        text("Restarts"),
        AGE,
        wide("IP"),
        wide("Node"),
        wide("Nominated Node"),
        wide("Readiness Gates"),
    ],
    cells: pod,
};

pub(super) const POD_TEMPLATES: Printer = Printer {
    columns: &[NAME, text("Containers"), text("Images"), text("Pod Labels")],
    cells: |template| {
        let [names, images] = template.containers("/template/spec/containers");
        let labels = template.labels("/template/metadata/labels");
        vec![template.name().into(), names, images, labels.into()]
    },
};

/// What the containers of a Pod come to.
#[derive(Debug)]
struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    /// When a container ended last.
    restarted: String,
}

fn pod(pod: Row<'_>) -> Cells {
    let summary = summarize(pod);
    let reason = match (pod.is_deleting(), pod.text("/status/reason")) {
        (true, "NodeLost") => "Unknown".to_owned(),
        (true, _) if !matches!(pod.text("/status/phase"), "Succeeded" | "Failed") => {
            "Terminating".to_owned()
        }
        _ => summary.reason,
    };
    let mut restarts = summary.restarts.to_string();
    if summary.restarts != 0 && !summary.restarted.is_empty() {
        let ago = age::since(Some(&summary.restarted), pod.now);
        restarts = format!("{restarts} ({ago} ago)");
    }
    let address = pod.text_or("/status/podIPs/0/ip", pod.text("/status/podIP"));
    vec![
        pod.name().into(),
        format!("{}/{}", summary.ready, summary.total).into(),
        reason.into(),
        restarts.into(),
        pod.age().into(),
        if address.is_empty() { NONE } else { address }.into(),
        pod.text_or("/spec/nodeName", NONE).into(),
        pod.text_or("/status/nominatedNodeName", NONE).into(),
        readiness_gates(pod).into(),
    ]
}

/// Returns the condition that tells a client that a Pod has run to its end.
pub(super) fn conditions(pod: Row<'_>) -> Option<Value> {
    let message = match pod.text("/status/phase") {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    let reason = pod.text("/status/phase");
    Some(json!([
        {"type": "Completed", "status": "True", "reason": reason, "message": message},
    ]))
}

fn readiness_gates(pod: Row<'_>) -> String {
    let gates = pod.list("/spec/readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let passed = pod
        .rows("/spec/readinessGates")
        .filter(|gate| pod.condition("/status/conditions", gate.text("/conditionType")) == "True");
    format!("{}/{}", passed.count(), gates.len())
}

fn summarize(pod: Row<'_>) -> Summary {
    let sidecars = pod
        .rows("/spec/initContainers")
        .filter(|container| container.text("/restartPolicy") == "Always");
    let gated = pod.rows("/status/conditions").any(|condition| {
        condition.text("/type") == "PodScheduled" && condition.text("/reason") == "SchedulingGated"
    });
    let reason = if gated {
        "SchedulingGated"
    } else {
        pod.text_or("/status/reason", pod.text("/status/phase"))
    };
    let mut summary = Summary {
        reason: reason.to_owned(),
        ready: 0,
        total: pod.count("/spec/containers") + sidecars.count(),
        restarts: 0,
        restarted: String::new(),
    };
    let sidecar_restarts = summary.initialize(pod);
    if let Some((restarts, restarted)) = sidecar_restarts {
        (summary.restarts, summary.restarted) = (restarts, restarted);
        summary.run(pod);
    }
    summary
}

impl Summary {
    /// Looks at the init containers; if they are through, returns the restarts of those that stay.
    fn initialize(&mut self, pod: Row<'_>) -> Option<(i64, String)> {
        let total = pod.count("/spec/initContainers");
        let mut sidecars = (0, String::new());
        let mut initializing = false;
        for (index, status) in pod.rows("/status/initContainerStatuses").enumerate() {
            self.count(status);
            let is_sidecar = pod.rows("/spec/initContainers").any(|container| {
                container.text("/name") == status.text("/name")
                    && container.text("/restartPolicy") == "Always"
            });
            if is_sidecar {
                sidecars.0 += status.number("/restartCount");
                later(&mut sidecars.1, ended(status));
            }
            let terminated = status.has("/state/terminated");
            if terminated && status.number("/state/terminated/exitCode") == 0 {
                continue;
            }
            if is_sidecar && status.flag("/started") {
                self.ready += usize::from(status.flag("/ready"));
                continue;
            }
            self.reason = match status.text("/state/waiting/reason") {
                _ if terminated => format!("Init:{}", end_of(status)),
                "" | "PodInitializing" => format!("Init:{index}/{total}"),
                waiting => format!("Init:{waiting}"),
            };
            initializing = true;
            break;
        }
        let initialized = pod.condition("/status/conditions", "Initialized") == "True";
        (!initializing || initialized).then_some(sidecars)
    }

    /// Looks at the containers themselves, the first of which has the last word.
    fn run(&mut self, pod: Row<'_>) {
        let mut running = false;
        for status in pod.rows("/status/containerStatuses").rev() {
            self.count(status);
            let waiting = status.text("/state/waiting/reason");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if status.has("/state/terminated") {
                self.reason = end_of(status);
            } else if status.flag("/ready") && status.has("/state/running") {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && running {
            let ready = pod.condition("/status/conditions", "Ready") == "True";
            self.reason = if ready { "Running" } else { "NotReady" }.to_owned();
        }
    }

    fn count(&mut self, status: Row<'_>) {
        self.restarts += status.number("/restartCount");
        later(&mut self.restarted, ended(status));
    }
}

fn ended(status: Row<'_>) -> &str {
    status.text("/lastState/terminated/finishedAt")
}

/// Keeps the later of two times; both are written alike, so that their order is that of the texts.
fn later(known: &mut String, time: &str) {
    if time > known.as_str() {
        *known = time.to_owned();
    }
}

/// Says how a container ended.
fn end_of(status: Row<'_>) -> String {
    let end = status.at("/state/terminated");
    match (end.text("/reason"), end.number("/signal")) {
        ("", 0) => format!("ExitCode:{}", end.number("/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

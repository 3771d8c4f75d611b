//! Cells of Pods.

use lariat_apimachinery::kinds::Resource;
use serde_json::{Value, json};

use super::row::NONE;
use crate::printers::age;
use crate::printers::source::Row;

/// The summary of the statuses of all containers of a Pod.
#[derive(Debug)]
struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    /// The time at which a container ended last.
    restarted: String,
}

/// Returns how many containers of a Pod are ready, of how many.
pub(super) fn ready(pod: Row<'_>) -> String {
    let summary = summarize(pod);
    format!("{}/{}", summary.ready, summary.total)
}

/// Returns the phase of a Pod, or the reason why it does not run.
pub(super) fn status(pod: Row<'_>) -> String {
    match (pod.is_deleting(), pod.text("/status/reason")) {
        (true, "NodeLost") => "Unknown".to_owned(),
        (true, _) if !matches!(pod.text("/status/phase"), "Succeeded" | "Failed") => {
            "Terminating".to_owned()
        }
        _ => summarize(pod).reason,
    }
}

/// Returns the number of container restarts of a Pod, and the last one's time.
pub(super) fn restarts(pod: Row<'_>) -> String {
    let summary = summarize(pod);
    if summary.restarts == 0 || summary.restarted.is_empty() {
        return summary.restarts.to_string();
    }
    let ago = age::since(&summary.restarted, pod.now);
    format!("{} ({ago} ago)", summary.restarts)
}

/// Returns the conditions of a Pod's row, which mark a completed Pod.
pub(in crate::printers) fn conditions(resource: &Resource, pod: &Value) -> Option<Value> {
    let is_pod = resource.group.is_empty() && resource.plural == "pods";
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    let message = match phase.filter(|_| is_pod)? {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([
        {"type": "Completed", "status": "True", "reason": phase, "message": message},
    ]))
}

/// Returns how many readiness gates of a Pod have passed, of how many.
pub(super) fn readiness_gates(pod: Row<'_>) -> String {
    let gates = pod.list("/spec/readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let passed = pod
        .rows("/spec/readinessGates")
        .filter(|gate| pod.condition(gate.text("/conditionType")) == "True");
    format!("{}/{}", passed.count(), gates.len())
}

fn summarize(pod: Row<'_>) -> Summary {
    // As printPod in pkg/printers/internalversion.
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
        // Of the init containers, those that ended for good do not count any more.
        (summary.restarts, summary.restarted) = (restarts, restarted);
        summary.run(pod);
    }
    summary
}

impl Summary {
    /// Counts init containers; once all are done, returns the sidecars' restarts.
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
        let initialized = pod.condition("Initialized") == "True";
        (!initializing || initialized).then_some(sidecars)
    }

    /// Counts the containers; of their reasons that of the first is kept.
    fn run(&mut self, pod: Row<'_>) {
        let (mut running, mut failure) = (false, None);
        for status in pod.rows("/status/containerStatuses").rev() {
            self.count(status);
            let waiting = status.text("/state/waiting/reason");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if status.has("/state/terminated") {
                self.reason = end_of(status);
                if status.number("/state/terminated/exitCode") != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if status.flag("/ready") && status.has("/state/running") {
                running = true;
                self.ready += 1;
            }
        }
        // One container has completed while another failed or still runs.
        if self.reason == "Completed" {
            let ready = pod
                .rows("/status/conditions")
                .any(|each| each.text("/type") == "Ready" && each.text("/status") == "True");
            self.reason = match failure {
                _ if running && ready => "Running".to_owned(),
                Some(failure) => failure,
                None if running => "NotReady".to_owned(),
                None => return,
            };
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

/// Keeps the later of two times, which sort as text in this format.
fn later(known: &mut String, time: &str) {
    if time > known.as_str() {
        *known = time.to_owned();
    }
}

/// Returns the reason, signal or exit code of a container that ended.
fn end_of(status: Row<'_>) -> String {
    let end = status.at("/state/terminated");
    match (end.text("/reason"), end.number("/signal")) {
        ("", 0) => format!("ExitCode:{}", end.number("/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

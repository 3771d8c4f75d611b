//! The Pod status that a kubelet writes.

use std::time::Duration;

use serde_json::{Value, json};

use super::conditions::Condition;
use super::reconcile::Reconcile;

const RUN_FOR: &str = "lariat.dev/run-for";
const EXIT_CODE: &str = "lariat.dev/exit-code";
const FAIL: &str = "lariat.dev/fail";

/// The addresses of a Pod.
pub(super) struct Address<'a> {
    pub(super) host: &'a str,
    pub(super) own: &'a str,
}

fn annotation<'a>(pod: &'a Reconcile<'_>, name: &str) -> &'a str {
    pod.at("/metadata/annotations")
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns how long the containers of a Pod run, or `None` if they run for ever.
pub(super) fn run_time(pod: &Reconcile<'_>) -> Option<Duration> {
    let given = parse_duration(annotation(pod, RUN_FOR));
    // What is not restarted for ever has an end, or no Job would complete.
    let is_over_by_itself = matches!(pod.text("/spec/restartPolicy"), "Never" | "OnFailure");
    let fails = exit_code(pod) != 0;
    given.or((is_over_by_itself || fails).then_some(pod.settings.run_time))
}

/// Parses a duration as Go writes it, such as `1m30s` or `250ms`.
fn parse_duration(text: &str) -> Option<Duration> {
    let span: jiff::SignedDuration = text.parse().ok()?;
    Duration::try_from(span).ok()
}

/// Returns the exit code of the containers of a Pod.
pub(super) fn exit_code(pod: &Reconcile<'_>) -> i64 {
    let code = annotation(pod, EXIT_CODE).parse();
    code.unwrap_or(i64::from(annotation(pod, FAIL) == "true"))
}

/// Returns the status of a Pod whose containers have started.
pub(super) fn running(pod: &Reconcile<'_>, address: &Address<'_>) -> Value {
    let now = pod.now();
    let mut status = pod.at("/status").clone();
    if !status.is_object() {
        status = json!({});
    }
    status["phase"] = "Running".into();
    status["startTime"] = now.clone().into();
    if !address.host.is_empty() {
        status["hostIP"] = address.host.into();
        status["hostIPs"] = json!([{"ip": address.host}]);
    }
    status["podIP"] = address.own.into();
    status["podIPs"] = json!([{"ip": address.own}]);
    let conditions = &mut status["conditions"];
    for kind in ["PodReadyToStartContainers", "Initialized"] {
        Condition::new(kind, true).set(conditions, &now, None);
    }
    set_ready(conditions, false, &names(pod), &now);
    Condition::new("PodScheduled", true).set(conditions, &now, None);
    let state = json!({"running": {"startedAt": now}});
    status["containerStatuses"] = containers(pod, &state, false);
    status
}

/// Returns the status of a running Pod that is ready.
pub(super) fn ready(pod: &Reconcile<'_>) -> Value {
    let mut status = pod.at("/status").clone();
    let now = pod.now();
    set_ready(&mut status["conditions"], true, "", &now);
    let containers = status["containerStatuses"].as_array_mut();
    for container in containers.into_iter().flatten() {
        container["ready"] = true.into();
        // After a back-off they start only now.
        if container["state"]["running"].is_null() {
            container["started"] = true.into();
            container["state"] = json!({"running": {"startedAt": now}});
        }
    }
    status
}

/// Returns a Pod's status after its containers ended, by its restart policy.
pub(super) fn ended(pod: &Reconcile<'_>, code: i64) -> Value {
    let restarts = match pod.text("/spec/restartPolicy") {
        "Never" => false,
        "OnFailure" => code != 0,
        _ => true,
    };
    let now = pod.now();
    let reason = if code == 0 { "Completed" } else { "Error" };
    let mut status = pod.at("/status").clone();
    let containers = status["containerStatuses"].as_array_mut();
    for container in containers.into_iter().flatten() {
        let started = container["state"]["running"]["startedAt"].clone();
        let terminated = json!({"terminated": {
            "exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now,
            "containerID": container["containerID"],
        }});
        container["ready"] = false.into();
        if restarts {
            let count = container["restartCount"].as_i64().unwrap_or(0);
            container["restartCount"] = (count + 1).into();
            container["lastState"] = terminated;
            container["started"] = false.into();
            container["state"] = json!({"waiting": {
                "reason": "CrashLoopBackOff", "message": "back-off restarting failed container",
            }});
        } else {
            container["started"] = false.into();
            container["state"] = terminated;
        }
    }
    let conditions = &mut status["conditions"];
    // The phase stays Running while containers wait to be started again.
    if restarts {
        set_ready(conditions, false, &names(pod), &now);
        return status;
    }
    for kind in ["Ready", "ContainersReady"] {
        let reason = if code == 0 {
            "PodCompleted"
        } else {
            "PodFailed"
        };
        Condition::new(kind, false)
            .because(reason, "")
            .set(conditions, &now, None);
    }
    status["phase"] = if code == 0 { "Succeeded" } else { "Failed" }.into();
    status
}

fn set_ready(conditions: &mut Value, is_ready: bool, names: &str, now: &str) {
    for kind in ["Ready", "ContainersReady"] {
        let condition = if is_ready {
            Condition::new(kind, true)
        } else {
            let message = format!("containers with unready status: [{names}]");
            Condition::new(kind, false).because("ContainersNotReady", message)
        };
        condition.set(conditions, now, None);
    }
}

fn names(pod: &Reconcile<'_>) -> String {
    let containers = pod.at("/spec/containers").as_array().into_iter().flatten();
    let names: Vec<&str> = containers
        .filter_map(|each| each["name"].as_str())
        .collect();
    names.join(" ")
}

fn containers(pod: &Reconcile<'_>, state: &Value, is_ready: bool) -> Value {
    let uid = pod.stored.uid().replace('-', "");
    let containers = pod.at("/spec/containers").as_array().into_iter().flatten();
    let status = |(number, container): (usize, &Value)| {
        json!({
            "name": container["name"], "image": container["image"],
            "imageID": format!("lariat://{}", container["image"].as_str().unwrap_or_default()),
            "containerID": format!("lariat://{uid}{number:032x}"),
            "state": state, "lastState": {}, "ready": is_ready, "started": true, "restartCount": 0,
        })
    };
    containers.enumerate().map(status).collect()
}

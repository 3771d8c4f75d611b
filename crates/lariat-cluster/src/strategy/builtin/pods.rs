//! Pods, and templates of them.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::names;
use lariat_apimachinery::names::NameRule;
use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use super::parts::{at, is_void};

/// A new Pod waits, and its class of service follows from its resources.
pub(super) fn prepare_create(object: &mut Object) {
    let class = class_of_service(object);
    object.insert(
        "status".into(),
        json!({"phase": "Pending", "qosClass": class}),
    );
}

/// Puts back the class of service that a status was sent without.
pub(in crate::strategy) fn keep_class(old: &Object, new: &mut Object) {
    let class = at(old, &["status", "qosClass"]);
    let status = new.get_mut("status").and_then(Value::as_object_mut);
    if let (Some(class), Some(status)) = (class, status)
        && is_void(status.get("qosClass"))
    {
        status.insert("qosClass".into(), class.clone());
    }
}

/// Source: `ComputePodQOS` in `k8s.io/kubernetes/pkg/apis/core/v1/helper/qos`.
fn class_of_service(object: &Object) -> &'static str {
    let lists = ["containers", "initContainers"]
        .iter()
        .filter_map(|name| at(object, &["spec", name])?.as_array());
    // What the Pod as a whole has counts alone.
    let needs: Vec<&Value> = match at(object, &["spec", "resources"]) {
        Some(resources) => vec![resources],
        None => lists.flatten().map(|each| &each["resources"]).collect(),
    };
    let (mut any, mut guaranteed) = (false, true);
    for resources in needs {
        for resource in ["cpu", "memory"] {
            let amount = |kind: &str| {
                let amount = resources[kind].get(resource);
                amount.filter(|amount| **amount != "0")
            };
            let (request, limit) = (amount("requests"), amount("limits"));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Finds what is wrong with the spec of a Pod at some path.
pub(super) fn validate_spec(spec: &Object, path: &str) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    let containers = spec.get("containers").and_then(Value::as_array);
    if containers.is_none_or(Vec::is_empty) {
        causes.push(StatusCause::required(&format!("{path}.containers"), ""));
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let items = spec.get(list).and_then(Value::as_array);
        for (at, container) in items.into_iter().flatten().enumerate() {
            let path = format!("{path}.{list}[{at}]");
            causes.extend(validate_container(container, &path, &mut seen));
        }
    }
    let policy = spec
        .get("restartPolicy")
        .and_then(Value::as_str)
        .unwrap_or("Always");
    if !matches!(policy, "Always" | "OnFailure" | "Never") {
        let supported = r#""Always", "OnFailure", "Never""#;
        causes.push(StatusCause::unsupported(
            &format!("{path}.restartPolicy"),
            policy,
            supported,
        ));
    }
    causes.extend(validate_volumes(spec, path));
    causes
}

fn validate_container<'a>(
    container: &'a Value,
    path: &str,
    seen: &mut Vec<&'a str>,
) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let text = |member: &str| {
        container
            .get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let name = text("name");
    let field = format!("{path}.name");
    if name.is_empty() {
        causes.push(StatusCause::required(&field, ""));
    } else if let Err(rule) = names::check(name, NameRule::Label) {
        causes.push(StatusCause::invalid(&field, &name.into(), rule));
    } else if seen.contains(&name) {
        causes.push(StatusCause::duplicate(&field, name));
    }
    seen.push(name);
    if text("image").is_empty() {
        causes.push(StatusCause::required(&format!("{path}.image"), ""));
    }
    let ports = container.get("ports").and_then(Value::as_array);
    for (at, port) in ports.into_iter().flatten().enumerate() {
        let number = port["containerPort"].as_i64().unwrap_or(0);
        let field = format!("{path}.ports[{at}].containerPort");
        match number {
            0 => causes.push(StatusCause::required(&field, "")),
            1..=65535 => {}
            _ => {
                let message = "must be between 1 and 65535, inclusive";
                causes.push(StatusCause::invalid(&field, &number.into(), message));
            }
        }
    }
    causes
}

fn validate_volumes(spec: &Object, path: &str) -> Vec<StatusCause> {
    let named = |list: Option<&Value>| -> Vec<String> {
        let items = list.and_then(Value::as_array).into_iter().flatten();
        items
            .filter_map(|item| item["name"].as_str().map(str::to_owned))
            .collect()
    };
    let volumes = named(spec.get("volumes"));
    let mut causes = Vec::new();
    for list in ["containers", "initContainers"] {
        let containers = spec
            .get(list)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        for (at, container) in containers.enumerate() {
            for (place, mount) in named(container.get("volumeMounts")).iter().enumerate() {
                if !volumes.contains(mount) {
                    let field = format!("{path}.{list}[{at}].volumeMounts[{place}].name");
                    causes.push(StatusCause::not_found(&field, mount));
                }
            }
        }
    }
    causes
}

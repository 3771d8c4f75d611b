//! Adds the overhead and scheduling of a RuntimeClass to Pods.
//!
//! Source: `plugin/pkg/admission/runtimeclass` and `pkg/util/tolerations` in `k8s.io/kubernetes`.

use lariat_apimachinery::go_text;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use lariat_apimachinery::usage::Amounts;
use lariat_core::ObjectKey;
use serde_json::Value;

use super::parts::{at, is_void};
use crate::server::Server;
use crate::status::ApiError;
use crate::strategy::limits;

const CLASSES: &str = "runtimeclasses.node.k8s.io";
const OTHER_OVERHEAD: &str =
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
const NO_OVERHEAD: &str =
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";

/// Sets the overhead, the node selector and the tolerations of a new Pod from its class.
///
/// # Errors
///
/// There is no such class, or the Pod has something else.
pub(in crate::strategy) fn set(
    server: &Server,
    resource: &Resource,
    pod: &mut Object,
) -> Result<(), ApiError> {
    let Some(class) = class(server, resource, pod)? else {
        return Ok(());
    };
    let mut found = Ok(());
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        found = set_overhead(&class, spec).and_then(|()| set_scheduling(&class, spec));
    }
    found.map_err(|reason| limits::refuse(resource, pod, &reason))
}

/// Checks that a new Pod has the overhead of its class, and none without.
///
/// `has_empty` says whether it was sent with one without amounts, which is one, too.
///
/// # Errors
///
/// It has another one, or there is no such class.
pub(crate) fn check_overhead(
    server: &Server,
    resource: &Resource,
    object: &Object,
    has_empty: bool,
) -> Result<(), ApiError> {
    let is_pod = resource.group.is_empty() && resource.plural == "pods";
    let overhead = at(object, &["spec", "overhead"]).filter(|value| !value.is_null());
    let overhead = overhead.or(has_empty.then_some(&Value::Null));
    let has_class = || at(object, &["spec", "runtimeClassName"]).is_some();
    if !is_pod || (overhead.is_none() && !has_class()) {
        return Ok(());
    }
    let class = class(server, resource, object)?;
    let wanted = class.as_ref().and_then(overhead_of);
    let reason = match (wanted, overhead) {
        (Some(wanted), given) if differ(wanted, given.unwrap_or(&Value::Null)) => OTHER_OVERHEAD,
        (None, Some(_)) => NO_OVERHEAD,
        _ => return Ok(()),
    };
    Err(limits::refuse(resource, object, reason))
}

/// Returns the class that a Pod names.
fn class(server: &Server, resource: &Resource, pod: &Object) -> Result<Option<Object>, ApiError> {
    let name = at(pod, &["spec", "runtimeClassName"]).and_then(Value::as_str);
    let Some(name) = name else {
        return Ok(None);
    };
    if name.is_empty() {
        // What the plugin's client says, which asks for what its cache does not have.
        return Err(ApiError::internal("resource name may not be empty"));
    }
    let table = server.store.table(CLASSES);
    match server.store.get(table, &ObjectKey::cluster(name)) {
        Some(stored) => Ok(Some(stored.object())),
        None => {
            let name = go_text::quoted(name);
            let reason = format!("pod rejected: RuntimeClass {name} not found");
            Err(limits::refuse(resource, pod, &reason))
        }
    }
}

/// Returns the overhead of a class; `None` if the class says nothing of it.
fn overhead_of(class: &Object) -> Option<&Value> {
    let overhead = class.get("overhead")?;
    overhead.is_object().then(|| &overhead["podFixed"])
}

fn differ(one: &Value, other: &Value) -> bool {
    Amounts::read(one) != Amounts::read(other)
}

fn set_overhead(class: &Object, spec: &mut Object) -> Result<(), String> {
    let Some(wanted) = overhead_of(class) else {
        return Ok(());
    };
    let given = spec.get("overhead");
    if given.is_some_and(|given| !is_void(Some(given)) && differ(wanted, given)) {
        return Err(OTHER_OVERHEAD.to_owned());
    }
    put(spec, "overhead", wanted.clone());
    Ok(())
}

/// Sets a member, or drops it if the value is empty.
fn put(spec: &mut Object, member: &str, value: Value) {
    if is_void(Some(&value)) {
        spec.remove(member);
    } else {
        spec.insert(member.to_owned(), value);
    }
}

fn set_scheduling(class: &Object, spec: &mut Object) -> Result<(), String> {
    let Some(scheduling) = class.get("scheduling").filter(|value| value.is_object()) else {
        return Ok(());
    };
    let mut selector = spec.get("nodeSelector").and_then(Value::as_object).cloned();
    let selector = selector.get_or_insert_default();
    for (key, value) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        let old = selector.insert(key.clone(), value.clone());
        if let Some(old) = old.filter(|old| old != value) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (old, new) = (text(&old), text(value));
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {new}; pod.spec.nodeSelector[{key}] = {old}"
            ));
        }
    }
    let selector = std::mem::take(selector);
    put(spec, "nodeSelector", selector.into());
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned();
    let given = list(spec.get("tolerations")).unwrap_or_default();
    let added = list(scheduling.get("tolerations")).unwrap_or_default();
    let merged = merge(&[given, added].concat());
    put(spec, "tolerations", merged.into());
    Ok(())
}

/// Drops the tolerations that others cover; of equal ones, the first stays.
// `MergeTolerations`.
fn merge(all: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for (at, each) in all.iter().enumerate() {
        let by_earlier = merged.iter().any(|other| covers(other, each));
        let mut later = all[at + 1..].iter();
        let by_later = later.any(|other| !are_equal(other, each) && covers(other, each));
        if !by_earlier && !by_later {
            merged.push(each.clone());
        }
    }
    merged
}

fn text<'a>(toleration: &'a Value, member: &str) -> &'a str {
    toleration[member].as_str().unwrap_or_default()
}

fn are_equal(one: &Value, other: &Value) -> bool {
    let members = ["key", "operator", "value", "effect"];
    let mut members = members.iter();
    members.all(|member| text(one, member) == text(other, member))
        && one["tolerationSeconds"] == other["tolerationSeconds"]
}

/// Returns whether a toleration tolerates all that another one does.
// `isSuperset`.
fn covers(wide: &Value, narrow: &Value) -> bool {
    if are_equal(wide, narrow) {
        return true;
    }
    let is_for_all = text(wide, "key").is_empty() && text(wide, "operator") == "Exists";
    if text(narrow, "key") != text(wide, "key") && !is_for_all {
        return false;
    }
    let effect = text(wide, "effect");
    if text(narrow, "effect") != effect && !effect.is_empty() {
        return false;
    }
    let seconds = |toleration: &Value| toleration["tolerationSeconds"].as_i64();
    if effect == "NoExecute"
        && let Some(limit) = seconds(wide)
        && seconds(narrow).is_none_or(|seconds| seconds > limit)
    {
        return false;
    }
    match text(wide, "operator") {
        "" | "Equal" => {
            text(narrow, "operator") == "Equal" && text(narrow, "value") == text(wide, "value")
        }
        operator => operator == "Exists",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tolerations_that_others_cover_are_dropped() {
        let exists = |key: &str| json!({"key": key, "operator": "Exists"});
        let equal = |key: &str, effect: &str| {
            json!({
                "key": key, "operator": "Equal", "value": "v", "effect": effect,
            })
        };
        for (all, left) in [
            (
                vec![exists("a"), equal("a", "NoSchedule")],
                vec![exists("a")],
            ),
            (
                vec![equal("a", "NoSchedule"), exists("a")],
                vec![exists("a")],
            ),
            (
                vec![exists("a"), exists("a"), exists("b")],
                vec![exists("a"), exists("b")],
            ),
            (
                vec![equal("a", "NoSchedule"), equal("a", "")],
                vec![equal("a", "")],
            ),
        ] {
            assert_eq!(merge(&all), left, "{all:?}");
        }
    }
}

//! Admission plugins of a real server for Pods and volumes.
//!
//! Source: `priority`, `defaulttolerationseconds` and `storage/storageobjectinuseprotection` in
//! `k8s.io/kubernetes/plugin/pkg/admission`.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use lariat_core::ObjectKey;
use serde_json::{Value, json};

use super::builtin::{default_classes, runtime_classes};
use super::{accounts, copy_topology, limits};
use crate::server::Server;
use crate::status::ApiError;
use crate::store::Range;

/// The table of PriorityClasses.
const CLASSES: &str = "priorityclasses.scheduling.k8s.io";
const GLOBAL: &str = "\"globalDefault\":true";

/// The taints that Pods tolerate for five minutes unless they say otherwise.
const TAINTS: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];

/// The finalizer of claims, which stay while a Pod uses them.
pub(crate) const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// The finalizer of volumes, which stay while a claim has them.
pub(crate) const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";
/// The finalizer of VolumeAttributesClasses.
const CLASS_PROTECTION: &str = "kubernetes.io/vac-protection";
/// The taint of new nodes, which a kubelet that is ready has taken off.
const NOT_READY: &str = TAINTS[0];

/// The values that a PriorityClass gives to Pods.
#[derive(Debug)]
struct Priority {
    class: String,
    value: i64,
    preemption: String,
}

impl Default for Priority {
    fn default() -> Self {
        Self {
            class: String::new(),
            value: 0,
            preemption: "PreemptLowerPriority".to_owned(),
        }
    }
}

/// Fills in the missing fields of a new object.
///
/// # Errors
///
/// The object names a priority that its class does not have, or a class that is not there.
pub(crate) fn admit_create(
    server: &Server,
    resource: &Resource,
    object: &mut Object,
) -> Result<(), ApiError> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => {
            // In the order of the plugins of kube-apiserver.
            limits::set_defaults(server, object);
            let admitted = accounts::admit(server, object);
            admitted.map_err(|reason| limits::refuse(resource, object, &reason))?;
            if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
                let set = set_priority(server, spec);
                tolerate(spec);
                set.map_err(|reason| limits::refuse(resource, object, &reason))?;
            }
            runtime_classes::set(server, resource, object)?;
            if let Some(node) = bound_to(object) {
                copy_topology(server, &node, object);
            }
            Ok(())
        }
        ("scheduling.k8s.io", "priorityclasses") => check_class(server, resource, object),
        ("", "persistentvolumeclaims") => {
            default_classes::set_storage(server, object);
            protect(object, CLAIM_PROTECTION);
            Ok(())
        }
        ("networking.k8s.io", "ingresses") => {
            default_classes::set_ingress(server, object);
            Ok(())
        }
        ("", "persistentvolumes") => {
            protect(object, VOLUME_PROTECTION);
            Ok(())
        }
        ("storage.k8s.io", "volumeattributesclasses") => {
            protect(object, CLASS_PROTECTION);
            Ok(())
        }
        ("", "nodes") => {
            taint(object);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns the name of the node that a Pod names.
fn bound_to(pod: &Object) -> Option<String> {
    let node = pod.get("spec")?.get("nodeName")?.as_str()?;
    (!node.is_empty()).then(|| node.to_owned())
}

/// Keeps Pods off a new node.
fn taint(node: &mut Object) {
    let spec = node.entry("spec").or_insert_with(|| json!({}));
    let Some(spec) = spec.as_object_mut() else {
        return;
    };
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    // As addNotReadyTaint of the admission plugin nodetaint.
    if let Some(taints) = taints.as_array_mut()
        && !taints
            .iter()
            .any(|taint| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule")
    {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
}

/// Fills in the fields that a client left out of a replacement.
///
/// # Errors
///
/// As for [`admit_create`].
pub(crate) fn admit_update(
    server: &Server,
    resource: &Resource,
    old: &Object,
    object: &mut Object,
) -> Result<(), ApiError> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => {
            // Neither can be changed, so an update that lacks them does not mean to.
            let kept = ["priority", "preemptionPolicy"].map(|member| {
                let value = old.get("spec").and_then(|spec| spec.get(member));
                value.map(|value| (member, value.clone()))
            });
            if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
                for (member, value) in kept.into_iter().flatten() {
                    spec.entry(member).or_insert(value);
                }
                tolerate(spec);
            }
            Ok(())
        }
        ("scheduling.k8s.io", "priorityclasses") => check_class(server, resource, object),
        _ => Ok(()),
    }
}

/// Adds a finalizer that a controller removes when nothing uses the object.
fn protect(object: &mut Object, finalizer: &str) {
    let finalizers = metadata_mut(object)
        .entry("finalizers")
        .or_insert_with(|| json!([]));
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|each| each == finalizer)
    {
        list.push(finalizer.into());
    }
}

fn set_priority(server: &Server, spec: &mut Object) -> Result<(), String> {
    let class = spec.get("priorityClassName").and_then(Value::as_str);
    let priority = match class.unwrap_or_default() {
        "" => global_default(server).unwrap_or_default(),
        name => named(server, name)
            .ok_or_else(|| format!("no PriorityClass with name {name} was found"))?,
    };
    // The same number is let through, so that a Pod can be created again from what was read of it.
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != priority.value
    {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
             controller computed {} from the given PriorityClass name",
            priority.value
        ));
    }
    if let Some(given) = spec.get("preemptionPolicy").and_then(Value::as_str)
        && given != priority.preemption
    {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority \
             admission controller computed {} from the given PriorityClass name",
            priority.preemption
        ));
    }
    if !priority.class.is_empty() {
        spec.insert("priorityClassName".into(), priority.class.into());
    }
    spec.insert("priority".into(), priority.value.into());
    spec.insert("preemptionPolicy".into(), priority.preemption.into());
    Ok(())
}

fn priority(class: &Object) -> Priority {
    let default = Priority::default();
    let preemption = class.get("preemptionPolicy").and_then(Value::as_str);
    Priority {
        class: metadata_text(class, "name").to_owned(),
        value: class.get("value").and_then(Value::as_i64).unwrap_or(0),
        preemption: preemption.map_or(default.preemption, str::to_owned),
    }
}

fn named(server: &Server, name: &str) -> Option<Priority> {
    let table = server.store.table(CLASSES);
    let stored = server.store.get(table, &ObjectKey::cluster(name))?;
    Some(priority(&stored.object()))
}

/// Returns the class of Pods that name none; the lowest, if several want to be it.
fn global_default(server: &Server) -> Option<Priority> {
    let page = server
        .store
        .range(server.store.table(CLASSES), &Range::default());
    let classes = page.ok()?.objects;
    // Every new Pod asks, so only what may be the default is decoded.
    let is_candidate = |content: &[u8]| {
        content
            .windows(GLOBAL.len())
            .any(|part| part == GLOBAL.as_bytes())
    };
    let candidates = classes
        .iter()
        .filter(|stored| is_candidate(stored.content()));
    candidates
        .map(|stored| stored.object())
        .filter(|class| class.get("globalDefault") == Some(&true.into()))
        .map(|class| priority(&class))
        .min_by_key(|priority| priority.value)
}

/// Refuses a second default class.
fn check_class(server: &Server, resource: &Resource, object: &Object) -> Result<(), ApiError> {
    let name = metadata_text(object, "name");
    if object.get("globalDefault") != Some(&true.into()) {
        return Ok(());
    }
    match global_default(server) {
        Some(other) if other.class != name => {
            let reason = format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                other.class
            );
            Err(ApiError::forbidden(resource, name, &reason))
        }
        _ => Ok(()),
    }
}

/// Adds the tolerations by which a Pod stays for five minutes on a node that is not ready, or not reached.
fn tolerate(spec: &mut Object) {
    let given = spec.get("tolerations").and_then(Value::as_array);
    let given = given.cloned().unwrap_or_default();
    let covers = |toleration: &Value, taint: &str| {
        let text = |member: &str| toleration[member].as_str().unwrap_or_default();
        matches!(text("effect"), "" | "NoExecute")
            // A toleration without a key tolerates every taint.
            && (text("key").is_empty() || text("key") == taint)
    };
    let missing = TAINTS
        .iter()
        .filter(|taint| !given.iter().any(|each| covers(each, taint)));
    let missing: Vec<Value> = missing
        .map(|taint| {
            json!({
                "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            })
        })
        .collect();
    if !missing.is_empty() {
        spec.insert("tolerations".into(), [given, missing].concat().into());
    }
}

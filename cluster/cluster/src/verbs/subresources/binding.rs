//! `pods/binding` and the older `bindings`: a scheduler assigns a Pod to a node.
//!
//! Source: `BindingREST` and `LegacyBindingREST` in `k8s.io/kubernetes/pkg/registry/core/pod/storage`.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::go_text::quoted;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use serde_json::{Value, json};

use super::body::read_body;
use crate::status::ApiError;
use crate::store::Stored;
use crate::strategy::{self, Replacement};
use crate::verbs::answer::Answer;
use crate::verbs::call::Call;
use crate::verbs::decode::Expected;
use crate::verbs::update;
use crate::wire::write_options::WriteOptions;

pub(super) async fn bind(call: &Call) -> Result<Answer, ApiError> {
    let dry_run = call.query.check_write(WriteOptions::Create)?;
    let mut binding = read_body(
        call,
        Expected {
            kind: "Binding",
            api_version: "v1",
            custom: false,
        },
    )?;
    call.check_same_namespace(&binding)?;
    let named = metadata_text(&binding, "name").to_owned();
    // The older resource has the name in the body only, and the uid in it means nothing.
    let name = call.target.name.clone().unwrap_or_else(|| {
        metadata_mut(&mut binding).remove("uid");
        named.clone()
    });
    let name = name.as_str();
    if named != name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }
    if let Some(node) = target_node(&binding) {
        strategy::copy_topology(&call.server, &node, &mut binding);
    }
    let binding = call.admit_as(("v1", "Binding"), dry_run, binding).await?;
    let node = target(&binding)?;
    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }
    let catalog = call.server.kinds.catalog();
    let pods = catalog
        .resource("", "v1", "pods")
        .ok_or_else(|| call.not_found())?;
    let key = pods.key(call.namespace(), name);
    // A Pod that changes meanwhile is no conflict, unless the binding names a version.
    loop {
        let found = call.server.store.get(pods.table, &key);
        let current = found.ok_or_else(|| ApiError::not_found(pods, name))?;
        check_preconditions(pods, &binding, &current, dry_run)?;
        let mut pod = current.object();
        check(name, &pod)?;
        assign(&mut pod, &binding, node, &call.server.clock.now());
        if dry_run {
            return Ok(Answer::ActionDone);
        }
        // As setPodNodeAndMetadata, which writes to the storage past strategies and field managers.
        let replacement = Replacement::Changed(pod);
        if update::replace(&call.server, pods, &current, &replacement).is_some() {
            return Ok(Answer::ActionDone);
        }
    }
}

/// Returns the name of the node that a binding names, by its kind too.
fn target_node(binding: &Object) -> Option<String> {
    let target = binding.get("target")?;
    let is_node = target.get("kind")? == "Node";
    is_node.then(|| target.get("name")?.as_str().map(str::to_owned))?
}

fn target(binding: &Object) -> Result<&str, ApiError> {
    let target = binding.get("target").unwrap_or(&Value::Null);
    let text = |member: &str| {
        target
            .get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let mut causes = Vec::new();
    let kind = text("kind");
    if !matches!(kind, "" | "Node") {
        causes.push(StatusCause::unsupported(
            "target.kind",
            kind,
            r#""Node", "<empty>""#,
        ));
    }
    if text("name").is_empty() {
        causes.push(StatusCause::required("target.name", ""));
    }
    // In Go these errors have no status, so a genuine server answers 500.
    let texts: Vec<String> = causes.iter().map(StatusCause::text).collect();
    match &texts[..] {
        [] => Ok(text("name")),
        [one] => Err(ApiError::internal(one.clone())),
        more => Err(ApiError::internal(format!("[{}]", more.join(", ")))),
    }
}

/// Checks that the Pod is the one the binding means.
fn check_preconditions(
    pods: &Resource,
    binding: &Object,
    pod: &Stored,
    dry_run: bool,
) -> Result<(), ApiError> {
    let version = pod.revision().to_string();
    for (member, name, is) in [
        ("uid", "UID", pod.uid()),
        ("resourceVersion", "ResourceVersion", &version),
    ] {
        let sent = metadata_text(binding, member);
        if !sent.is_empty() && sent != is {
            return Err(ApiError::unmet(pods, pod.key(), (name, sent, is), dry_run));
        }
    }
    Ok(())
}

/// Refuses to bind a Pod that is bound, being deleted or not to be scheduled yet.
fn check(name: &str, pod: &Object) -> Result<(), ApiError> {
    let refuse = |reason: String| Err(ApiError::conflict_about("pods/binding", name, &reason));
    if !metadata_text(pod, "deletionTimestamp").is_empty() {
        return refuse(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        ));
    }
    let spec = |member: &str| pod.get("spec").and_then(|spec| spec.get(member));
    let node = spec("nodeName").and_then(Value::as_str).unwrap_or_default();
    if !node.is_empty() {
        return refuse(format!(
            "pod {name} is already assigned to node {node}",
            node = quoted(node)
        ));
    }
    let gates = spec("schedulingGates").and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    Ok(())
}

fn assign(pod: &mut Object, binding: &Object, node: &str, now: &str) {
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("nodeName".into(), node.into());
    }
    for member in ["labels", "annotations"] {
        let given = binding
            .get("metadata")
            .and_then(|metadata| metadata.get(member));
        let Some(Value::Object(given)) = given else {
            continue;
        };
        let present = metadata_mut(pod).entry(member).or_insert_with(|| json!({}));
        if let Value::Object(present) = present {
            present.extend(given.clone());
        }
    }
    // The node for which other Pods were preempted means nothing once the Pod is bound.
    if let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("nominatedNodeName");
    }
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null});
    strategy::set_condition(pod, scheduled, now);
}

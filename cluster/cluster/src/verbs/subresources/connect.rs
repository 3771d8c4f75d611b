//! Subresources that lead to containers, of which there are none.
//!
//! Requests that a genuine server refuses before it connects are refused alike.
//!
//! Source: `k8s.io/kubernetes/pkg/registry/core/pod/rest` and `pkg/registry/core/pod/strategy.go`.

use lariat_apimachinery::go_text::quoted;
use lariat_apimachinery::object::Object;
use lariat_core::ObjectKey;
use serde_json::Value;

use crate::status::ApiError;
use crate::verbs::call::Call;
use crate::wire::verb::Verb;

/// Returns the error for a subresource that leads to containers; `None` for others.
pub(super) fn refusal(call: &Call, verb: Verb, subresource: &str) -> Option<ApiError> {
    // A path behind it is that of the request to be passed on.
    let (first, path) = match subresource.split_once('/') {
        Some((first, path)) => (first, Some(path)),
        None => (subresource, None),
    };
    let resource = &call.resource;
    let has_method = match (resource.plural.as_str(), first, path) {
        _ if !resource.group.is_empty() => return None,
        ("pods" | "services" | "nodes", "proxy", _) => true,
        ("pods", "log", None) => verb == Verb::Get,
        ("pods", "attach" | "exec" | "portforward", None) => {
            matches!(verb, Verb::Get | Verb::Create)
        }
        _ => return None,
    };
    Some(if has_method {
        no_containers(call, first)
    } else {
        ApiError::method_not_allowed()
    })
}

fn no_containers(call: &Call, subresource: &str) -> ApiError {
    let name = if subresource == "proxy" {
        name_without_port(call.name())
    } else {
        Some(call.name())
    };
    let Some(name) = name else {
        let kind = call.resource.kind.to_lowercase();
        return ApiError::bad_request(format!("invalid {kind} request {}", quoted(call.name())));
    };
    let key = match call.namespace() {
        Some(namespace) => ObjectKey::namespaced(namespace, name),
        None => ObjectKey::cluster(name),
    };
    let Some(stored) = call.server.store.get(call.resource.table, &key) else {
        return if name == call.name() {
            call.not_found()
        } else {
            ApiError::not_found(&call.resource, name)
        };
    };
    if call.resource.plural == "pods"
        && let Some(reason) = invalid_target(call, subresource, &stored.object())
    {
        return ApiError::bad_request(reason);
    }
    let reason =
        "the embedded cluster runs no containers, so there is nothing to show or to talk to";
    ApiError::bad_request(format!("{reason} ({}/{subresource})", call.resource.plural))
}

/// Returns the name in `name`, `name:port` or `scheme:name:port`; `None` if it is none of these.
///
/// Source: `SplitSchemeNamePort` in `k8s.io/apimachinery/pkg/util/net`.
fn name_without_port(text: &str) -> Option<&str> {
    let parts: Vec<&str> = text.split(':').collect();
    let name = match parts[..] {
        [name] | [name, _] => name,
        ["" | "http" | "https", name, _] => name,
        _ => return None,
    };
    (!name.is_empty()).then_some(name)
}

/// Returns the reason for which a genuine server would not reach the Pod either.
fn invalid_target(call: &Call, subresource: &str, pod: &Object) -> Option<String> {
    let (name, spec) = (call.name(), pod.get("spec")?);
    let wanted = call.query.text("container").unwrap_or_default();
    if matches!(subresource, "attach" | "exec" | "log")
        && !wanted.is_empty()
        && !has_container(spec, wanted)
    {
        return Some(format!("container {wanted} is not valid for pod {name}"));
    }
    let is_assigned = spec["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty());
    let needs_node = matches!(subresource, "attach" | "exec" | "portforward");
    (needs_node && !is_assigned).then(|| format!("pod {name} does not have a host assigned"))
}

fn has_container(spec: &Value, wanted: &str) -> bool {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let mut all = lists
        .iter()
        .filter_map(|list| spec[*list].as_array())
        .flatten();
    all.any(|container| container["name"] == wanted)
}

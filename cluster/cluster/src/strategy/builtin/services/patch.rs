//! Completes an update: keeps omitted values, drops those its type does not have.

use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use super::spec::{is_external, kind, needs_check, node_port, ports, ports_mut};
use crate::strategy::builtin::parts::is_void;

fn spec(object: &Object) -> Object {
    let spec = object.get("spec").and_then(Value::as_object);
    spec.cloned().unwrap_or_default()
}

fn copy(from: &Object, to: &mut Object, member: &str) {
    if is_void(to.get(member))
        && let Some(value) = from.get(member)
    {
        to.insert(member.to_owned(), value.clone());
    }
}

/// Returns whether a Service gets ports of the nodes unasked.
fn gets_ports(object: &Object) -> bool {
    let declined = spec(object).get("allocateLoadBalancerNodePorts") == Some(&Value::Bool(false));
    match kind(object) {
        "NodePort" => true,
        "LoadBalancer" => !declined,
        _ => false,
    }
}

/// Fills in the allocations of before that are needed still.
pub(super) fn keep(old: &Object, new: &mut Object) {
    // As patchAllocatedValues in registry/core/service/strategy.go.
    let addresses = !is_external(old) && !is_external(new);
    let keeps_ports = gets_ports(old) && gets_ports(new);
    let checks = needs_check(old) && needs_check(new);
    let was = spec(old);
    let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if addresses {
        copy(&was, spec, "clusterIP");
        copy(&was, spec, "clusterIPs");
    }
    if keeps_ports {
        keep_ports(&was, spec);
    }
    if checks
        && spec
            .get("healthCheckNodePort")
            .is_none_or(|port| *port == 0)
    {
        copy(&was, spec, "healthCheckNodePort");
    }
    normalize(&was, spec);
}

/// Keeps the list of addresses in line with the first.
fn normalize(was: &Object, spec: &mut Object) {
    let text = |spec: &Object| {
        spec.get("clusterIP")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let (before, now) = (
        text(was).unwrap_or_default(),
        text(spec).unwrap_or_default(),
    );
    let same = spec.get("clusterIPs") == was.get("clusterIPs");
    if before == now {
        copy(was, spec, "clusterIPs");
    } else if same && now.is_empty() {
        spec.remove("clusterIPs");
    } else if same {
        spec.insert("clusterIPs".into(), json!([now]));
    }
}

/// Restores the node ports of ports with the same names.
fn keep_ports(was: &Object, spec: &mut Object) {
    let before: Vec<i64> = ports(was).iter().filter_map(node_port).collect();
    let now = ports(spec).iter().filter_map(node_port);
    let used: Vec<i64> = now.filter(|port| before.contains(port)).collect();
    for port in ports_mut(spec) {
        if port.get("nodePort").is_some_and(|number| *number != 0) {
            continue;
        }
        // The last port of a name counts.
        let mut same = ports(was).iter().rev();
        let same = same.find(|other| other.get("name") == port.get("name"));
        let kept = same.and_then(node_port);
        if let Some(kept) = kept.filter(|kept| !used.contains(kept)) {
            port.insert("nodePort".into(), kept.into());
        }
    }
}

/// Drops fields that the Service's type lacks and the client did not change.
pub(super) fn drop(old: &Object, new: &mut Object) {
    let was = spec(old);
    let external = !is_external(old) && is_external(new);
    let node = |object: &Object| matches!(kind(object), "NodePort" | "LoadBalancer");
    let loses_ports = node(old) && !node(new);
    let loses_check = needs_check(old) && !needs_check(new);
    let unbalanced = kind(old) == "LoadBalancer" && kind(new) != "LoadBalancer";
    let reachable = |object: &Object| {
        let open = kind(object) == "ClusterIP" && !is_void(spec(object).get("externalIPs"));
        node(object) || open
    };
    let unreachable = reachable(old) && !reachable(new);
    let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    // As dropTypeDependentFields: what the client has changed stays, and is refused by the validation.
    let mut drop_same = |members: &[&str]| {
        if members
            .iter()
            .all(|member| spec.get(*member) == was.get(*member))
        {
            for member in members {
                spec.remove(*member);
            }
        }
    };
    if external {
        drop_same(&["internalTrafficPolicy"]);
        drop_same(&["clusterIP", "clusterIPs"]);
        drop_same(&["ipFamilies"]);
        drop_same(&["ipFamilyPolicy"]);
    }
    if loses_check {
        drop_same(&["healthCheckNodePort"]);
    }
    if unbalanced {
        drop_same(&["allocateLoadBalancerNodePorts"]);
        drop_same(&["loadBalancerClass"]);
    }
    if unreachable {
        drop_same(&["externalTrafficPolicy"]);
    }
    let before: Vec<i64> = ports(&was).iter().filter_map(node_port).collect();
    let known = ports(spec)
        .iter()
        .filter_map(node_port)
        .all(|port| before.contains(&port));
    if loses_ports && known {
        for port in ports_mut(spec) {
            port.remove("nodePort");
        }
    }
}

//! Services, and what belongs to the network.

use serde_json::{Value, json};

use super::members::{each, has, inner, made, set, text};
use crate::object::Object;

/// The time a client stays with its Pod, in seconds.
// `DefaultClientIPServiceAffinitySeconds`.
const AFFINITY_SECONDS: i32 = 3 * 60 * 60;

pub(super) fn service(object: &mut Object) {
    let Some(spec) = made(object, "spec") else {
        return;
    };
    set(spec, "sessionAffinity", "None");
    // After the default above, which decides whether a configuration stays.
    affinity(spec);
    set(spec, "type", "ClusterIP");
    each(spec, "ports", |port| {
        set(port, "protocol", "TCP");
        // The zero of Go's `IntOrString` in either form counts as not set.
        let names_none = |target: &Value| target == 0 || target == "";
        if port.get("targetPort").is_none_or(names_none) {
            let target = port.get("port").cloned().unwrap_or_default();
            port.insert("targetPort".into(), target);
        }
    });
    let kind = text(spec, "type").to_owned();
    let balanced = kind == "LoadBalancer";
    // `ExternallyAccessible`.
    if balanced || kind == "NodePort" || (kind == "ClusterIP" && has(spec, "externalIPs")) {
        set(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind != "ExternalName" {
        set(spec, "internalTrafficPolicy", "Cluster");
    }
    if !balanced {
        return;
    }
    set(spec, "allocateLoadBalancerNodePorts", true);
    let balancer = inner(object, "status").and_then(|status| inner(status, "loadBalancer"));
    if let Some(balancer) = balancer {
        each(balancer, "ingress", |ingress| {
            if has(ingress, "ip") {
                set(ingress, "ipMode", "VIP");
            }
        });
    }
}

/// Fills in how long a client stays with its Pod, if it does.
fn affinity(spec: &mut Object) {
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let config = spec.get("sessionAffinityConfig");
            let seconds = config.and_then(|config| config.get("clientIP")?.get("timeoutSeconds"));
            if seconds.is_none_or(Value::is_null) {
                // The configuration is replaced as a whole; it has no other members.
                let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
                spec.insert("sessionAffinityConfig".into(), config);
            }
        }
        _ => {}
    }
}

pub(super) fn ingress_class(object: &mut Object) {
    let parameters = inner(object, "spec").and_then(|spec| inner(spec, "parameters"));
    if let Some(parameters) = parameters {
        set(parameters, "scope", "Cluster");
    }
}

pub(super) fn endpoints(object: &mut Object) {
    each(object, "subsets", |subset| {
        each(subset, "ports", |port| set(port, "protocol", "TCP"));
    });
}

pub(super) fn slice(object: &mut Object) {
    each(object, "ports", |port| {
        // `SetDefaults_EndpointPort`; the name is a pointer in EndpointSlices, and must not stay nil.
        set(port, "name", "");
        set(port, "protocol", "TCP");
    });
}

pub(super) fn policy(object: &mut Object) {
    let Some(spec) = made(object, "spec") else {
        return;
    };
    for rules in ["ingress", "egress"] {
        each(spec, rules, |rule| {
            each(rule, "ports", |port| set(port, "protocol", "TCP"));
        });
    }
    // `SetDefaults_NetworkPolicy`: a policy without rules isolates for ingress, so that type is always there.
    let mut types = vec![Value::from("Ingress")];
    if has(spec, "egress") {
        types.push("Egress".into());
    }
    set(spec, "policyTypes", types);
}

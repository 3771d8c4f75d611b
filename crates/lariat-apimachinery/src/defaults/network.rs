//! Services, and what belongs to the network.

use serde_json::{Value, json};

use super::members::{each, inner, made, set, text};
use crate::object::Object;

/// How long a client stays with its Pod, in seconds.
const AFFINITY_SECONDS: i32 = 3 * 60 * 60;

pub(super) fn service(object: &mut Object) {
    let Some(spec) = made(object, "spec") else {
        return;
    };
    set(spec, "sessionAffinity", "None");
    if text(spec, "sessionAffinity") == "ClientIP" {
        let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
        set(spec, "sessionAffinityConfig", config);
    }
    set(spec, "type", "ClusterIP");
    each(spec, "ports", |port| {
        set(port, "protocol", "TCP");
        let target = port.get("port").cloned().unwrap_or_default();
        set(port, "targetPort", target);
    });
    let kind = text(spec, "type").to_owned();
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        set(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind != "ExternalName" {
        set(spec, "internalTrafficPolicy", "Cluster");
        set(spec, "ipFamilies", json!(["IPv4"]));
        set(spec, "ipFamilyPolicy", "SingleStack");
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", true);
    }
}

pub(super) fn endpoints(object: &mut Object) {
    each(object, "subsets", |subset| {
        each(subset, "ports", |port| set(port, "protocol", "TCP"));
    });
}

pub(super) fn slice(object: &mut Object) {
    each(object, "ports", |port| {
        set(port, "name", "");
        set(port, "protocol", "TCP");
    });
}

pub(super) fn policy(object: &mut Object) {
    let Some(spec) = inner(object, "spec") else {
        return;
    };
    for rules in ["ingress", "egress"] {
        each(spec, rules, |rule| {
            each(rule, "ports", |port| set(port, "protocol", "TCP"));
        });
    }
    let mut types = vec![Value::from("Ingress")];
    if spec.contains_key("egress") {
        types.push("Egress".into());
    }
    set(spec, "policyTypes", types);
}

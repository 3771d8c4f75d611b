//! The Endpoints of Services: the addresses of the Pods that a Service selects.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/endpoint`. It does not truncate lists at 1,000 addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use lariat_core::ObjectKey;
use serde_json::{Value, json};

use super::child::Child;
use super::kind::Kind;
use super::reconcile::{Reconcile, Requeue};
use super::selectors;
use crate::control::controller::ControlPlane;
use crate::control::write::Writer;
use crate::verbs::Deletion;

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const HEADLESS: &str = "service.kubernetes.io/headless";

/// A port of a Service, as one of its Pods has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) number: i64,
    pub(super) protocol: String,
    pub(super) app_protocol: Option<String>,
}

pub(super) fn reconcile(service: &Reconcile<'_>) -> Requeue {
    let Some(pods) = pods(service) else {
        return Requeue::OnChange;
    };
    let subsets = subsets(service, &pods);
    let mut labels = service.at("/metadata/labels").clone();
    if !labels.is_object() {
        labels = json!({});
    }
    labels[MANAGED_BY] = "endpoint-controller".into();
    if is_headless(service) {
        labels[HEADLESS] = "".into();
    }
    let Some(known) = service.find(Kind::Endpoints, service.name()) else {
        let endpoints = json!({
            "kind": "Endpoints", "apiVersion": "v1",
            "metadata": {"name": service.name(), "labels": labels}, "subsets": subsets,
        });
        service.create(Kind::Endpoints, &endpoints);
        return Requeue::OnChange;
    };
    let is_same = known.at("/metadata/labels") == &labels && same(known.at("/subsets"), &subsets);
    if is_same || known.is_going() {
        return Requeue::OnChange;
    }
    Requeue::from(service.edit(&known, |endpoints| {
        endpoints["metadata"]["labels"] = labels;
        endpoints["subsets"] = subsets;
        let object = endpoints.as_object_mut();
        // Empty lists are left out, as Go does with `omitempty`.
        object
            .into_iter()
            .for_each(|all| all.retain(|_, value| *value != json!([])));
    }))
}

/// Deletes the Endpoints of a Service that is gone.
pub(super) fn clean_up(plane: &ControlPlane, service: &ObjectKey) {
    let catalog = plane.server.kinds.catalog();
    let Some(resource) = Kind::Endpoints.resource(&catalog) else {
        return;
    };
    if let Some(stored) = plane.server.store.get(resource.table, service) {
        let writer = Writer {
            server: &plane.server,
            manager: Kind::Endpoints.manager(),
        };
        writer.delete_whatever(resource, &stored, Deletion::default());
    }
}

/// Returns whether two lists are equal; a missing one is empty.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    list(a) == list(b)
}

pub(super) fn is_headless(service: &Reconcile<'_>) -> bool {
    service.text("/spec/clusterIP") == "None"
}

/// Returns the Pods of a Service that have an address.
///
/// `None` if the Service has no selector, so that users write its endpoints, or needs none.
pub(super) fn pods(service: &Reconcile<'_>) -> Option<Vec<Child>> {
    if service.stored.is_deleting() || service.text("/spec/type") == "ExternalName" {
        return None;
    }
    let selector = selectors::of_map(service.at("/spec/selector"))?;
    let mut pods = service.selected(&selector);
    pods.retain(|pod| !pod.text("/status/podIP").is_empty() && !pod.is_over());
    // In a fixed order, so that the same Pods make the same Endpoints.
    pods.sort_by_cached_key(|pod| pod.text("/status/podIP").parse::<IpAddr>().ok());
    Some(pods)
}

/// Returns whether the Pods of a Service count as ready even if they are not.
pub(super) fn publishes_all(service: &Reconcile<'_>) -> bool {
    service.at("/spec/publishNotReadyAddresses") == true
}

/// Returns a Service's ports as resolved by a Pod; missing ones are left out.
pub(super) fn ports(service: &Reconcile<'_>, pod: &Child) -> Vec<Port> {
    let ports = service.at("/spec/ports").as_array().into_iter().flatten();
    let port = |port: &Value| {
        let text = |member: &str| port[member].as_str().map(str::to_owned);
        let protocol = text("protocol").unwrap_or_else(|| "TCP".to_owned());
        Some(Port {
            name: text("name").unwrap_or_default(),
            number: target(port, &protocol, pod)?,
            protocol,
            app_protocol: text("appProtocol"),
        })
    };
    ports.filter_map(port).collect()
}

/// Returns the number of the port that a Service means.
fn target(port: &Value, protocol: &str, pod: &Child) -> Option<i64> {
    let name = match &port["targetPort"] {
        Value::String(name) => name,
        Value::Number(number) => return number.as_i64(),
        _ => return port["port"].as_i64(),
    };
    let containers = pod.at("/spec/containers").as_array().into_iter().flatten();
    let mut ports = containers
        .filter_map(|each| each["ports"].as_array())
        .flatten();
    let is_meant = |each: &&Value| {
        each["name"] == name.as_str() && each["protocol"].as_str().unwrap_or("TCP") == protocol
    };
    ports.find(is_meant)?["containerPort"].as_i64()
}

/// Returns the reference by which an address names its Pod.
pub(super) fn target_of(pod: &Child) -> Value {
    json!({
        "kind": "Pod", "namespace": pod.stored.key().namespace(), "name": pod.name(),
        "uid": pod.stored.uid(),
    })
}

/// Returns the host name of a Pod that the DNS of a Service knows.
pub(super) fn host_name<'a>(service: &Reconcile<'_>, pod: &'a Child) -> Option<&'a str> {
    let is_ours = pod.text("/spec/subdomain") == service.name();
    let name = pod.text("/spec/hostname");
    (is_ours && !name.is_empty()).then_some(name)
}

/// Returns the addresses by the ports they have, ready or not.
fn subsets(service: &Reconcile<'_>, pods: &[Child]) -> Value {
    let mut by_ports: BTreeMap<Vec<Port>, [Vec<Value>; 2]> = BTreeMap::new();
    let all = publishes_all(service);
    for pod in pods.iter().filter(|pod| all || !pod.is_going()) {
        let ports = ports(service, pod);
        let wants_ports = service
            .at("/spec/ports")
            .as_array()
            .is_some_and(|all| !all.is_empty());
        // Without the port that the Service names the Pod cannot serve it. A Service without ports takes every Pod.
        if ports.is_empty() && wants_ports {
            continue;
        }
        let mut address = json!({
            "ip": pod.at("/status/podIP"), "nodeName": pod.at("/spec/nodeName"),
            "targetRef": target_of(pod),
        });
        if let Some(name) = host_name(service, pod) {
            address["hostname"] = name.into();
        }
        let lists = by_ports.entry(ports).or_default();
        // The first list has the ready ones.
        lists[usize::from(!all && !pod.is_ready())].push(address);
    }
    let subsets = by_ports.into_iter();
    subsets
        .map(|(ports, [ready, other])| subset(ports, ready, other))
        .collect()
}

fn subset(ports: Vec<Port>, ready: Vec<Value>, other: Vec<Value>) -> Value {
    let ports = ports.into_iter().map(|port| {
        let mut json = json!({"port": port.number, "protocol": port.protocol});
        let texts = [
            ("name", Some(port.name)),
            ("appProtocol", port.app_protocol),
        ];
        for (member, text) in texts {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                json[member] = text.into();
            }
        }
        json
    });
    let lists = [
        ("addresses", ready),
        ("notReadyAddresses", other),
        ("ports", ports.collect()),
    ];
    lists
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(member, list)| (member.to_owned(), Value::from(list)))
        .collect()
}

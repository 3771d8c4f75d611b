//! The EndpointSlices of Services.
//!
//! Source: `k8s.io/endpointslice`. Addresses are in the order of their numbers, so a deletion may move
//! others to another slice; of the addresses of a Pod only the first in its status is used.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::child::Child;
use super::endpoints::{self, Port};
use super::kind::Kind;
use super::reconcile::{Reconcile, Requeue};

/// The largest number of endpoints in a slice.
const MOST: usize = 100;

const SERVICE: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";

/// The endpoints and ports of one slice.
#[derive(Debug, PartialEq)]
struct Content {
    address_type: &'static str,
    endpoints: Value,
    ports: Value,
}

pub(super) fn reconcile(service: &Reconcile<'_>) -> Requeue {
    let Some(pods) = endpoints::pods(service) else {
        return Requeue::OnChange;
    };
    let labels = labels(service);
    let mut known = service.children(Kind::EndpointSlice);
    known.retain(|slice| slice.label(MANAGED_BY) == CONTROLLER && !slice.is_going());
    let mut wanted = contents(service, &pods);
    // Slices with wanted content stay; the others are updated with what is missing.
    known.retain(|slice| {
        let at = wanted.iter().position(|content| content.is_in(slice));
        let is_kept = at.is_some() && slice.at("/metadata/labels") == &labels;
        if let Some(at) = at.filter(|_| is_kept) {
            wanted.swap_remove(at);
        }
        !is_kept
    });
    let mut next = Requeue::OnChange;
    for content in wanted {
        let fits = |slice: &Child| slice.text("/addressType") == content.address_type;
        match known.iter().position(fits) {
            Some(at) => {
                let slice = known.swap_remove(at);
                let written = service.edit(&slice, |slice| {
                    slice["metadata"]["labels"] = labels.clone();
                    slice["endpoints"] = content.endpoints;
                    slice["ports"] = content.ports;
                });
                next = next.or(Requeue::from(written));
            }
            None => create(service, &labels, &content),
        }
    }
    known.iter().fold(next, |next, slice| {
        next.or(Requeue::from(service.delete(slice, None)))
    })
}

fn labels(service: &Reconcile<'_>) -> Value {
    let mut labels = service.at("/metadata/labels").clone();
    if !labels.is_object() {
        labels = json!({});
    }
    labels[SERVICE] = service.name().into();
    labels[MANAGED_BY] = CONTROLLER.into();
    if endpoints::is_headless(service) {
        labels[HEADLESS] = "".into();
    }
    labels
}

fn create(service: &Reconcile<'_>, labels: &Value, content: &Content) {
    let slice = json!({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "generateName": format!("{}-", service.name()), "labels": labels,
            "ownerReferences": [service.controller_reference()],
        },
        "addressType": content.address_type, "endpoints": content.endpoints, "ports": content.ports,
    });
    service.create(Kind::EndpointSlice, &slice);
}

impl Content {
    fn is_in(&self, slice: &Child) -> bool {
        slice.text("/addressType") == self.address_type
            && endpoints::same(slice.at("/endpoints"), &self.endpoints)
            && endpoints::same(slice.at("/ports"), &self.ports)
    }
}

/// Returns the desired EndpointSlices of a Service, grouped by ports.
///
/// Each set of ports has one slice or more.
fn contents(service: &Reconcile<'_>, pods: &[Child]) -> Vec<Content> {
    let mut groups: BTreeMap<(&'static str, Vec<Port>), Vec<Value>> = BTreeMap::new();
    for pod in pods {
        let kind = if pod.text("/status/podIP").contains(':') {
            "IPv6"
        } else {
            "IPv4"
        };
        let group = groups.entry((kind, endpoints::ports(service, pod)));
        group.or_default().push(endpoint(service, pod));
    }
    // A Service without Pods has an empty slice.
    if groups.is_empty() {
        groups.insert(("IPv4", Vec::new()), Vec::new());
    }
    let mut contents = Vec::new();
    for ((address_type, ports), endpoints) in groups {
        let ports: Value = ports.into_iter().map(port).collect();
        let mut parts: Vec<Value> = endpoints.chunks(MOST).map(Value::from).collect();
        if parts.is_empty() {
            parts.push(json!([]));
        }
        contents.extend(parts.into_iter().map(|endpoints| Content {
            address_type,
            endpoints,
            ports: ports.clone(),
        }));
    }
    contents
}

fn port(port: Port) -> Value {
    let mut json = json!({"name": port.name, "port": port.number, "protocol": port.protocol});
    if let Some(protocol) = port.app_protocol {
        json["appProtocol"] = protocol.into();
    }
    json
}

fn endpoint(service: &Reconcile<'_>, pod: &Child) -> Value {
    let serving = pod.is_ready();
    let is_published = endpoints::publishes_all(service);
    let mut endpoint = json!({
        "addresses": [pod.at("/status/podIP")],
        "conditions": {
            // Published means ready, even while the Pod terminates.
            "ready": is_published || (serving && !pod.is_going()),
            "serving": serving, "terminating": pod.is_going(),
        },
        "targetRef": endpoints::target_of(pod), "nodeName": pod.at("/spec/nodeName"),
    });
    if let Some(name) = endpoints::host_name(service, pod) {
        endpoint["hostname"] = name.into();
    }
    endpoint
}

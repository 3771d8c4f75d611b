//! The Service under which programs in the cluster reach the API server.
//!
//! Source: `k8s.io/kubernetes/pkg/controlplane/controller/kubernetesservice`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use lariat_apimachinery::object::metadata_mut;
use lariat_core::ObjectKey;
use serde_json::{Value, json};

use crate::server::Server;
use crate::store::{Draft, Write};

const NAME: &str = "kubernetes";
const NAMESPACE: &str = "default";

/// The first address of those that Services get.
const CLUSTER_IP: &str = "10.96.0.1";

/// The address of a server that does not listen; no client reaches it there.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6443);

/// Creates the Service `kubernetes`, or updates its endpoints to this server.
pub(super) fn create(server: &Server, address: Option<SocketAddr>) {
    let address = reached(address.unwrap_or(NOWHERE));
    // An earlier run may have left these objects. What clients changed in them stays, beside what depends on this run.
    set(server, "services", service(address), |old, new| {
        old["spec"]["ports"] = new["spec"]["ports"].clone();
    });
    set(server, "endpoints", endpoints(address), |old, new| {
        old["subsets"] = new["subsets"].clone();
    });
    let slices = "endpointslices.discovery.k8s.io";
    set(server, slices, slice(address), |old, new| {
        for member in ["addressType", "endpoints", "ports"] {
            old[member] = new[member].clone();
        }
    });
    set(
        server,
        "ipaddresses.networking.k8s.io",
        ip_address(),
        |_, _| {},
    );
}

/// Returns the URL of a server, which is one of nowhere if it does not listen.
pub(crate) fn origin(scheme: &str, address: Option<SocketAddr>) -> String {
    let address = address.map(reached);
    address.map_or_else(
        || format!("https://{NOWHERE}"),
        |address| format!("{scheme}://{address}"),
    )
}

/// Returns an address at which a server on this machine is reached.
pub(crate) fn reached(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// Creates an object, or changes one that an earlier run of the server left.
fn set(server: &Server, table: &str, object: Value, update: fn(&mut Value, &Value)) {
    let Value::Object(mut new) = object else {
        return;
    };
    let metadata = metadata_mut(&mut new);
    let namespace = metadata.get("namespace").and_then(Value::as_str);
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or(NAME);
    let key = match namespace {
        Some(namespace) => ObjectKey::namespaced(namespace, name),
        None => ObjectKey::cluster(name),
    };
    let table = server.store.table(table);
    let current = server.store.get(table, &key);
    let object = match &current {
        None => {
            metadata.insert("uid".into(), server.random.uid().into());
            metadata.insert("creationTimestamp".into(), server.clock.now().into());
            new
        }
        Some(current) => {
            let old = Value::Object(current.object());
            let mut changed = old.clone();
            update(&mut changed, &Value::Object(new));
            match changed {
                Value::Object(changed) if Value::Object(changed.clone()) != old => changed,
                _ => return,
            }
        }
    };
    let expected = current.map(|current| current.revision());
    store(
        server,
        Write::new(table, &key, expected, Some(Draft::new(&object))),
    );
}

fn store(server: &Server, write: Write<'_>) {
    // Nothing else writes yet.
    drop(server.store.commit(write));
}

fn metadata(labels: &Value) -> Value {
    json!({"name": NAME, "namespace": NAMESPACE, "labels": labels})
}

fn service(address: SocketAddr) -> Value {
    json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": metadata(&json!({"component": "apiserver", "provider": "kubernetes"})),
        "spec": {
            "ports": [
                {"name": "https", "protocol": "TCP", "port": 443, "targetPort": address.port()},
            ],
            "clusterIP": CLUSTER_IP, "clusterIPs": [CLUSTER_IP], "type": "ClusterIP",
            "sessionAffinity": "None", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    })
}

fn endpoints(address: SocketAddr) -> Value {
    json!({
        "kind": "Endpoints", "apiVersion": "v1",
        // Its EndpointSlice is created with it, so no controller is to mirror one.
        "metadata": metadata(&json!({"endpointslice.kubernetes.io/skip-mirror": "true"})),
        "subsets": [{
            "addresses": [{"ip": address.ip().to_string()}],
            "ports": [{"name": "https", "port": address.port(), "protocol": "TCP"}],
        }],
    })
}

fn slice(address: SocketAddr) -> Value {
    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
    json!({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "name": NAME, "namespace": NAMESPACE, "generation": 1,
            "labels": {"kubernetes.io/service-name": NAME},
        },
        "addressType": family,
        "endpoints": [
            {"addresses": [address.ip().to_string()], "conditions": {"ready": true}},
        ],
        "ports": [{"name": "https", "protocol": "TCP", "port": address.port()}],
    })
}

fn ip_address() -> Value {
    json!({
        "kind": "IPAddress", "apiVersion": "networking.k8s.io/v1",
        "metadata": {
            "name": CLUSTER_IP,
            "labels": {
                "ipaddress.kubernetes.io/ip-family": "IPv4",
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": {"resource": "services", "namespace": NAMESPACE, "name": NAME}},
    })
}

//! Finds the server of a Service.
//!
//! Nothing routes the cluster addresses of an embedded cluster, so a Service is called at one of its endpoints.

use std::net::{IpAddr, SocketAddr};

use lariat_apimachinery::object::Object;
use lariat_core::ObjectKey;
use serde_json::Value;

use crate::server::Server;
use crate::store::Range;

const SERVICES: &str = "services";
const SLICES: &str = "endpointslices.discovery.k8s.io";
const SERVICE_OF_SLICE: &str = "kubernetes.io/service-name";

/// Finds an address for a port of a Service.
pub(super) fn address(
    server: &Server,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<SocketAddr, String> {
    if let Some(address) = server
        .services
        .get(&(namespace.to_owned(), name.to_owned()))
    {
        return Ok(*address);
    }
    let table = server.store.table(SERVICES);
    let key = ObjectKey::namespaced(namespace, name);
    let service = server.store.get(table, &key);
    let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
    let service = service.object();
    let ports = member(&service, "spec", "ports").and_then(Value::as_array);
    let mut ports = ports.into_iter().flatten();
    let wanted = ports
        .find(|each| each["port"] == port)
        .ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
    let port_name = wanted["name"].as_str().unwrap_or_default();
    let range = Range {
        namespace: Some(namespace),
        ..Range::default()
    };
    let page = server.store.range(server.store.table(SLICES), &range);
    let slices = page.map(|page| page.objects).unwrap_or_default();
    let mut addresses = slices
        .iter()
        .filter(|slice| slice.labels().get(SERVICE_OF_SLICE) == Some(name))
        // Ports of Services and slices have the same names; the numbers may differ.
        .filter_map(|slice| ready(&slice.object(), port_name));
    addresses
        .next()
        .ok_or_else(|| format!("no endpoints available for service {name:?}"))
}

/// Returns the first ready address of a slice, with its port of a name.
fn ready(slice: &Object, port_name: &str) -> Option<SocketAddr> {
    let list = |member: &str| {
        let list = slice.get(member).and_then(Value::as_array);
        list.into_iter().flatten()
    };
    let named = |port: &&Value| port["name"].as_str().unwrap_or_default() == port_name;
    let port = list("ports").find(named)?["port"].as_u64()?;
    let port = u16::try_from(port).ok()?;
    // An endpoint of which nothing is said counts as ready.
    let is_ready = |endpoint: &&Value| endpoint["conditions"]["ready"] != false;
    let mut found = list("endpoints").filter(is_ready).filter_map(|endpoint| {
        let address: IpAddr = endpoint["addresses"][0].as_str()?.parse().ok()?;
        Some(SocketAddr::new(address, port))
    });
    found.next()
}

fn member<'a>(object: &'a Object, part: &str, name: &str) -> Option<&'a Value> {
    object.get(part)?.get(name)
}

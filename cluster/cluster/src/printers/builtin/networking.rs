//! Cells of Services, ingresses and endpoints.

use serde_json::Value;

use super::parts::{first_of, join};
use super::row::{NONE, UNKNOWN};
use crate::printers::source::Row;

/// The number of addresses, ports or hosts that are shown.
const SHOWN: usize = 3;

/// Returns the ports of a Service.
pub(super) fn service_ports(ports: Row<'_>) -> String {
    let port = |port: Row<'_>| {
        let (number, protocol) = (port.number("/port"), port.text("/protocol"));
        match port.number("/nodePort") {
            node_port @ 1.. => format!("{number}:{node_port}/{protocol}"),
            _ => format!("{number}/{protocol}"),
        }
    };
    let ports: Vec<String> = ports.rows("").map(port).collect();
    ports.join(",")
}

/// Returns at which address a Service is reached from outside.
pub(super) fn service_address(service: Row<'_>) -> String {
    let external = join(service.at("/spec/externalIPs"));
    match service.text("/spec/type") {
        // As getServiceExternalIP.
        "ClusterIP" | "NodePort" if external.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => external,
        "LoadBalancer" => {
            let balancer = balancer(service.at("/status/loadBalancer/ingress"));
            match (&*balancer, &*external) {
                ("", "") => "<pending>".to_owned(),
                ("", only) | (only, "") => only.to_owned(),
                _ => format!("{balancer},{external}"),
            }
        }
        "ExternalName" => service.text("/spec/externalName").to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

/// Returns the addresses of a load balancer.
pub(super) fn balancer(ingress: Row<'_>) -> String {
    let mut addresses: Vec<&str> = ingress
        .rows("")
        .map(|ingress| ingress.text_or("/ip", ingress.text("/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    // As loadBalancerStatusStringer with `wide`, which is how a server always prints: the addresses are a set, and
    // nothing is cut at 16 characters.
    addresses.sort_unstable();
    addresses.dedup();
    addresses.join(",")
}

/// Returns the first hosts of an Ingress.
///
/// If rules follow them, all rules but three are counted, also those without a host.
pub(super) fn ingress_hosts(ingress: Row<'_>) -> String {
    let rules = ingress.rows("/spec/rules").enumerate();
    let hosts: Vec<(usize, &str)> = rules
        .map(|(at, rule)| (at, rule.text("/host")))
        .filter(|(_, host)| !host.is_empty())
        .take(SHOWN)
        .collect();
    let shown: Vec<&str> = hosts.iter().map(|(_, host)| *host).collect();
    let shown = shown.join(",");
    let count = ingress.count("/spec/rules");
    // As formatHosts, which sees that there are more only at a rule after the last host it shows.
    match hosts.last() {
        None => "*".to_owned(),
        Some((at, _)) if hosts.len() == SHOWN && at + 1 < count => {
            format!("{shown} + {} more...", count - SHOWN)
        }
        Some(_) => shown,
    }
}

pub(super) fn ingress_ports(ingress: Row<'_>) -> &'static str {
    match ingress.count("/spec/tls") {
        0 => "80",
        _ => "80, 443",
    }
}

/// Returns the first addresses of Endpoints, each with each port of its subset.
pub(super) fn endpoints(endpoints: Row<'_>) -> String {
    if endpoints.list("/subsets").is_empty() {
        return NONE.to_owned();
    }
    let addresses: Vec<String> = endpoints.rows("/subsets").flat_map(addresses).collect();
    first_of(&addresses, SHOWN)
}

fn addresses(subset: Row<'_>) -> Vec<String> {
    let addresses = || subset.rows("/addresses").map(|address| address.text("/ip"));
    if subset.list("/ports").is_empty() {
        // A subset without ports shows its addresses alone.
        return addresses().map(str::to_owned).collect();
    }
    let with_port = |port: Row<'_>| {
        let port = port.number("/port");
        let with_port = addresses().map(move |address| {
            if address.contains(':') {
                format!("[{address}]:{port}")
            } else {
                format!("{address}:{port}")
            }
        });
        with_port.collect::<Vec<_>>()
    };
    subset.rows("/ports").flat_map(with_port).collect()
}

/// Returns the first ports of an EndpointSlice.
pub(super) fn slice_ports(ports: Row<'_>) -> String {
    // A port without a number is all ports, and has a name, which may be empty.
    let ports = ports.rows("").map(|port| match port.object.get("port") {
        Some(Value::Number(number)) => number.to_string(),
        _ => port.scalar_or("/name", "*"),
    });
    first_of(&ports.collect::<Vec<_>>(), SHOWN)
}

/// Returns the first addresses of an EndpointSlice.
pub(super) fn slice_addresses(endpoints: Row<'_>) -> String {
    let addresses = endpoints
        .rows("")
        .flat_map(|endpoint| endpoint.list("/addresses"))
        .filter_map(Value::as_str)
        .map(str::to_owned);
    first_of(&addresses.collect::<Vec<_>>(), SHOWN)
}

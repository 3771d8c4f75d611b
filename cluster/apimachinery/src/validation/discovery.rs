//! EndpointSlices.

use std::collections::HashSet;

use std::net::IpAddr;

use super::causes::Causes;
use super::context::Context;
use super::field::Field;
use super::{addresses, formats, labels};

pub(super) fn endpoint_slice(context: &Context<'_>, causes: &mut Causes) {
    let kind = context.get("addressType");
    causes.check_one_of(&kind, &["FQDN", "IPv4", "IPv6"]);
    check_ports(&context.get("ports"), causes);
    let endpoints = context.get("endpoints");
    let old = context.old("endpoints");
    // `ValidateEndpointSliceUpdate` skips unchanged endpoints: controllers rewrite slices with old addresses.
    if old.is_none_or(|old| old.value() != endpoints.value()) {
        check_endpoints(&endpoints, kind.text(), causes);
    }
    if let Some(old) = context.old("addressType") {
        causes.check_immutable(&kind, &old);
    }
}

/// Checks that a list is not too long, and returns whether it is not.
fn is_short(list: &Field<'_>, most: usize, causes: &mut Causes) -> bool {
    causes.check_count(list, most);
    list.list().len() <= most
}

fn check_ports(ports: &Field<'_>, causes: &mut Causes) {
    // `maxPorts`. A list that is too long is not looked into.
    if !is_short(ports, 20_000, causes) {
        return;
    }
    let mut seen = HashSet::new();
    for port in ports.items() {
        let (name, protocol) = (port.get("name"), port.get("protocol"));
        if !name.is_void() {
            causes.check_format(&name, formats::dns_label);
        }
        // The empty name counts too, so only one port may be without a name.
        causes.check_unique(&name, &mut seen);
        if protocol.is_set() {
            causes.check_supported(&protocol, &["SCTP", "TCP", "UDP"]);
        } else {
            causes.required(&protocol, "");
        }
        let application = port.get("appProtocol");
        if application.is_set() {
            causes.check_format(&application, formats::qualified_name);
        }
    }
}

fn check_endpoints(endpoints: &Field<'_>, kind: &str, causes: &mut Causes) {
    if !is_short(endpoints, 1000, causes) {
        return;
    }
    for endpoint in endpoints.items() {
        let list = endpoint.get("addresses");
        causes.check_given(&list, "must contain at least 1 address");
        causes.check_count(&list, 100);
        for address in list.items() {
            check_address(&list, &address, kind, causes);
        }
        let (node, host) = (endpoint.get("nodeName"), endpoint.get("hostname"));
        if node.is_set() {
            causes.check_format(&node, formats::dns_subdomain);
        }
        let topology = endpoint.get("deprecatedTopology");
        if topology.entries().count() > 16 {
            causes.too_many_of(&topology, topology.entries().count(), 16);
        }
        labels::check_labels(&topology, causes);
        if host.is_set() {
            causes.check_format(&host, formats::dns_label);
        }
        check_hints(&endpoint.get("hints"), causes);
    }
}

fn check_address(list: &Field<'_>, address: &Field<'_>, kind: &str, causes: &mut Causes) {
    let before = causes.count();
    let wants_four = kind == "IPv4";
    match kind {
        "IPv4" => _ = addresses::check_ip(address, causes),
        // IPv4 addresses have the lenient rule, since old controllers write them.
        "IPv6" => addresses::check_canonical_ip(address, causes),
        "FQDN" => {
            if causes.check_given(address, "")
                && let Some((part, rule)) = formats::full_domain_wrong(address.text())
            {
                causes.invalid_as(address, part, &rule);
            }
            return;
        }
        _ => return,
    }
    if causes.count() > before {
        // `validateHints` returns at the first list that is too long, and does not look at the other.
        return;
    }
    if addresses::parse(address.text()).is_some_and(|ip| matches!(ip, IpAddr::V4(_)) != wants_four)
    {
        // The path is that of the list, without an index.
        causes.invalid_as(list, address.text(), &format!("must be an {kind} address"));
    }
    addresses::check_endpoint(address, causes);
}

fn check_hints(hints: &Field<'_>, causes: &mut Causes) {
    for (name, format) in [
        ("forZones", formats::label_value as formats::Format),
        ("forNodes", formats::dns_subdomain),
    ] {
        let list = hints.get(name);
        if !is_short(&list, 8, causes) {
            return;
        }
        let mut seen = HashSet::new();
        for hint in list.items() {
            let at = hint.get("name");
            causes.check_unique(&at, &mut seen);
            causes.check_format(&at, format);
        }
    }
}

//! Endpoints.

use crate::validation::addresses;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::rule::{self, PORT, Rule, Rules};

pub(in crate::validation) fn endpoints(context: &Context<'_>, causes: &mut Causes) {
    let subsets = context.get("subsets");
    // `ValidateEndpointsUpdate`: unchanged subsets are not checked again, since rules for addresses became stricter.
    if context
        .old("subsets")
        .is_some_and(|old| old.value() == subsets.value())
    {
        return;
    }
    for subset in subsets.items() {
        if subset.get("addresses").is_void() && subset.get("notReadyAddresses").is_void() {
            causes.required(&subset, "must specify `addresses` or `notReadyAddresses`");
        }
        for list in ["addresses", "notReadyAddresses"] {
            for address in subset.get(list).items() {
                check_address(&address, causes);
            }
        }
        let ports = subset.get("ports");
        for port in ports.items() {
            check_port(&port, ports.list().len() > 1, causes);
        }
    }
}

fn check_address(address: &Field<'_>, causes: &mut Causes) {
    let ip = address.get("ip");
    addresses::check_ip(&ip, causes);
    rule::check(
        address,
        &[("hostname", Rule::Text(formats::dns_label))],
        causes,
    );
    if address.has("nodeName") {
        causes.check_format(&address.get("nodeName"), formats::dns_subdomain);
    }
    // `ValidateEndpointIP`, also for an address that is no address, so it may have two causes.
    addresses::check_endpoint(&ip, causes);
}

const PORTS: Rules = &[
    ("name", Rule::Text(formats::dns_label)),
    ("port", PORT),
    ("protocol", Rule::OneOf(&["SCTP", "TCP", "UDP"])),
];

fn check_port(port: &Field<'_>, needs_name: bool, causes: &mut Causes) {
    // Only several ports need names to be distinguished.
    if needs_name {
        causes.check_given(&port.get("name"), "");
    }
    rule::check(port, PORTS, causes);
    if port.has("appProtocol") {
        causes.check_format(&port.get("appProtocol"), formats::qualified_name);
    }
}

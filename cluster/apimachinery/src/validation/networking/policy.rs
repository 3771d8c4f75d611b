//! NetworkPolicies.

use std::net::IpAddr;

use serde_json::Value;

use crate::validation::addresses;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::labels::{self, SelectorOptions};

/// Ratcheting: checks that an update need not pass if the old object does not.
struct Options<'a> {
    selector: SelectorOptions,
    networks: Vec<&'a str>,
}

pub(in crate::validation) fn network_policy(context: &Context<'_>, causes: &mut Causes) {
    let (spec, old) = (context.get("spec"), context.old("spec"));
    let was_wrong = |old: &Field<'_>| !labels::is_selector(&old.get("podSelector"));
    let options = Options {
        selector: SelectorOptions {
            any_values: old.as_ref().is_some_and(was_wrong),
        },
        // A network of an old form stays valid wherever it is in the policy.
        networks: old.as_ref().map(networks).unwrap_or_default(),
    };
    labels::check_selector(&spec.get("podSelector"), options.selector, causes);
    for (direction, peers) in DIRECTIONS {
        for rule in spec.get(direction).items() {
            for port in rule.get("ports").items() {
                check_port(&port, causes);
            }
            for peer in rule.get(peers).items() {
                check_peer(&peer, &options, causes);
            }
        }
    }
    let types = spec.get("policyTypes");
    if types.list().len() > 2 {
        causes.invalid(&types, "may not specify more than two policyTypes");
        // `ValidateNetworkPolicySpec` does not look at the types then.
        return;
    }
    for kind in types.items() {
        causes.check_supported(&kind, &["Ingress", "Egress"]);
    }
}

const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

/// Returns all networks in a policy.
fn networks<'a>(spec: &Field<'a>) -> Vec<&'a str> {
    let mut networks = Vec::new();
    for (direction, peers) in DIRECTIONS {
        for rule in spec.get(direction).items() {
            for peer in rule.get(peers).items() {
                let block = peer.get("ipBlock");
                if !block.is_set() {
                    continue;
                }
                networks.push(block.text_of("cidr"));
                networks.extend(block.get("except").items().map(|each| each.text()));
            }
        }
    }
    networks
}

fn check_port(port: &Field<'_>, causes: &mut Causes) {
    let protocol = port.get("protocol");
    if protocol.is_set() {
        causes.check_supported(&protocol, &["TCP", "UDP", "SCTP"]);
    }
    let (first, last) = (port.get("port"), port.get("endPort"));
    match first.value() {
        Value::Null if last.is_set() => {
            causes.invalid(&last, "may not be specified when `port` is not specified");
        }
        Value::Null => {}
        Value::String(name) => {
            if last.is_set() {
                causes.invalid(&last, "may not be specified when `port` is non-numeric");
            }
            causes.check_format_of(&first, name, formats::port_name);
        }
        _ => {
            causes.check_between(&first, 1, 65535);
            if last.int() < first.int() && last.is_set() {
                let detail = "must be greater than or equal to `port`";
                // Go shows the first port at the path of the last.
                causes.invalid_as(&last, first.value().clone(), detail);
            }
            if last.is_set() {
                causes.check_between(&last, 1, 65535);
            }
        }
    }
}

fn check_peer(peer: &Field<'_>, options: &Options<'_>, causes: &mut Causes) {
    let selectors = peer.given(&["podSelector", "namespaceSelector"]);
    for name in &selectors {
        labels::check_selector(&peer.get(name), options.selector, causes);
    }
    let block = peer.get("ipBlock");
    if block.is_set() {
        check_block(&block, options, causes);
    }
    if selectors.is_empty() && !block.is_set() {
        causes.required(peer, "must specify a peer");
    } else if !selectors.is_empty() && block.is_set() {
        causes.forbidden(peer, "may not specify both ipBlock and another peer");
    }
}

fn check_block(block: &Field<'_>, options: &Options<'_>, causes: &mut Causes) {
    let network = block.get("cidr");
    if !causes.check_given(&network, "") {
        return;
    }
    let check = |at: &Field<'_>, causes: &mut Causes| {
        if !options.networks.contains(&at.text()) {
            addresses::check_cidr(at, causes);
        }
        addresses::parse_network(at.text())
    };
    let Some((around, length)) = check(&network, causes) else {
        return;
    };
    for except in block.get("except").items() {
        let Some((inner, inner_length)) = check(&except, causes) else {
            continue;
        };
        let is_inside = contains(around, length, addresses::network_number(inner, inner_length))
            // Strict: an exception as large as the block would leave nothing.
            && length < inner_length;
        if !is_inside {
            causes.invalid(&except, "must be a strict subset of `cidr`");
        }
    }
}

// `IPNet.Contains`. The lengths of networks are compared as they were written, which is not done here.
fn contains(around: IpAddr, length: u8, inner: IpAddr) -> bool {
    let number = addresses::network_number(around, length);
    // Of a mask for IPv6 the last 32 bits count if the address is one of IPv4.
    let length = if number.is_ipv4() && around.is_ipv6() {
        length.saturating_sub(96)
    } else {
        length
    };
    number.is_ipv4() == inner.is_ipv4() && addresses::masked(inner, length) == number
}

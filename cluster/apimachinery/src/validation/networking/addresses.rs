//! IPAddresses and ServiceCIDRs.

use crate::validation::addresses;
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::rule::{self, Rule, Rules};
use crate::validation::structs::{Members, Shape};

const PARENT: Rules = &[
    ("group", Rule::Text(formats::dns_subdomain)),
    ("resource name", Rule::Name(formats::path_segment)),
    ("namespace", Rule::Text(formats::path_segment)),
];

/// The form of a parent in messages.
const SHOWN_PARENT: Members = &[
    ("group", "Group", Shape::Text),
    ("resource", "Resource", Shape::Text),
    ("namespace", "Namespace", Shape::Text),
    ("name", "Name", Shape::Text),
];

pub(in crate::validation) fn ip_address(context: &Context<'_>, causes: &mut Causes) {
    let parent = context.get("spec").get("parentRef");
    if parent.is_set() {
        rule::check(&parent, PARENT, causes);
    } else {
        causes.required(&parent, "");
    }
    if let Some(old) = context.old("spec") {
        // `ValidateIPAddressUpdate`.
        causes.check_immutable_struct(&parent, &old.get("parentRef"), SHOWN_PARENT);
    }
}

pub(in crate::validation) fn service_cidr(context: &Context<'_>, causes: &mut Causes) {
    let networks = context.get("spec").get("cidrs");
    let Some(old) = context.old("spec").map(|old| old.get("cidrs")) else {
        check_networks(&networks, causes);
        return;
    };
    if context.updates(Part::Status) {
        return;
    }
    let is_fixed = |at: &Field<'_>, old: &Field<'_>, causes: &mut Causes| {
        if at.text() != old.text() {
            causes.invalid(at, "field is immutable");
        }
    };
    match (old.list().len(), networks.list().len()) {
        // `ValidateServiceCIDRUpdate`: single stack may become dual stack, and nothing else.
        (before, now) if before == now || (before == 1 && now == 2) => {
            for (new, old) in networks.items().zip(old.items()) {
                is_fixed(&new, &old, causes);
            }
            // What did not change was checked at the creation.
            if before != now {
                check_networks(&networks, causes);
            }
        }
        _ => causes.invalid_as(&networks, networks.list(), "field is immutable"),
    }
}

fn check_networks(networks: &Field<'_>, causes: &mut Causes) {
    if !causes.check_given(networks, "at least one CIDR required") {
        return;
    }
    if networks.list().len() > 2 {
        // Go shows the spec at the path of the list.
        let shown = format!("{{\"CIDRs\":{}}}", networks.value());
        causes.invalid_struct(networks, &shown, "may only hold up to 2 values");
        return;
    }
    for network in networks.items() {
        addresses::check_canonical_cidr(&network, causes);
    }
    let families = networks.items().map(|network| {
        let network = addresses::parse_network(network.text());
        network.map(|(address, length)| addresses::network_number(address, length).is_ipv4())
    });
    let families: Vec<Option<bool>> = families.collect();
    if families.len() == 2 && families[0] == families[1] && families[0].is_some() {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
            2001:db8::/64";
        causes.invalid(networks, detail);
    }
}

//! Nodes.

use std::collections::HashSet;

use super::node_annotations;
use crate::go_text;
use crate::validation::addresses;
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::pod::check_effect;
use crate::validation::resources;
use crate::validation::structs::{self, Members, Shape};

pub(in crate::validation) fn node(context: &Context<'_>, causes: &mut Causes) {
    let (metadata, spec, status) = (
        context.get("metadata"),
        context.get("spec"),
        context.get("status"),
    );
    node_annotations::check(&metadata.get("annotations"), causes);
    check_taints(&metadata.get("taints").with(spec.member("taints")), causes);
    for amounts in ["capacity", "allocatable"] {
        for (name, value) in status.get(amounts).entries() {
            // Here the path has the name as a member, not as a key.
            let at = status.get(amounts).get(name).with(value.value());
            resources::check_amount(&at, name, causes);
        }
    }
    // `validateNodeDeclaredFeatures`; the order makes lists of different nodes comparable.
    check_features(&status.get("declaredFeatures"), causes);
    // `ValidateNode` checks swap and networks, and the update of a status does not.
    if context.part == Part::Main {
        check_swap(&metadata, &status.get("nodeInfo").get("swap"), causes);
        check_networks(&spec.get("podCIDRs"), causes);
    }
    if let Some(old) = context.old("spec") {
        check_addresses(&status.get("addresses"), causes);
        check_fixed(&spec, &old, causes);
    }
}

// `validateNodeSwapStatus`; the path of the cause is Go's.
fn check_swap(metadata: &Field<'_>, swap: &Field<'_>, causes: &mut Causes) {
    let capacity = swap.get("capacity");
    if capacity.int().is_some_and(|bytes| bytes <= 0) {
        let at = metadata.get("nodeSwapStatus").get("capacity");
        causes.invalid(&at.with(capacity.value()), "must be greater than zero");
    }
}

/// Checks taints; their path is in the metadata, where they once were.
pub(super) fn check_taints(taints: &Field<'_>, causes: &mut Causes) {
    let mut seen = HashSet::new();
    for taint in taints.items() {
        causes.check_format(&taint.get("key"), formats::qualified_name);
        let value = taint.get("value");
        let broken = formats::label_value(value.text());
        if !broken.is_empty() {
            // `validateNodeTaints` joins the messages, where others add one cause each.
            causes.invalid(&value, &broken.join(";"));
        }
        check_effect(&taint.get("effect"), causes);
        // A key may have several effects, but no two values for one.
        if !seen.insert((taint.text_of("key"), taint.text_of("effect"))) {
            let detail = "taints must be unique by key and effect pair";
            let text = |member: &str| go_text::json(&taint.text_of(member).into());
            let shown = format!(
                "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{}}}",
                text("key"),
                text("value"),
                text("effect"),
                taint.member("timeAdded")
            );
            causes.duplicate_struct(&taint, &shown, detail);
        }
    }
}

fn check_features(features: &Field<'_>, causes: &mut Causes) {
    let is_name = |name: &str| {
        let mut parts = name.split('/');
        let first = parts.next().unwrap_or_default();
        first.starts_with(|c: char| c.is_ascii_uppercase())
            && first.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && parts.all(|part| {
                part.starts_with(|c: char| c.is_ascii_alphabetic())
                    && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
            })
    };
    let mut before: Option<&str> = None;
    for feature in features.items() {
        let name = feature.text();
        let quoted = go_text::quoted(name);
        if name.len() > 253 {
            let detail =
                format!("invalid feature name {quoted}: must be no more than 253 characters");
            causes.invalid(&feature, &detail);
        } else if !is_name(name) {
            let detail = format!(
                "invalid feature name {quoted}: must start with an UpperCamelCase segment, with \
                 subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), \
                 and contain only alphanumeric characters and slashes"
            );
            causes.invalid(&feature, &detail);
        }
        if before == Some(name) {
            causes.duplicate(&feature);
        } else if before.is_some_and(|before| before > name) {
            causes.invalid(&feature, "list must be sorted alphabetically");
        }
        before = Some(name);
    }
}

fn check_networks(networks: &Field<'_>, causes: &mut Causes) {
    for network in networks.items() {
        addresses::check_cidr(&network, causes);
    }
    let texts: Vec<&str> = networks.items().map(|network| network.text()).collect();
    let shown = networks.value().to_string();
    addresses::check_families(networks, (&texts, &shown), "CIDR", causes);
}

/// The form of an address in messages.
const ADDRESS: Members = &[
    ("type", "Type", Shape::Text),
    ("address", "Address", Shape::Text),
];

fn check_addresses(list: &Field<'_>, causes: &mut Causes) {
    let mut seen = HashSet::new();
    for address in list.items() {
        if !seen.insert((address.text_of("type"), address.text_of("address"))) {
            let shown = structs::shown(address.value(), ADDRESS);
            causes.duplicate_struct(&address, &shown, "");
        }
    }
}

/// Checks the members that may be set later, but not changed.
fn check_fixed(spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let networks = spec.get("podCIDRs");
    let was = old.get("podCIDRs");
    let detail = "node updates may not change podCIDR except from \"\" to valid";
    if was.list().len() != networks.list().len() {
        if !was.is_void() {
            causes.forbidden(&networks, detail);
        }
    } else {
        // One cause for each network that differs, all with the same text, as in Go.
        for _ in was
            .list()
            .iter()
            .zip(networks.list())
            .filter(|(was, is)| was != is)
        {
            causes.forbidden(&networks, detail);
        }
    }
    let provider = spec.get("providerID");
    if !old.text_of("providerID").is_empty() && old.text_of("providerID") != provider.text() {
        let detail = "node updates may not change providerID except from \"\" to valid";
        causes.forbidden(&provider, detail);
    }
    if spec.text_of("externalID") != old.text_of("externalID") {
        causes.forbidden(&spec.get("externalID"), "may not be updated");
    }
}

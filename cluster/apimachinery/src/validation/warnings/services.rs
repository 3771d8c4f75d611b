//! Services and the addresses behind them.

use super::addresses::{check_cidr, check_ip};
use super::collected::Warnings;
use crate::object::Object;
use crate::validation::field::Field;

const HINTS: &str = "service.kubernetes.io/topology-aware-hints";

pub(super) fn service(object: &Object, warnings: &mut Warnings) {
    let spec = Field::of(object, "spec");
    // Go checks this after defaults were filled in, where there is always a type.
    let kind = match spec.text_of("type") {
        "" => "ClusterIP",
        kind => kind,
    };
    let is_external = kind == "ExternalName";
    let is_headless = kind == "ClusterIP" && spec.text_of("clusterIP") == "None";
    let addresses = spec.get("externalIPs");
    let annotations = Field::of(object, "metadata").get("annotations");
    if annotations.has(HINTS) {
        warnings.add(format!(
            "annotation {HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
        ));
    }
    // `IsServiceIPSet` excludes `None`, which is no address and is skipped in `check_ip`.
    for at in spec.get("clusterIPs").items() {
        check_ip(&at, warnings);
    }
    let mut warn = |is_so: bool, text: &str| {
        if is_so {
            warnings.add(text);
        }
    };
    // The capital in `spec.SessionAffinity` is Go's.
    let ignored = |member: &str| format!("spec.{member} is ignored for headless services");
    warn(
        is_headless && !spec.text_of("loadBalancerIP").is_empty(),
        &ignored("loadBalancerIP"),
    );
    warn(is_headless && !addresses.is_void(), &ignored("externalIPs"));
    let affinity = spec.text_of("sessionAffinity");
    warn(
        is_headless && !matches!(affinity, "" | "None"),
        &ignored("SessionAffinity"),
    );
    for at in addresses.items() {
        check_ip(&at, warnings);
    }
    // Where external addresses are ignored anyway, that is said instead.
    if !addresses.is_void() && !is_headless && !is_external {
        warnings.add(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
        );
    }
    check_ip(&spec.get("loadBalancerIP"), warnings);
    for at in spec.get("loadBalancerSourceRanges").items() {
        check_cidr(&at, warnings);
    }
    if is_external && !addresses.is_void() {
        warnings.add("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    }
    if !is_external && !spec.text_of("externalName").is_empty() {
        warnings.add("spec.externalName is ignored when spec.type is not \"ExternalName\"");
    }
    if spec.text_of("trafficDistribution") == "PreferClose" {
        warnings
            .add("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
    }
}

pub(super) fn endpoints(object: &Object, warnings: &mut Warnings) {
    // A saving of `endpointsWarnings`: its own controller writes addresses in the standard form.
    if made_by(
        object,
        "endpoints.kubernetes.io/managed-by",
        &["endpoint-controller"],
    ) {
        return;
    }
    for subset in Field::of(object, "subsets").items() {
        for list in ["addresses", "notReadyAddresses"] {
            for address in subset.get(list).items() {
                check_ip(&address.get("ip"), warnings);
            }
        }
    }
}

pub(super) fn slice(object: &Object, is_new: bool, warnings: &mut Warnings) {
    // The type is immutable, so an update could not mend it.
    if is_new && Field::of(object, "addressType").text() == "FQDN" {
        // The member is at the top level of the object; the `spec` is Go's mistake.
        warnings.add("spec.addressType: FQDN endpoints are deprecated");
    }
    let controllers = [
        "endpointslice-controller.k8s.io",
        "endpointslicemirroring-controller.k8s.io",
    ];
    if made_by(
        object,
        "endpointslice.kubernetes.io/managed-by",
        &controllers,
    ) {
        return;
    }
    for endpoint in Field::of(object, "endpoints").items() {
        for address in endpoint.get("addresses").items() {
            check_ip(&address, warnings);
        }
    }
}

/// Returns whether a controller of Kubernetes manages an object.
fn made_by(object: &Object, label: &str, controllers: &[&str]) -> bool {
    let labels = Field::of(object, "metadata").get("labels");
    controllers.contains(&labels.text_of(label))
}

pub(super) fn network_policy(object: &Object, warnings: &mut Warnings) {
    let spec = Field::of(object, "spec");
    // `networkPolicyWarnings`.
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(rules).items() {
            for peer in rule.get(peers).items() {
                let block = peer.get("ipBlock");
                check_cidr(&block.get("cidr"), warnings);
                for except in block.get("except").items() {
                    check_cidr(&except, warnings);
                }
            }
        }
    }
}

pub(super) fn ingress(object: &Object, warnings: &mut Warnings) {
    const CLASS: &str = "kubernetes.io/ingress.class";
    let annotations = Field::of(object, "metadata").get("annotations");
    // Only for new objects: when creating, validation refuses both at once.
    if annotations.has(CLASS) && !Field::of(object, "spec").has("ingressClassName") {
        warnings.add(format!(
            "annotation {CLASS:?} is deprecated, please use 'spec.ingressClassName' instead"
        ));
    }
}

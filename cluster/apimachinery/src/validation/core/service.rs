//! Services.

use std::collections::HashSet;

use super::service_kind::{is_balanced, is_headless, needs_check};
use super::{service_addresses, service_update};
use crate::validation::addresses;
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::labels::check_labels;
use crate::validation::pod::check_port;
use crate::validation::rule::{self, PORT, Rule, Rules};

pub(in crate::validation) fn service(context: &Context<'_>, causes: &mut Causes) {
    if context.updates(Part::Status) {
        service_update::check_status(context, causes);
        return;
    }
    let (spec, old) = (context.get("spec"), context.old("spec"));
    if let Some(old) = &old {
        // `ValidateServiceUpdate` compares first, and validates the whole afterwards.
        service_update::check(&spec, old, causes);
    }
    // In the order of `validateService`.
    check_annotations(context, causes);
    check_type(&spec, causes);
    check_ports(&spec, causes);
    check_labels(&spec.get("selector"), causes);
    check_affinity(&spec, causes);
    service_addresses::check(&spec, old.as_ref(), causes);
    check_external(&spec, old.as_ref(), causes);
    causes.check_one_of(&spec.get("type"), TYPES);
    check_numbers(&spec, causes);
    check_sources(context, &spec, causes);
    check_balancer(&spec, causes);
    check_traffic(&spec, causes);
}

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// Checks the demands of the type on ports and addresses.
fn check_type(spec: &Field<'_>, causes: &mut Causes) {
    let kind = spec.get("type");
    // Without an address of its own, DNS is all that a Service offers, and DNS needs no ports.
    if spec.get("ports").is_void() && !is_headless(spec) && kind.text() != "ExternalName" {
        causes.required(&spec.get("ports"), "");
    }
    match kind.text() {
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            // The value is not that of the item: Go shows the constant.
            let at = spec.get("clusterIPs").item_as(0, &serde_json::Value::Null);
            let detail = format!("may not be set to 'None' for {} services", kind.text());
            causes.invalid_as(&at, "None", &detail);
        }
        "ExternalName" => {
            for member in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if spec.has(member) {
                    let detail = "may not be set for ExternalName services";
                    causes.forbidden(&spec.get(member), detail);
                }
            }
            let name = spec.get("externalName");
            // A name with a dot at the end is absolute, which is fine.
            let text = name.text().strip_suffix('.').unwrap_or(name.text());
            if text.is_empty() {
                causes.required(&name, "");
            } else {
                causes.check_format_of(&name, text, formats::dns_subdomain);
            }
        }
        _ => {}
    }
}

const PORTS: Rules = &[
    ("port", PORT),
    ("protocol", Rule::OneOf(&["SCTP", "TCP", "UDP"])),
];

fn check_ports(spec: &Field<'_>, causes: &mut Causes) {
    let list = spec.get("ports");
    let mut names = HashSet::new();
    for port in list.items() {
        let name = port.get("name");
        if !name.is_void() {
            causes.check_format(&name, formats::dns_label);
            causes.check_unique(&name, &mut names);
        } else if list.list().len() > 1 {
            causes.required(&name, "");
        }
        rule::check(&port, PORTS, causes);
        check_port(&port.get("targetPort"), causes);
        if port.has("appProtocol") {
            causes.check_format(&port.get("appProtocol"), formats::qualified_name);
        }
    }
}

/// Checks that ports of the nodes may be there, and that no number is there twice.
fn check_numbers(spec: &Field<'_>, causes: &mut Causes) {
    let list = spec.get("ports");
    let of_nodes = || {
        let ports = list.items();
        ports.filter(|port| port.int_of("nodePort").unwrap_or(0) != 0)
    };
    if spec.text_of("type") == "ClusterIP" {
        for port in of_nodes() {
            let detail = "may not be used when `type` is 'ClusterIP'";
            causes.forbidden(&port.get("nodePort"), detail);
        }
    }
    // TCP and UDP may share a number.
    let mut seen = HashSet::new();
    for port in of_nodes() {
        if !seen.insert((port.text_of("protocol"), port.int_of("nodePort"))) {
            causes.duplicate(&port.get("nodePort"));
        }
    }
    let mut seen = HashSet::new();
    for port in list.items() {
        if !seen.insert((port.text_of("protocol"), port.int_of("port").unwrap_or(0))) {
            // Go compares ports of which only number and protocol are set, and shows those.
            causes.duplicate_struct(&port, &shown(&port), "");
        }
    }
}

/// Returns a port as Go shows one that has only a number and a protocol.
fn shown(port: &Field<'_>) -> String {
    format!(
        "{{\"Name\":\"\",\"Protocol\":{:?},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
        port.text_of("protocol"),
        port.int_of("port").unwrap_or(0)
    )
}

fn check_affinity(spec: &Field<'_>, causes: &mut Causes) {
    let affinity = spec.get("sessionAffinity");
    causes.check_one_of(&affinity, &["ClientIP", "None"]);
    let config = spec.get("sessionAffinityConfig");
    match affinity.text() {
        "None" if config.is_set() => {
            causes.forbidden(&config, "must not be set when session affinity is None");
        }
        "ClientIP" => {
            let client = config.get("clientIP");
            let seconds = client.get("timeoutSeconds");
            // Only the outermost of the missing ones is reported.
            for at in [&config, &client, &seconds] {
                if !at.is_set() {
                    causes.required(at, "when session affinity type is ClientIP");
                    return;
                }
            }
            // `MaxClientIPServiceAffinitySeconds` is allowed itself, whatever the message says.
            if !(1..=86400).contains(&seconds.int().unwrap_or(0)) {
                causes.invalid(&seconds, "must be greater than 0 and less than 86400");
            }
        }
        _ => {}
    }
}

fn check_external(spec: &Field<'_>, old: Option<&Field<'_>>, causes: &mut Causes) {
    let known = old.map_or(&[] as &[_], |old| old.get("externalIPs").list());
    for ip in spec.get("externalIPs").items() {
        // An address that the Service had before may have an old form, but not point to a forbidden range.
        if known.contains(ip.value()) || addresses::check_ip(&ip, causes) {
            addresses::check_endpoint(&ip, causes);
        }
    }
}

const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// Checks the source ranges of a balancer.
fn check_sources(context: &Context<'_>, spec: &Field<'_>, causes: &mut Causes) {
    let only = "may only be used when `type` is 'LoadBalancer'";
    let sources = spec.get("loadBalancerSourceRanges");
    let annotations = context.get("metadata").get("annotations");
    let old = context
        .old("spec")
        .map(|old| old.get("loadBalancerSourceRanges"));
    let known: Vec<&str> = old
        .iter()
        .flat_map(Field::items)
        // Blanks around ranges have always been accepted.
        .map(|each| each.text().trim())
        .collect();
    if !sources.is_void() {
        // The path has the spelling of Go's field.
        let shown = spec.get("LoadBalancerSourceRanges").with(sources.value());
        if !is_balanced(spec) {
            causes.forbidden(&shown, only);
        }
        for range in shown.items() {
            let text = range.text().trim().into();
            if !known.contains(&range.text().trim()) {
                addresses::check_cidr(&range.with(&text), causes);
            }
        }
    // The annotation is the older way, and is not looked at beside the member.
    } else if annotations.has(RANGES) {
        let at = annotations.key(RANGES).with(annotations.member(RANGES));
        if !is_balanced(spec) {
            causes.forbidden(&at, only);
        }
        let was = context
            .old("metadata")
            .map(|old| old.get("annotations").text_of(RANGES));
        let ranges = at.text().split(',').map(str::trim);
        for range in ranges.filter(|_| was != Some(at.text()) && !at.text().trim().is_empty()) {
            addresses::check_cidr(&at.with(&range.into()), causes);
        }
    }
}

fn check_balancer(spec: &Field<'_>, causes: &mut Causes) {
    let only = "may only be used when `type` is 'LoadBalancer'";
    let class = spec.get("loadBalancerClass");
    let allocates = spec.get("allocateLoadBalancerNodePorts");
    if is_balanced(spec) {
        if class.is_set() {
            causes.check_format(&class, formats::qualified_name);
        }
        return;
    }
    for at in [&allocates, &class] {
        if at.is_set() {
            causes.forbidden(at, only);
        }
    }
}

fn check_traffic(spec: &Field<'_>, causes: &mut Causes) {
    let kind = spec.text_of("type");
    let external = matches!(kind, "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && !spec.get("externalIPs").is_void());
    let policy = spec.get("externalTrafficPolicy");
    if external {
        causes.check_one_of(&policy, &["Cluster", "Local"]);
    } else if !policy.is_void() {
        causes.invalid(
            &policy,
            "may only be set for externally-accessible services",
        );
    }
    let check = spec.get("healthCheckNodePort");
    match (needs_check(spec), check.int().unwrap_or(0)) {
        // The server allocates one, so it is only missing where nothing did.
        (true, 0) => causes.required(&check, ""),
        (true, _) => causes.check_between(&check, 1, 65535),
        (false, 0) => {}
        (false, _) => causes.invalid(
            &check,
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
        ),
    }
    let policy = spec.get("internalTrafficPolicy");
    if policy.is_set() {
        causes.check_supported(&policy, &["Cluster", "Local"]);
    } else if matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer") {
        causes.required(&policy, "");
    }
    let distribution = spec.get("trafficDistribution");
    if distribution.is_set() {
        let supported = &["PreferClose", "PreferSameZone", "PreferSameNode"];
        // A plain string in Go, so it is quoted in another way than the policies.
        causes.check_plain(&distribution, supported);
    }
}

/// Checks two annotations of which one is the older name of the other.
fn check_annotations(context: &Context<'_>, causes: &mut Causes) {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    const MODE: &str = "service.kubernetes.io/topology-mode";
    let annotations = context.get("metadata").get("annotations");
    let differ = annotations.text_of(MODE) != annotations.text_of(HINTS);
    if annotations.has(MODE) && annotations.has(HINTS) && differ {
        let at = annotations.key(MODE).with(annotations.member(MODE));
        let detail = format!("must match annotations[{HINTS}] when both are specified");
        causes.invalid(&at, &detail);
    }
}

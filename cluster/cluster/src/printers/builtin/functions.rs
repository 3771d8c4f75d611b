//! The functions that compute cells, by the names that the table of columns has for them.

use super::{
    autoscaling, events, networking, nodes, parts, pods, policy, references, selectors, storage,
    workloads,
};
use crate::printers::source::{self, Function, since};

/// Returns the function of a name.
pub(super) fn named(name: &str) -> Option<Function> {
    let mut functions = FUNCTIONS.iter();
    functions.find_map(|(each, function)| (*each == name).then_some(*function))
}

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("accessModes", |it| storage::access_modes(it).into()),
    ("attributesClass", |it| storage::attributes_class(it).into()),
    ("autoscalerTargets", |it| autoscaling::targets(it).into()),
    ("availability", |it| policy::availability(it).into()),
    ("balancer", |it| networking::balancer(it).into()),
    ("claimAccessModes", |it| {
        storage::claim_access_modes(it).into()
    }),
    ("claimCapacity", |it| storage::claim_capacity(it).into()),
    ("configMapData", |it| {
        (it.count("/data") + it.count("/binaryData")).into()
    }),
    ("count", |it| it.count("").into()),
    ("deviceClaimState", |it| {
        storage::device_claim_state(it).into()
    }),
    ("duration", parts::duration),
    ("endpoints", |it| networking::endpoints(it).into()),
    ("eventCount", |it| events::count(it).into()),
    ("eventFirstSeen", |it| events::first_seen(it).into()),
    ("eventLastSeen", |it| events::last_seen(it).into()),
    ("eventObject", |it| events::object(it).into()),
    ("eventSource", |it| events::source(it).into()),
    ("groups", |it| policy::subjects(it, "Group").into()),
    ("health", |it| policy::health(it).into()),
    ("images", |it| parts::members(it, "/image").into()),
    ("ingressClassName", |it| {
        parts::class_name(it, &["ingressclass"]).into()
    }),
    ("ingressHosts", |it| networking::ingress_hosts(it).into()),
    ("ingressPorts", |it| networking::ingress_ports(it).into()),
    ("jobCompletions", |it| workloads::completions(it).into()),
    ("jobDuration", |it| workloads::duration(it).into()),
    ("jobStatus", |it| workloads::job_status(it).into()),
    ("join", |it| parts::join(it).into()),
    ("kindAndName", |it| references::kind_and_name(it).into()),
    ("kindGroupAndName", |it| {
        references::kind_group_and_name(it).into()
    }),
    ("labels", |it| selectors::labels(it).into()),
    ("names", |it| parts::members(it, "/name").into()),
    ("namespaceAndName", |it| {
        references::namespace_and_name(it).into()
    }),
    ("nodeExternalAddress", |it| {
        nodes::address(it, "ExternalIP").into()
    }),
    ("nodeInternalAddress", |it| {
        nodes::address(it, "InternalIP").into()
    }),
    ("nodeKernel", |it| nodes::kernel(it).into()),
    ("nodeRoles", |it| nodes::roles(it).into()),
    ("nodeStatus", |it| nodes::status(it).into()),
    ("number", source::number),
    ("owner", |it| references::owner(it).into()),
    ("parameterReference", |it| references::parameters(it).into()),
    ("parentReference", |it| references::parent(it).into()),
    ("phase", |it| storage::phase(it).into()),
    ("podReadinessGates", |it| pods::readiness_gates(it).into()),
    ("podReady", |it| pods::ready(it).into()),
    ("podRestarts", |it| pods::restarts(it).into()),
    ("podStatus", |it| pods::status(it).into()),
    ("quotaLimits", |it| policy::quota(it, true).into()),
    ("quotaRequests", |it| policy::quota(it, false).into()),
    ("readyReplicas", |it| workloads::ready(it).into()),
    ("selector", |it| selectors::selector(it).into()),
    ("serviceAccounts", |it| {
        policy::subjects(it, "ServiceAccount").into()
    }),
    ("serviceAddress", |it| {
        networking::service_address(it).into()
    }),
    ("servicePorts", |it| networking::service_ports(it).into()),
    ("signingRequestCondition", |it| {
        policy::signing_request_condition(it).into()
    }),
    ("since", since),
    ("sliceAddresses", |it| {
        networking::slice_addresses(it).into()
    }),
    ("slicePorts", |it| networking::slice_ports(it).into()),
    ("storageClass", |it| storage::class(it).into()),
    ("storageClassName", |it| {
        let prefixes = ["storageclass", "storageclass.beta"];
        parts::class_name(it, &prefixes).into()
    }),
    ("tokenAudiences", |it| storage::token_audiences(it).into()),
    ("trim", |it| it.text("").trim().into()),
    ("trueOrFalse", parts::true_or_false),
    ("users", |it| policy::subjects(it, "User").into()),
    ("versionAndKind", |it| {
        references::version_and_kind(it).into()
    }),
];

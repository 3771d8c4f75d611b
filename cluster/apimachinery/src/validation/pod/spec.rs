//! The spec of a Pod, here or in a template.

use super::options::Options;
use super::pod_context::PodContext;
use super::{affinity, claims, container, network, scheduling, security, system};
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::labels::check_labels;
use crate::validation::rule::{self, Rule, Rules};
use crate::validation::volumes;

const SPEC: Rules = &[
    (
        "restartPolicy",
        Rule::OneOf(&["Always", "OnFailure", "Never"]),
    ),
    (
        "dnsPolicy",
        Rule::OneOf(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
    ),
];

const PLACE: Rules = &[
    (
        "serviceAccountName nodeName",
        Rule::Text(formats::dns_subdomain),
    ),
    (
        "activeDeadlineSeconds",
        Rule::MaybeBetween(1, i32::MAX as i64),
    ),
    ("hostname subdomain", Rule::Text(formats::dns_label)),
];

const PRIORITY: Rules = &[("priorityClassName", Rule::Text(formats::dns_subdomain))];

/// Checks a spec; `name` is that of the Pod, empty in a template.
pub(super) fn check<'a>(spec: &Field<'a>, name: &'a str, options: Options, causes: &mut Causes) {
    // `ValidatePodSpec`. Defaults set it, so only an object that was not defaulted lacks it.
    if !spec.has("terminationGracePeriodSeconds") {
        causes.required(&spec.get("terminationGracePeriodSeconds"), "");
    }
    let volumes = check_volumes(spec, name, options.volumes, causes);
    claims::check_claims(&spec.get("resourceClaims"), options.is_static, causes);
    let context = PodContext::new(spec, volumes, options);
    container::check_all(&context, causes);
    claims::check_resources(&context, causes);
    network::check_ports(spec, options, causes);
    rule::check(spec, SPEC, causes);
    check_labels(&spec.get("nodeSelector"), causes);
    security::check_pod(spec, options, causes);
    affinity::check(&spec.get("affinity"), options, causes);
    network::check_dns(spec, causes);
    scheduling::check(spec, options, causes);
    system::check_host_process(spec, causes);
    network::check_host_users(spec, causes);
    network::check_hostname(spec, causes);
    rule::check(spec, PLACE, causes);
    scheduling::check_tolerations(&spec.get("tolerations"), causes);
    network::check_aliases(spec, causes);
    rule::check(spec, PRIORITY, causes);
    if spec.has("runtimeClassName") {
        causes.check_format(&spec.get("runtimeClassName"), formats::dns_subdomain);
    }
    if spec.has("preemptionPolicy") {
        let policies = &["PreemptLowerPriority", "Never"];
        causes.check_one_of(&spec.get("preemptionPolicy"), policies);
    }
    claims::check_overhead(&context, causes);
    system::check(spec, causes);
}

/// Checks the volumes, and returns those that containers may mount.
fn check_volumes<'a>(
    spec: &Field<'a>,
    pod: &'a str,
    options: volumes::Options,
    causes: &mut Causes,
) -> Vec<Field<'a>> {
    let list: Vec<Field<'a>> = spec.get("volumes").items().collect();
    let mut usable: Vec<Field<'a>> = Vec::new();
    for volume in &list {
        let before = causes.count();
        volumes::check_pod(volume, options, causes);
        // After the source and before the name, as in `ValidateVolumes`.
        volumes::check_initiator(volume, causes);
        check_claim_name(volume, pod, causes);
        causes.check_name(&volume.get("name"), formats::dns_label);
        let name = volume.text_of("name");
        if usable.iter().any(|other| other.text_of("name") == name) {
            causes.duplicate_as(&volume.get("name"), name);
        }
        // A volume with an error cannot be mounted, so its mounts are reported as not found as well.
        if causes.count() == before {
            usable.push(volume.clone());
        }
        check_own_claim(volume, &list, pod, causes);
    }
    usable
}

/// Checks the name of the claim that an ephemeral volume becomes.
fn check_claim_name(volume: &Field<'_>, pod: &str, causes: &mut Causes) {
    let name = volume.text_of("name");
    // The claim is named after Pod and volume, which together may be too long.
    let alone = volumes::count(volume) == 1 && volume.has("ephemeral");
    if !alone || pod.is_empty() || name.is_empty() {
        return;
    }
    let claim = format!("{pod}-{name}");
    for message in formats::dns_subdomain(&claim) {
        let detail = format!("PVC name {claim:?}: {message}");
        causes.invalid(&volume.get("name"), &detail);
    }
}

/// Refuses claims that are made for other volumes of the Pod.
fn check_own_claim(volume: &Field<'_>, all: &[Field<'_>], pod: &str, causes: &mut Causes) {
    let claim = volume.get("persistentVolumeClaim").get("claimName");
    let made = |other: &Field<'_>| {
        other.has("ephemeral") && format!("{pod}-{}", other.text_of("name")) == claim.text()
    };
    // The claim would be deleted with the Pod, and the other volume with it.
    if !pod.is_empty() && claim.is_set() && all.iter().any(made) {
        let detail = "must not reference a PVC that gets created for an ephemeral volume";
        causes.invalid(&claim, detail);
    }
}

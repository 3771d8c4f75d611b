//! The status of a Pod.

use std::collections::HashSet;

use serde_json::Value;

use super::update;
use crate::validation::addresses;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::structs::{self, Members, Shape};

const MOST: i64 = i32::MAX as i64;

/// The lists of containers' states, with those of the containers in the spec.
const STATES: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", ""),
];

pub(super) fn check(context: &Context<'_>, causes: &mut Causes) {
    // `ValidatePodStatusUpdate`.
    update::check_annotations(context, causes);
    let (status, spec) = (context.get("status"), context.get("spec"));
    let Some(old) = context.old("status") else {
        return;
    };
    check_conditions(&status.get("conditions"), causes);
    check_nominated(&status, &old, &spec, causes);
    check_generation(&status.get("observedGeneration"), causes);
    // An old kubelet leaves it out, and then it stays.
    if status.has("qosClass") {
        causes.check_immutable(&status.get("qosClass"), &old.get("qosClass"));
    }
    for (list, containers) in STATES {
        check_transitions(&status.get(list), &old.get(list), &spec, containers, causes);
    }
    check_claims(&status.get("resourceClaimStatuses"), &spec, causes);
    check_extended(&status.get("extendedResourceClaimStatus"), &spec, causes);
    check_addresses(&status, &old, causes);
    for (list, _) in STATES {
        check_users(&status.get(list), &spec, causes);
    }
    for (list, containers) in STATES {
        check_allocated(&status.get(list), containers, &spec, causes);
    }
}

fn check_generation(at: &Field<'_>, causes: &mut Causes) {
    if at.int().is_some_and(|number| number < 0) {
        causes.invalid(at, "must be a non-negative integer");
    }
}

fn check_conditions(conditions: &Field<'_>, causes: &mut Causes) {
    for condition in conditions.items() {
        check_generation(&condition.get("observedGeneration"), causes);
        let kind = condition.text_of("type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            // The capital letter is Go's.
            let at = condition.get("Type");
            causes.check_format_of(&at, kind, formats::qualified_name);
        }
    }
}

fn check_nominated(status: &Field<'_>, old: &Field<'_>, spec: &Field<'_>, causes: &mut Causes) {
    let node = status.get("nominatedNodeName");
    // A name that stays is not checked, also on a Pod that got its node meanwhile.
    if node.is_void() || node.text() == old.text_of("nominatedNodeName") {
        return;
    }
    causes.check_format(&node, formats::dns_subdomain);
    if !spec.text_of("nodeName").is_empty() {
        causes.forbidden(
            &node,
            "may not be set on pods that are already bound to a node",
        );
    }
}

/// A container that has ended runs again only if it may be restarted.
fn check_transitions(
    states: &Field<'_>,
    old: &Field<'_>,
    spec: &Field<'_>,
    containers: &'static str,
    causes: &mut Causes,
) {
    let is_ephemeral = containers.is_empty();
    if !is_ephemeral && all_may_restart(spec) {
        return;
    }
    for (index, was) in old.items().enumerate() {
        let ended = was.get("state").get("terminated");
        let name = was.text_of("name");
        let runs = |state: &Field<'_>| {
            state.text_of("name") == name && !state.get("state").has("terminated")
        };
        let count = states.items().filter(runs).count();
        if !ended.is_set() || count == 0 {
            continue;
        }
        let code = ended.int_of("exitCode").unwrap_or(0);
        // Ephemeral containers never run again.
        if !is_ephemeral && may_restart(spec, containers, name, code) {
            continue;
        }
        // The index is that of the old list, as in `ValidateContainerStateTransition`;
        // `ValidateEphemeralContainerStateTransition` has a cause for each state of that name.
        let at = states.item_as(index, was.value()).get("state");
        let times = if is_ephemeral { count } else { 1 };
        for _ in 0..times {
            causes.forbidden(&at, "may not be transitioned to non-terminated state");
        }
    }
}

/// Returns whether the end of some container may restart all of them.
// `AllContainersCouldRestart`.
fn all_may_restart(spec: &Field<'_>) -> bool {
    let lists = ["initContainers", "containers"].map(|list| spec.get(list));
    let mut containers = lists.iter().flat_map(Field::items);
    containers.any(|container| {
        let mut rules = container.get("restartPolicyRules").items();
        rules.any(|rule| rule.text_of("action") == "RestartAllContainers")
    })
}

fn may_restart(spec: &Field<'_>, containers: &'static str, name: &str, code: i64) -> bool {
    let list = spec.get(containers);
    let Some(container) = list.items().find(|each| each.text_of("name") == name) else {
        return false;
    };
    let rules = container.get("restartPolicyRules");
    let matching = rules.items().any(|rule| {
        let codes = rule.get("exitCodes");
        let listed = codes.get("values").list().contains(&Value::from(code));
        // A rule wins over the policies, since it is there to make an exception.
        listed == (codes.text_of("operator") == "In")
    });
    let own = container.text_of("restartPolicy");
    let of_pod = spec.text_of("restartPolicy");
    matching
        || match if own.is_empty() { of_pod } else { own } {
            "Never" => false,
            "OnFailure" => code != 0,
            _ => true,
        }
}

fn check_users(states: &Field<'_>, spec: &Field<'_>, causes: &mut Causes) {
    let windows = spec.get("os").text_of("name") == "windows";
    for state in states.items() {
        let user = state.get("user").get("linux");
        if !user.is_set() {
            continue;
        }
        if windows {
            causes.forbidden(&user, "cannot be set for a windows pod");
            continue;
        }
        for member in ["uid", "gid"] {
            causes.check_between(&user.get(member), 0, MOST);
        }
        for group in user.get("supplementalGroups").items() {
            causes.check_between(&group, 0, MOST);
        }
    }
}

const HEALTH: &[&str] = &["Healthy", "Unhealthy", "Unknown"];

/// Checks the status of devices that containers have.
fn check_allocated(
    states: &Field<'_>,
    containers: &'static str,
    spec: &Field<'_>,
    causes: &mut Causes,
) {
    for state in states.items() {
        let list = state.get("allocatedResourcesStatus");
        // Ephemeral containers have no devices.
        if containers.is_empty() && !list.is_void() {
            causes.forbidden(&list, "must not be specified in container status");
            continue;
        }
        let all = spec.get(containers);
        let name = state.text_of("name");
        let container = all.items().find(|each| each.text_of("name") == name);
        for entry in list.items() {
            if let Some(container) = &container {
                check_requested(&entry.get("name"), &container.get("resources"), causes);
            }
            let mut ids = HashSet::new();
            for resource in entry.get("resources").items() {
                causes.check_supported(&resource.get("health"), HEALTH);
                check_message(&resource.get("message"), causes);
                let id = resource.text_of("resourceID");
                if !ids.insert(id) {
                    causes.duplicate_as(&resource.get("resourceID"), id);
                }
            }
        }
    }
}

/// The length of a message about a device, in bytes.
// `ResourceHealthMessageMaxLength`.
const MESSAGE: usize = 1024;

fn check_message(message: &Field<'_>, causes: &mut Causes) {
    if message.is_set() && message.is_void() {
        causes.required(message, "must be non-empty if specified");
    } else if message.text().len() > MESSAGE {
        causes.too_long(message, MESSAGE);
    }
}

fn check_requested(at: &Field<'_>, resources: &Field<'_>, causes: &mut Causes) {
    // Without the prefix it is an extended resource.
    let Some(claim) = at.text().strip_prefix("claim:") else {
        if !resources.get("requests").has(at.text()) {
            let detail = "must match one of the container's resource requests";
            causes.invalid_as(at, at.text(), detail);
        }
        return;
    };
    let mut claims = resources.get("claims").items();
    let known = claims.any(|each| match each.text_of("request") {
        "" => each.text_of("name") == claim,
        request => format!("{}/{request}", each.text_of("name")) == claim,
    });
    if !known {
        let detail = "must match one of the container's resource claims in a format \
            'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
        causes.invalid_as(at, at.text(), detail);
    }
}

fn check_claims(statuses: &Field<'_>, spec: &Field<'_>, causes: &mut Causes) {
    let claims = spec.get("resourceClaims");
    let mut names = HashSet::new();
    for status in statuses.items() {
        let name = status.get("name");
        if !claims
            .items()
            .any(|claim| claim.text_of("name") == name.text())
        {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            causes.invalid_as(&name, name.text(), detail);
        }
        if !names.insert(name.text()) {
            causes.duplicate_as(&name, name.text());
        }
        if status.has("resourceClaimName") {
            let claim = status.get("resourceClaimName");
            causes.check_format(&claim, formats::dns_subdomain);
        }
    }
}

/// Checks which requests of a claim the extended resources of containers became.
fn check_extended(status: &Field<'_>, spec: &Field<'_>, causes: &mut Causes) {
    if !status.is_set() {
        return;
    }
    let mappings = status.get("requestMappings");
    causes.check_given(&mappings, "at least one request mapping is required");
    let mut seen = HashSet::new();
    for mapping in mappings.items() {
        let (container, resource) = (mapping.get("containerName"), mapping.get("resourceName"));
        let request = mapping.get("requestName");
        let lists = ["initContainers", "containers"].map(|list| spec.get(list));
        let mut all = lists.iter().flat_map(Field::items);
        match all.find(|each| each.text_of("name") == container.text()) {
            None => {
                let detail = "must match the name of an entry in spec.initContainers.name or \
                    spec.containers.name";
                causes.invalid_as(&container, container.text(), detail);
            }
            Some(found) if !found.get("resources").get("requests").has(resource.text()) => {
                let detail = "must match the extended resource name of an entry in \
                    spec.initContainers.resources.requests or spec.containers.resources.requests";
                causes.invalid_as(&resource, resource.text(), detail);
            }
            Some(_) => {}
        }
        // The path lacks the list and the index.
        let shown = status.get("requestName").with(request.value());
        causes.check_format(&shown, formats::dns_label);
        if !seen.insert((container.text(), resource.text(), request.text())) {
            for at in [&container, &resource, &request] {
                // The three together are the duplicate, and each is reported.
                causes.duplicate_as(at, at.text());
            }
        }
    }
    causes.check_name(&status.get("resourceClaimName"), formats::dns_subdomain);
}

fn check_addresses(status: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    check_family(&status.get("podIPs"), &old.get("podIPs"), causes);
    let hosts = status.get("hostIPs");
    // `podIP` and `podIPs` are kept in line by conversion, so only these are compared.
    if let Some(first) = hosts.items().next()
        && first.text_of("ip") != status.text_of("hostIP")
    {
        let at = first.get("ip");
        causes.invalid_as(&at, at.text(), "must be equal to `hostIP`");
    }
    check_family(&hosts, &old.get("hostIPs"), causes);
}

/// An address, as messages show it.
const ADDRESS: Members = &[("ip", "IP", Shape::Text)];

/// Checks addresses, of which there is one a family.
fn check_family(list: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let known: Vec<&str> = old.items().map(|item| item.text_of("ip")).collect();
    for item in list.items() {
        // The path is that of the item, not of its member.
        let at = item.with(item.member("ip"));
        if !known.contains(&at.text()) {
            addresses::check_ip(&at, causes);
        }
    }
    let texts: Vec<&str> = list.items().map(|item| item.text_of("ip")).collect();
    let shown = structs::shown_list(list.value(), ADDRESS);
    addresses::check_families(list, (&texts, &shown), "IP", causes);
}

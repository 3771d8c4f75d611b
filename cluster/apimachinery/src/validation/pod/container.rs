//! Containers of all three kinds.

use std::collections::HashSet;

use super::pod_context::{PodContext, check_image};
use super::{claims, env, handlers, mounts, security};
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::rule::{self, Rule, Rules};

/// Checks the containers of a Pod.
pub(super) fn check_all(pod: &PodContext<'_>, causes: &mut Causes) {
    let containers = pod.spec.get("containers");
    let mut names = HashSet::new();
    let mut ports = HashSet::new();
    // `validateContainers`; without containers there is nothing else to say about the list.
    if causes.check_given(&containers, "") {
        for container in containers.items() {
            check_common(&container, pod, causes);
            check_name(&container, &mut names, causes);
            handlers::check(&container, &pod.spec, causes);
            check_restart(&container, causes);
        }
        for container in containers.items() {
            check_host_ports(&container, &container, &mut ports, causes);
        }
    }
    let list = pod.spec.get("initContainers");
    for container in list.items() {
        check_common(&container, pod, causes);
        check_init_restart(&container, causes);
        // As in Go, the name of an unnamed init container is not remembered: it repeats only that of an unnamed regular
        // one.
        let is_named = !container.text_of("name").is_empty();
        if is_named || names.contains("") {
            check_name(&container, &mut names, causes);
        }
        // The path of a port's cause has the index that the container has alone.
        let alone = list.item_as(0, container.value());
        // Init containers run one after the other, so their ports are compared within each only.
        check_host_ports(&container, &alone, &mut HashSet::new(), causes);
        check_init(&container, pod, causes);
    }
    // For ephemeral containers, the names of all init containers count, empty ones too.
    names.extend(list.items().map(|container| container.text_of("name")));
    // An ephemeral container can look into containers of the spec, not into other ephemeral ones.
    let targets = names.clone();
    for container in pod.spec.get("ephemeralContainers").items() {
        check_common(&container, pod, causes);
        check_image(&container, causes);
        check_name(&container, &mut names, causes);
        check_ephemeral(&container, &targets, causes);
    }
}

/// Checks that a name is there once.
fn check_name<'a>(container: &Field<'a>, names: &mut HashSet<&'a str>, causes: &mut Causes) {
    let name = container.text_of("name");
    // Names are unique over all three lists, since logs and exec ask for them without the list.
    if !names.insert(name) {
        causes.duplicate_as(&container.get("name"), name);
    }
}

const COMMON: Rules = &[
    ("name", Rule::Name(formats::dns_label)),
    ("image", Rule::Given),
    (
        "terminationMessagePolicy",
        Rule::OneOf(&["File", "FallbackToLogsOnError"]),
    ),
];

const PULL: Rules = &[(
    "imagePullPolicy",
    Rule::OneOf(&["Always", "IfNotPresent", "Never"]),
)];

/// Checks the rules for all containers.
fn check_common(container: &Field<'_>, pod: &PodContext<'_>, causes: &mut Causes) {
    // `validateContainerCommon`, in its order.
    rule::check(container, COMMON, causes);
    check_ports(&container.get("ports"), causes);
    env::check(container, causes);
    mounts::check(container, &pod.volumes, causes);
    rule::check(container, PULL, causes);
    claims::check_requirements(&container.get("resources"), pod, causes);
    check_resize_policy(container, pod, causes);
    security::check_container(container, &pod.spec, causes);
}

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

fn check_ports(ports: &Field<'_>, causes: &mut Causes) {
    let mut names = HashSet::new();
    for port in ports.items() {
        let name = port.get("name");
        let before = causes.count();
        if !name.is_void() {
            causes.check_format(&name, formats::port_name);
        }
        // A name of a wrong form is not compared with others.
        if !name.is_void() && causes.count() == before && !names.insert(name.text()) {
            causes.duplicate(&name);
        }
        match port.int_of("containerPort").unwrap_or(0) {
            // No pointer in Go, so zero is a missing port.
            0 => causes.required(&port.get("containerPort"), ""),
            _ => causes.check_between(&port.get("containerPort"), 1, 65535),
        }
        if port.int_of("hostPort").unwrap_or(0) != 0 {
            causes.check_between(&port.get("hostPort"), 1, 65535);
        }
        causes.check_one_of(&port.get("protocol"), PROTOCOLS);
    }
}

/// Checks that each host port is used once; `shown` has the container's path.
fn check_host_ports(
    container: &Field<'_>,
    shown: &Field<'_>,
    taken: &mut HashSet<String>,
    causes: &mut Causes,
) {
    let shown = shown.get("ports");
    for (port, shown) in container.get("ports").items().zip(shown.items()) {
        let number = port.int_of("hostPort").unwrap_or(0);
        if number == 0 {
            continue;
        }
        let (protocol, address) = (port.text_of("protocol"), port.text_of("hostIP"));
        // `AccumulateUniqueHostPorts`: other protocols and addresses are other ports.
        let key = format!("{protocol}/{address}/{number}");
        if !taken.insert(key.clone()) {
            causes.duplicate_as(&shown.get("hostPort"), key);
        }
    }
}

fn check_resize_policy(container: &Field<'_>, pod: &PodContext<'_>, causes: &mut Causes) {
    let policies = container.get("resizePolicy");
    let mut names = HashSet::new();
    for policy in policies.items() {
        let name = policy.text_of("resourceName");
        if !names.insert(name) {
            causes.duplicate_as(&policy, name);
        }
        let restart = policy.text_of("restartPolicy");
        for (text, supported) in [
            (policy.member("resourceName"), &["cpu", "memory"]),
            (
                policy.member("restartPolicy"),
                &["NotRequired", "RestartContainer"],
            ),
        ] {
            // `validateResizePolicy` has the path of the list, without an index.
            causes.check_one_of(&policies.with(text), supported);
        }
        if pod.spec.text_of("restartPolicy") == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            causes.invalid_as(&policies, restart, detail);
        }
    }
}

const NEEDS_ALWAYS: &str = "may not be set for init containers without restartPolicy=Always";

fn check_init_restart(container: &Field<'_>, causes: &mut Causes) {
    let policy = container.get("restartPolicy");
    if policy.is_set() {
        check_restart(container, causes);
    } else if !container.get("restartPolicyRules").is_void() {
        let detail = "must specify restartPolicy when restart rules are used";
        causes.required(&policy, detail);
    }
}

fn check_init(container: &Field<'_>, pod: &PodContext<'_>, causes: &mut Causes) {
    // A sidecar goes on running, so it can be probed and stopped like other containers.
    let sidecar = container.text_of("restartPolicy") == "Always";
    if sidecar {
        handlers::check(container, &pod.spec, causes);
        return;
    }
    for member in [
        "lifecycle",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
    ] {
        if container.has(member) {
            causes.forbidden(&container.get(member), NEEDS_ALWAYS);
        }
    }
    let policies = container.get("resizePolicy");
    for policy in policies.items().filter(|_| !pod.options.any_resize_policy) {
        let restart = policy.get("restartPolicy");
        if restart.text() == "RestartContainer" {
            let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            causes.invalid(&restart, detail);
        }
    }
}

/// Checks when a container is restarted on its own.
fn check_restart(container: &Field<'_>, causes: &mut Causes) {
    let policy = container.get("restartPolicy");
    let rules = container.get("restartPolicyRules");
    if policy.is_set() {
        causes.check_supported(&policy, &["Always", "Never", "OnFailure"]);
    } else if !rules.is_void() {
        // Rules refine a policy, so there must be one.
        let detail = "must specify restartPolicy when restart rules are used";
        causes.required(&policy, detail);
    }
    causes.check_count(&rules, 20);
    for rule in rules.items() {
        let actions = &["Restart", "RestartAllContainers"];
        causes.check_supported(&rule.get("action"), actions);
        let codes = rule.get("exitCodes");
        if codes.is_set() {
            causes.check_supported(&codes.get("operator"), &["In", "NotIn"]);
            causes.check_count(&codes.get("values"), 255);
        } else {
            causes.required(&codes, "must be specified");
        }
    }
}

/// The fields that ephemeral containers cannot have.
// Nothing that would have to be scheduled, probed or restarted: it is added to a Pod that runs already.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

fn check_ephemeral(container: &Field<'_>, targets: &HashSet<&str>, causes: &mut Causes) {
    let target = container.get("targetContainerName");
    if !target.is_void() && !targets.contains(target.text()) {
        causes.not_found(&target, target.text());
    }
    let detail = "cannot be set for an Ephemeral Container";
    for member in NOT_EPHEMERAL {
        // Resources are no pointer in Go, so empty ones are none.
        let empty = member == "resources" && container.get(member).is_void();
        if container.has(member) && !empty {
            causes.forbidden(&container.get(member), detail);
        }
    }
    for mount in container.get("volumeMounts").items() {
        // The target's volume may be in use below that path.
        for member in ["subPath", "subPathExpr"] {
            if !mount.get(member).is_void() {
                causes.forbidden(&mount.get(member), detail);
            }
        }
    }
}

//! Pods and templates of them.

use std::collections::HashMap;

use super::collected::Warnings;
use super::labels::{check_key, check_term, deprecated};
use super::{addresses, paths, storage};
use crate::object::Object;
use crate::validation::field::Field;

/// Annotations that members replaced, and the version without support for them.
const ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
];

const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const SECCOMP_INSTEAD: &str = r#"non-functional in v1.27+; use the "seccompProfile" field instead"#;
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const APP_ARMOR_INSTEAD: &str =
    r#"deprecated since v1.30; use the "appArmorProfile" field instead"#;

/// Resources that are counted in whole bytes.
const BYTES: [&str; 2] = ["memory", "ephemeral-storage"];

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn pod(object: &Object, warnings: &mut Warnings) {
    let (metadata, spec) = (Field::of(object, "metadata"), Field::of(object, "spec"));
    check(&metadata, &spec, false, warnings);
}

pub(super) fn template(template: &Field<'_>, warnings: &mut Warnings) {
    if template.is_set() {
        let (metadata, spec) = (template.get("metadata"), template.get("spec"));
        check(&metadata, &spec, true, warnings);
    }
}

// The order of `warningsForPodSpecAndMeta`, which is the order of the headers in the answer.
fn check(metadata: &Field<'_>, spec: &Field<'_>, is_template: bool, warnings: &mut Warnings) {
    let annotations = metadata.get("annotations");
    check_nodes(spec, warnings);
    for constraint in spec.get("topologySpreadConstraints").items() {
        check_key(&constraint.get("topologyKey"), warnings);
        warnings.check_selector(&constraint.get("labelSelector"));
    }
    for (name, instead) in ANNOTATIONS {
        if annotations.has(name) {
            warnings.add_at(&annotations.key(name), instead);
        }
    }
    let volumes = spec.get("volumes");
    storage::pod_volumes(&volumes, warnings);
    paths::check(&volumes, warnings);
    // Lists that merge by this key: a repeated key is lost with the next apply.
    check_repeated(&spec.get("hostAliases"), "ip", warnings);
    let secrets = spec.get("imagePullSecrets");
    check_repeated(&secrets, "name", warnings);
    for secret in secrets.items() {
        if secret.text_of("name").is_empty() {
            warnings.add_at(&secret.get("name"), "invalid empty name \"\"");
        }
    }
    // Only bytes: a fraction of a CPU is normal, and extended resources are whole by validation.
    for name in BYTES {
        warnings.check_bytes(&spec.get("overhead"), name);
    }
    let context = spec.get("securityContext");
    if !context.has("seccompProfile") && annotations.has(SECCOMP_POD) {
        warnings.add_at(&annotations.key(SECCOMP_POD), SECCOMP_INSTEAD);
    }
    let containers = containers(spec);
    for container in &containers {
        check_annotations(container, &context, &annotations, is_template, warnings);
        // Two loops rather than a nested one: Go warns of memory in both lists before storage.
        for list in ["limits", "requests"] {
            let amounts = container.get("resources").get(list);
            warnings.check_bytes(&amounts, BYTES[0]);
        }
        for list in ["limits", "requests"] {
            let amounts = container.get("resources").get(list);
            warnings.check_bytes(&amounts, BYTES[1]);
        }
        check_variables(container, warnings);
    }
    check_ports(&containers, warnings);
    check_port_names(&containers, warnings);
    let period = spec.get("terminationGracePeriodSeconds");
    if period.int().is_some_and(|seconds| seconds < 0) {
        let what = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.add_at(&period, what);
    }
    check_pod_affinity(spec, warnings);
    for server in spec.get("dnsConfig").get("nameservers").items() {
        addresses::check_ip(&server, warnings);
    }
    for alias in spec.get("hostAliases").items() {
        addresses::check_ip(&alias.get("ip"), warnings);
    }
}

// The order of `VisitContainersWithPath`; it decides which of two ports is "the other".
fn containers<'a>(spec: &Field<'a>) -> Vec<Field<'a>> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let lists = lists.into_iter().map(|list| spec.get(list));
    lists.flat_map(|list| list.items()).collect()
}

/// Warns of labels of nodes that are deprecated.
// Only preferred terms have their values checked, see `check_term`.
fn check_nodes(spec: &Field<'_>, warnings: &mut Warnings) {
    let selector = spec.get("nodeSelector");
    for (name, _) in selector.entries() {
        if let Some(text) = deprecated(name) {
            warnings.add_at(&selector.key(name), text);
        }
    }
    let affinity = spec.get("affinity").get("nodeAffinity");
    for term in affinity.get(REQUIRED).get("nodeSelectorTerms").items() {
        check_term(&term, false, warnings);
    }
    for term in affinity.get(PREFERRED).items() {
        check_term(&term.get("preference"), true, warnings);
    }
}

fn check_pod_affinity(spec: &Field<'_>, warnings: &mut Warnings) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = spec.get("affinity").get(kind);
        for term in affinity.get(REQUIRED).items() {
            warnings.check_selector(&term.get("labelSelector"));
        }
        for term in affinity.get(PREFERRED).items() {
            warnings.check_selector(&term.get("podAffinityTerm").get("labelSelector"));
        }
    }
}

fn check_repeated(list: &Field<'_>, member: &str, warnings: &mut Warnings) {
    let mut seen = Vec::new();
    for item in list.items() {
        let value = item.text_of(member);
        if seen.contains(&value) {
            warnings.add(format!("{item}.{member}: duplicate {member} {value:?}"));
        } else {
            seen.push(value);
        }
    }
}

/// Warns of annotations that members of a container replaced.
fn check_annotations(
    container: &Field<'_>,
    pod: &Field<'_>,
    annotations: &Field<'_>,
    is_template: bool,
    warnings: &mut Warnings,
) {
    let (context, name) = (container.get("securityContext"), container.text_of("name"));
    let seccomp = format!("{SECCOMP_CONTAINER}{name}");
    if !context.has("seccompProfile") && annotations.has(&seccomp) {
        warnings.add_at(&annotations.key(&seccomp), SECCOMP_INSTEAD);
    }
    let app_armor = format!("{APP_ARMOR}{name}");
    // Annotations of Pods themselves are converted into members.
    if !is_template || context.has("appArmorProfile") || !annotations.has(&app_armor) {
        return;
    }
    let profile = pod.get("appArmorProfile");
    // `ApparmorFieldForAnnotation`: an annotation that says what the Pod's profile says is no reason to warn.
    let means = match annotations.text_of(&app_armor) {
        "unconfined" => Some(("Unconfined", "")),
        "runtime/default" => Some(("RuntimeDefault", "")),
        text => text
            .strip_prefix("localhost/")
            .filter(|local| !local.is_empty())
            .map(|local| ("Localhost", local)),
    };
    let pod_has = (profile.text_of("type"), profile.text_of("localhostProfile"));
    if !profile.is_set() || means != Some(pod_has) {
        warnings.add_at(&annotations.key(&app_armor), APP_ARMOR_INSTEAD);
    }
}

/// Warns of variables that replace others of their name without using them.
fn check_variables(container: &Field<'_>, warnings: &mut Warnings) {
    let mut seen = Vec::new();
    for variable in container.get("env").items() {
        let (name, value) = (variable.text_of("name"), variable.text_of("value"));
        // Repeating a name is fine if the new value uses the old one (`PATH=$(PATH):/x`); that works because variables
        // are resolved in order.
        if !seen.contains(&name) {
            seen.push(name);
            continue;
        }
        let reference = format!("$({name})");
        let uses_it = value.contains(&reference) && value != reference;
        if variable.has("valueFrom") || !uses_it {
            let what = format!(
                "hides previous definition of {name:?}, which may be dropped when using apply"
            );
            warnings.add_at(&variable, what);
        }
    }
}

fn check_ports(containers: &[Field<'_>], warnings: &mut Warnings) {
    let mut known: Vec<Field<'_>> = Vec::new();
    for port in containers.iter().flat_map(|each| each.get("ports").items()) {
        let number = |port: &Field<'_>, member: &str| port.int_of(member).unwrap_or(0);
        let (host, address) = (number(&port, "hostPort"), port.text_of("hostIP"));
        let protocol = port.text_of("protocol");
        if !address.is_empty() && host == 0 {
            let shown = format!(
                "{{Name:{} HostPort:0 ContainerPort:{} Protocol:{protocol} HostIP:{address}}}",
                port.text_of("name"),
                number(&port, "containerPort"),
            );
            warnings.add_at(&port, format_args!("hostIP set without hostPort: {shown}"));
        }
        // Containers share the network of the Pod, so the same port in two of them conflicts.
        let is_same = |other: &&Field<'_>| {
            number(other, "containerPort") == number(&port, "containerPort")
                && other.text_of("protocol") == protocol
        };
        for other in known.iter().filter(is_same) {
            let (other_host, other_address) = (number(other, "hostPort"), other.text_of("hostIP"));
            let what = if address == other_address && host == other_host {
                // Validation refuses equal ports only if they have a host port.
                "duplicate"
            // Redundant, but harmless.
            } else if host == 0 || other_host == 0 {
                "overlapping"
            // One claims the port on all addresses, the other on one of them: which container gets it is undefined.
            } else if host == other_host && address.is_empty() != other_address.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            warnings.add_at(&port, format_args!("{what} port definition with {other}"));
        }
        known.push(port);
    }
}

// Names must be unique within a container, but not within the Pod.
fn check_port_names(containers: &[Field<'_>], warnings: &mut Warnings) {
    let mut known: HashMap<&str, Field<'_>> = HashMap::new();
    for port in containers.iter().flat_map(|each| each.get("ports").items()) {
        let name = port.text_of("name");
        if let Some(other) = known.get(name) {
            let what = format!(
                "duplicate port name {name:?} with {other}, services and probes that select ports by name will use \
                 {other}"
            );
            warnings.add_at(&port, what);
        } else if !name.is_empty() {
            known.insert(name, port);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(spec: &Value, expected: &[&str]) {
        let object = json!({"t": {"spec": spec}});
        let mut warnings = Warnings::default();
        template(&Field::of(object.as_object().unwrap(), "t"), &mut warnings);
        assert_eq!(warnings.into_list(), expected);
    }

    #[test]
    fn doubtful_ports_and_variables_are_named() {
        let port = |host: i64, address: &str| json!({"containerPort": 80, "protocol": "TCP", "hostPort": host, "hostIP": address});
        let pod = |first: Value, second: Value| json!({"containers": [{"ports": [first]}, {"ports": [second]}]});
        let [a, b] = [
            "t.spec.containers[1].ports[0]",
            "t.spec.containers[0].ports[0]",
        ];
        for (first, second, what) in [
            (port(0, ""), port(0, ""), Some("duplicate")),
            (port(0, ""), port(8, ""), Some("overlapping")),
            (
                port(8, ""),
                port(8, "1.1.1.1"),
                Some("dangerously ambiguous"),
            ),
            (port(8, ""), port(9, ""), None),
        ] {
            let expected = what.map(|what| format!("{a}: {what} port definition with {b}"));
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            check(&pod(first, second), &expected);
        }
        let variable = |value: &str| json!({"name": "A", "value": value});
        let env = |value: &str| json!({"containers": [{"env": [variable("1"), variable(value)]}]});
        check(&env("$(A)2"), &[]);
        check(
            &env("2"),
            &[
                "t.spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
            ],
        );
        check(
            &json!({"imagePullSecrets": [{"name": "a"}, {"name": "a"}], "terminationGracePeriodSeconds": -1}),
            &[
                "t.spec.imagePullSecrets[1].name: duplicate name \"a\"",
                "t.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
            ],
        );
    }
}

//! Checks of what a Pod shares with its node.

use std::collections::BTreeSet;

use serde_json::Value;

use super::pod::{Pod, text};
use super::violation::{Violation, containers, plural, quoted, wrong_setters};

pub(super) fn namespaces(pod: Pod<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"];
    let shared = shared.into_iter().filter(|name| pod.spec[*name] == true);
    let shared: Vec<String> = shared.map(|name| format!("{name}=true")).collect();
    (!shared.is_empty()).then(|| Violation::new("host namespaces", shared.join(", ")))
}

pub(super) fn ports(pod: Pod<'_>) -> Option<Violation> {
    let ports = |container: &Value| {
        let ports = container["ports"].as_array().into_iter().flatten();
        let ports: Vec<i64> = ports
            .filter_map(|port| port["hostPort"].as_i64())
            .filter(|port| *port != 0)
            .collect();
        ports
    };
    let bad = pod.named(|container| !ports(container.0).is_empty());
    // Sorted as texts.
    let all = pod.containers().flat_map(|container| ports(container.0));
    let all: BTreeSet<String> = all.map(|port| port.to_string()).collect();
    let verb = plural("uses", "use", bad.len());
    let word = plural("hostPort", "hostPorts", all.len());
    let list = all.into_iter().collect::<Vec<_>>().join(", ");
    (!bad.is_empty()).then(|| {
        let detail = format!("{} {verb} {word} {list}", containers(&bad));
        Violation::new("hostPort", detail)
    })
}

/// Checks the hosts of probes and of lifecycle handlers.
pub(super) fn probes(pod: Pod<'_>) -> Option<Violation> {
    fn hosts(container: &Value) -> impl Iterator<Item = &str> {
        let probes = ["livenessProbe", "readinessProbe", "startupProbe"];
        let handlers = ["postStart", "preStop"].map(|name| &container["lifecycle"][name]);
        probes
            .map(|name| &container[name])
            .into_iter()
            .chain(handlers)
            .flat_map(|action| [&action["httpGet"]["host"], &action["tcpSocket"]["host"]])
            .map(text)
            .filter(|host| !host.is_empty())
    }
    let bad = pod.named(|container| hosts(container.0).next().is_some());
    if bad.is_empty() {
        return None;
    }
    let all: BTreeSet<&str> = pod
        .containers()
        .flat_map(|container| hosts(container.0))
        .collect();
    let bad: Vec<&str> = bad
        .into_iter()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let verb = plural("uses", "use", bad.len());
    let word = plural(
        "probe or lifecycle host",
        "probe or lifecycle hosts",
        all.len(),
    );
    let detail = format!("{} {verb} {word} {}", containers(&bad), quoted(all));
    Some(Violation::new("probe or lifecycle host", detail))
}

pub(super) fn windows_process(pod: Pod<'_>) -> Option<Violation> {
    let who = wrong_setters(pod, |security| {
        security["windowsOptions"]["hostProcess"] == true
    })?;
    let detail = format!("{who} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation::new("hostProcess", detail))
}

/// The sysctls that touch no one else, each release with those before it.
const SYSCTLS_0: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
];
const SYSCTLS_27: &[&str] = &["net.ipv4.ip_local_reserved_ports"];
const SYSCTLS_29: &[&str] = &[
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
];
const SYSCTLS_32: &[&str] = &["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];

pub(super) fn sysctls_0(pod: Pod<'_>) -> Option<Violation> {
    sysctls(pod, &[SYSCTLS_0])
}

pub(super) fn sysctls_27(pod: Pod<'_>) -> Option<Violation> {
    sysctls(pod, &[SYSCTLS_0, SYSCTLS_27])
}

pub(super) fn sysctls_29(pod: Pod<'_>) -> Option<Violation> {
    sysctls(pod, &[SYSCTLS_0, SYSCTLS_27, SYSCTLS_29])
}

pub(super) fn sysctls_32(pod: Pod<'_>) -> Option<Violation> {
    sysctls(pod, &[SYSCTLS_0, SYSCTLS_27, SYSCTLS_29, SYSCTLS_32])
}

fn sysctls(pod: Pod<'_>, allowed: &[&[&str]]) -> Option<Violation> {
    let set = pod.security()["sysctls"].as_array().into_iter().flatten();
    let set = set.map(|sysctl| text(&sysctl["name"]));
    let forbidden: Vec<&str> = set
        .filter(|name| !allowed.iter().any(|each| each.contains(name)))
        .collect();
    (!forbidden.is_empty()).then(|| Violation::new("forbidden sysctls", forbidden.join(", ")))
}

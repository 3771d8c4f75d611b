//! Checks of what confines containers: AppArmor, seccomp, SELinux, and masks of `/proc`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::pod::{Pod, text};
use super::violation::{Violation, containers, plural, quoted, wrong_setters};
use crate::go_text;

/// The prefix of the annotations for AppArmor profiles of containers.
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
/// The annotation for the seccomp profile of a Pod.
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// The prefix of the annotations for seccomp profiles of containers.
const SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Returns the security contexts of the Pod and of its containers.
fn contexts<'a>(pod: Pod<'a>) -> impl Iterator<Item = &'a Value> {
    let containers = pod.containers().map(|container| container.security());
    std::iter::once(pod.security()).chain(containers)
}

/// Returns the type of a profile that is neither of the runtime nor of the node.
fn bad_type<'a>(security: &'a Value, member: &str) -> Option<&'a str> {
    let profile = security[member].as_object()?;
    let kind = text(profile.get("type").unwrap_or(&Value::Null));
    (!matches!(kind, "RuntimeDefault" | "Localhost")).then_some(kind)
}

pub(super) fn app_armor(pod: Pod<'_>) -> Option<Violation> {
    let bad = |security: &Value| bad_type(security, "appArmorProfile").is_some();
    let is_allowed = |value: &str| {
        value.is_empty() || value == "runtime/default" || value.starts_with("localhost/")
    };
    let annotations = pod.annotations();
    let annotations =
        annotations.filter(|(key, value)| key.starts_with(APP_ARMOR) && !is_allowed(value));
    let mut annotations: Vec<String> = annotations
        .map(|(key, value)| annotated(key, value))
        .collect();
    annotations.sort();
    let word = plural("annotation", "annotations", annotations.len());
    let by_annotation = (!annotations.is_empty()).then(|| word.to_owned());
    let who: Vec<String> = wrong_setters(pod, bad)
        .into_iter()
        .chain(by_annotation)
        .collect();
    if who.is_empty() {
        return None;
    }
    let values = contexts(pod).filter_map(|security| bad_type(security, "appArmorProfile"));
    let values: BTreeSet<&str> = values.collect();
    let values = values
        .into_iter()
        .chain(annotations.iter().map(String::as_str));
    let values: Vec<&str> = values.collect();
    let reason = plural(
        "forbidden AppArmor profile",
        "forbidden AppArmor profiles",
        values.len(),
    );
    let (who, values) = (who.join(" and "), quoted(values));
    let detail = format!("{who} must not set AppArmor profile type to {values}");
    Some(Violation::new(reason, detail))
}

/// Writes an annotation as `key="value"`.
fn annotated(key: &str, value: &str) -> String {
    format!("{key}={}", go_text::quoted(value))
}

/// Checks the annotations that named seccomp profiles before there was a member.
pub(super) fn seccomp_annotations(pod: Pod<'_>) -> Option<Violation> {
    let is_allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let names = pod.named(|_| true);
    let counts = |key: &str| {
        let of_container = key.strip_prefix(SECCOMP);
        key == SECCOMP_OF_POD || of_container.is_some_and(|name| names.contains(&name))
    };
    let forbidden = pod.annotations();
    let forbidden = forbidden.filter(|(key, value)| counts(key) && !is_allowed(value));
    let forbidden: BTreeSet<String> = forbidden
        .map(|(key, value)| annotated(key, value))
        .collect();
    let word = plural("annotation", "annotations", forbidden.len());
    let list = forbidden.into_iter().collect::<Vec<_>>().join(", ");
    let detail = format!("forbidden {word} {list}");
    (!list.is_empty()).then(|| Violation::new("seccompProfile", detail))
}

pub(super) fn seccomp_allowed(pod: Pod<'_>) -> Option<Violation> {
    let who = wrong_setters(pod, |security| {
        bad_type(security, "seccompProfile").is_some()
    })?;
    let values = contexts(pod).filter_map(|security| bad_type(security, "seccompProfile"));
    let values = quoted(values.collect::<BTreeSet<&str>>());
    let detail = format!("{who} must not set securityContext.seccompProfile.type to {values}");
    Some(Violation::new("seccompProfile", detail))
}

pub(super) fn seccomp_required(pod: Pod<'_>) -> Option<Violation> {
    let is_set = |security: &Value| security["seccompProfile"].is_object();
    let refused = seccomp_allowed(pod);
    if refused.is_some() || is_set(pod.security()) {
        return refused;
    }
    let silent = pod.named(|container| !is_set(container.security()));
    (!silent.is_empty()).then(|| {
        let (who, member) = (containers(&silent), "securityContext.seccompProfile.type");
        let detail =
            format!(r#"pod or {who} must set {member} to "RuntimeDefault" or "Localhost""#);
        Violation::new("seccompProfile", detail)
    })
}

pub(super) fn proc_mount(pod: Pod<'_>) -> Option<Violation> {
    fn bad(security: &Value) -> Option<&str> {
        let mount = security["procMount"].as_str();
        mount.filter(|mount| *mount != "Default")
    }
    let names = pod.named(|container| bad(container.security()).is_some());
    let values = pod.containers();
    let values = values.filter_map(|container| bad(container.security()));
    let values = quoted(values.collect::<BTreeSet<&str>>());
    (!names.is_empty()).then(|| {
        let who = containers(&names);
        let detail = format!("{who} must not set securityContext.procMount to {values}");
        Violation::new("procMount", detail)
    })
}

pub(super) fn se_linux_0(pod: Pod<'_>) -> Option<Violation> {
    let allowed = ["", "container_t", "container_init_t", "container_kvm_t"];
    se_linux(pod, |kind| allowed.contains(&kind))
}

pub(super) fn se_linux_31(pod: Pod<'_>) -> Option<Violation> {
    let allowed = [
        "",
        "container_t",
        "container_init_t",
        "container_kvm_t",
        "container_engine_t",
    ];
    se_linux(pod, |kind| allowed.contains(&kind))
}

fn se_linux(pod: Pod<'_>, is_allowed: impl Fn(&str) -> bool) -> Option<Violation> {
    fn member<'a>(security: &'a Value, name: &str) -> &'a str {
        text(&security["seLinuxOptions"][name])
    }
    let sets = |security: &Value, name: &str| !member(security, name).is_empty();
    let who = wrong_setters(pod, |security| {
        !is_allowed(member(security, "type")) || sets(security, "user") || sets(security, "role")
    })?;
    let types = contexts(pod).map(|security| member(security, "type"));
    let types: BTreeSet<&str> = types.filter(|kind| !is_allowed(kind)).collect();
    let word = plural("type", "types", types.len());
    let types = (!types.is_empty()).then(|| format!("{word} {}", quoted(types)));
    let others = ["user", "role"].into_iter();
    let others = others.filter(|name| contexts(pod).any(|security| sets(security, name)));
    let others = others.map(|name| format!("{name} may not be set"));
    let what: Vec<String> = types.into_iter().chain(others).collect();
    let what = what.join("; ");
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {what}");
    Some(Violation::new("seLinuxOptions", detail))
}

//! Checks of what containers may do, and of who runs in them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::pod::{Container, Pod, texts};
use super::violation::{Violation, containers, quoted, wrong_setters};

/// The capabilities that containers have by default.
const DEFAULT_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

pub(super) fn privileged(pod: Pod<'_>) -> Option<Violation> {
    let bad = pod.named(|container| container.security()["privileged"] == true);
    (!bad.is_empty()).then(|| {
        let who = containers(&bad);
        let detail = format!("{who} must not set securityContext.privileged=true");
        Violation::new("privileged", detail)
    })
}

pub(super) fn escalation(pod: Pod<'_>) -> Option<Violation> {
    let bad = pod.named(|container| container.security()["allowPrivilegeEscalation"] != false);
    (!bad.is_empty()).then(|| {
        let who = containers(&bad);
        let detail = format!("{who} must set securityContext.allowPrivilegeEscalation=false");
        Violation::new("allowPrivilegeEscalation != false", detail)
    })
}

/// Checks which capabilities containers add to those that they have by default.
pub(super) fn added(pod: Pod<'_>) -> Option<Violation> {
    let forbidden = additions(pod, |capability| DEFAULT_CAPABILITIES.contains(&capability))?;
    Some(Violation::new("non-default capabilities", forbidden))
}

/// Checks that containers drop `ALL`, and add at most `NET_BIND_SERVICE`.
pub(super) fn dropped(pod: Pod<'_>) -> Option<Violation> {
    let keeps = |container: Container<'_>| {
        let capabilities = &container.security()["capabilities"];
        !texts(&capabilities["drop"]).any(|each| each == "ALL")
    };
    let keeping = pod.named(keeps);
    let keeping = (!keeping.is_empty()).then(|| {
        let who = containers(&keeping);
        format!(r#"{who} must set securityContext.capabilities.drop=["ALL"]"#)
    });
    let forbidden = additions(pod, |capability| capability == "NET_BIND_SERVICE");
    let details: Vec<String> = keeping.into_iter().chain(forbidden).collect();
    (!details.is_empty()).then(|| Violation::new("unrestricted capabilities", details.join("; ")))
}

/// Returns the containers that add capabilities they may not, in words.
fn additions(pod: Pod<'_>, may_add: impl Fn(&str) -> bool) -> Option<String> {
    fn of(container: Container<'_>) -> impl Iterator<Item = &str> {
        texts(&container.security()["capabilities"]["add"])
    }
    let bad = pod.named(|container| of(container).any(|each| !may_add(each)));
    let added = pod.containers().flat_map(of);
    let forbidden: BTreeSet<&str> = added.filter(|each| !may_add(each)).collect();
    (!bad.is_empty()).then(|| {
        let (who, what) = (containers(&bad), quoted(forbidden));
        format!("{who} must not include {what} in securityContext.capabilities.add")
    })
}

const NOT_ROOT: &str = "runAsNonRoot != true";

pub(super) fn not_root(pod: Pod<'_>) -> Option<Violation> {
    let flag = |security: &Value| security["runAsNonRoot"].as_bool();
    if let Some(who) = wrong_setters(pod, |security| flag(security) == Some(false)) {
        let detail = format!("{who} must not set securityContext.runAsNonRoot=false");
        return Some(Violation::new(NOT_ROOT, detail));
    }
    if flag(pod.security()) == Some(true) {
        return None;
    }
    let silent = pod.named(|container| flag(container.security()).is_none());
    (!silent.is_empty()).then(|| {
        let who = containers(&silent);
        let detail = format!("pod or {who} must set securityContext.runAsNonRoot=true");
        Violation::new(NOT_ROOT, detail)
    })
}

pub(super) fn user_zero(pod: Pod<'_>) -> Option<Violation> {
    let who = wrong_setters(pod, |security| security["runAsUser"] == 0)?;
    let detail = format!("{who} must not set runAsUser=0");
    Some(Violation::new("runAsUser=0", detail))
}

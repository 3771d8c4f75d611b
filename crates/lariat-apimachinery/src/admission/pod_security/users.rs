//! Checks of who runs in containers.

use serde_json::Value;

use super::pod::Pod;
use super::texts::{containers, wrong_setters};
use super::violation::Violation;

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

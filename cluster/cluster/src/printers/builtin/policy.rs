//! Cells of what allows, limits and extends: bindings, quotas, signing requests, API services.

use super::references::namespace_and_name;
use crate::printers::source::Row;

/// Returns the subjects of a binding that are of one kind.
pub(super) fn subjects(subjects: Row<'_>, kind: &str) -> String {
    let of_kind = subjects
        .rows("")
        .filter(|subject| subject.text("/kind") == kind);
    let name = |subject| match kind {
        "ServiceAccount" => namespace_and_name(subject),
        _ => subject.text("/name").to_owned(),
    };
    let names: Vec<String> = of_kind.map(name).collect();
    names.join(", ")
}

/// Returns the usage of a quota: of its limits, or of everything else.
pub(super) fn quota(quota: Row<'_>, of_limits: bool) -> String {
    let (hard, used) = (quota.at("/status/hard"), quota.at("/status/used"));
    let resources = hard.object.as_object().into_iter().flatten();
    let is_limit = |resource: &str| {
        let parts = resource.split_once('.');
        parts.is_some_and(|(first, _)| first == "limits")
    };
    let shown = resources.filter(|(resource, _)| is_limit(resource) == of_limits);
    let texts: Vec<String> = shown
        .map(|(resource, _)| {
            // Names of extended resources have a slash.
            let pointer = format!("/{}", resource.replace('~', "~0").replace('/', "~1"));
            let [used, hard] = [used, hard].map(|amounts| amounts.scalar_or(&pointer, "0"));
            format!("{resource}: {used}/{hard}")
        })
        .collect();
    texts.join(", ")
}

/// Returns the condition of a request for a certificate.
pub(super) fn signing_request_condition(request: Row<'_>) -> String {
    let has = |kind: &str| {
        let mut conditions = request.rows("/status/conditions");
        conditions.any(|condition| condition.text("/type") == kind)
    };
    let mut states = vec![match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }];
    if has("Failed") {
        states.push("Failed");
    }
    if !request.text("/status/certificate").is_empty() {
        states.push("Issued");
    }
    states.join(",")
}

/// Returns whether a part of the control plane is healthy.
pub(super) fn health(condition: Row<'_>) -> &'static str {
    match condition.text("/status") {
        "True" => "Healthy",
        _ => "Unhealthy",
    }
}

/// Returns whether an API service is available, or why it is not.
pub(super) fn availability(condition: Row<'_>) -> String {
    match (condition.text("/status"), condition.text("/reason")) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

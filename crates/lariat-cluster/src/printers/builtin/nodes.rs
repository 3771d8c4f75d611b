//! Cells of nodes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::row::UNKNOWN;
use crate::printers::source::Row;

/// Returns whether a node is ready, and whether it takes Pods.
pub(super) fn status(node: Row<'_>) -> String {
    let status = match node.condition("Ready") {
        "" => "Unknown",
        "True" => "Ready",
        _ => "NotReady",
    };
    if node.flag("/spec/unschedulable") {
        format!("{status},SchedulingDisabled")
    } else {
        status.to_owned()
    }
}

/// Returns the roles of a node, which its labels say.
pub(super) fn roles(labels: Row<'_>) -> String {
    let role = |(key, value): (&'_ String, &'_ Value)| match key
        .strip_prefix("node-role.kubernetes.io/")
    {
        Some(role) => Some(role.to_owned()),
        None if key == "kubernetes.io/role" => value.as_str().map(str::to_owned),
        None => None,
    };
    let labels = labels.object.as_object().into_iter().flatten();
    let mut roles: BTreeSet<String> = labels.filter_map(role).collect();
    roles.remove("");
    Vec::from_iter(roles).join(",")
}

/// Returns the version of a node's kernel, with the architecture.
pub(super) fn kernel(info: Row<'_>) -> String {
    let version = info.text_or("/kernelVersion", UNKNOWN);
    match info.text("/architecture") {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

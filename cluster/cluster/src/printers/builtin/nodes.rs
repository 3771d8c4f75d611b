//! Cells of nodes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::row::{NONE, UNKNOWN};
use crate::printers::source::Row;

/// Returns whether a node is ready, and whether it takes Pods.
pub(super) fn status(node: Row<'_>) -> String {
    let mut conditions = node.rows("/status/conditions");
    // As the map of conditions in printNode, in which the last one of a type stays.
    let ready = conditions.rfind(|condition| condition.text("/type") == "Ready");
    let status = match ready.map(|condition| condition.text("/status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
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

/// Returns the first address of a type, which may be empty.
pub(super) fn address<'a>(node: Row<'a>, kind: &str) -> &'a str {
    let mut addresses = node.rows("/status/addresses");
    let address = addresses.find(|address| address.text("/type") == kind);
    address.map_or(NONE, |address| address.text("/address"))
}

/// Returns the version of a node's kernel, with the architecture.
pub(super) fn kernel(info: Row<'_>) -> String {
    let version = info.text_or("/kernelVersion", UNKNOWN);
    match info.text("/architecture") {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

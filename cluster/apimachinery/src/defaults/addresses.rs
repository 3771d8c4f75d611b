//! Members that say the same twice: one value, and a list that begins with it.
//!
//! Source: `k8s.io/kubernetes/pkg/apis/core/v1/conversion.go`.

use serde_json::{Value, json};

use super::members::{inner, set, text};
use crate::object::Object;

/// Sets the defaults of a Node: `podCIDRs` from `podCIDR`, and `allocatable` from `capacity`.
pub(super) fn node(object: &mut Object) {
    if let Some(spec) = inner(object, "spec") {
        align(
            spec,
            ("podCIDR", "podCIDRs"),
            |network| json!(network),
            |first| first.as_str(),
        );
    }
    if let Some(status) = inner(object, "status")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        // `SetDefaults_NodeStatus`.
        set(status, "allocatable", capacity);
    }
}

/// Keeps the addresses of a Pod in line.
pub(super) fn pod(object: &mut Object) {
    if let Some(status) = inner(object, "status") {
        let item = |address: &str| json!({"ip": address});
        align(status, ("podIP", "podIPs"), item, |first| {
            first["ip"].as_str()
        });
    }
}

/// Makes a single member and the first item of a list equal.
///
/// The single member wins; if it is missing, it becomes the first item.
fn align(
    object: &mut Object,
    (one, list): (&str, &str),
    item: impl Fn(&str) -> Value,
    read: impl Fn(&Value) -> Option<&str>,
) {
    let value = text(object, one).to_owned();
    let first = object.get(list).and_then(|list| read(list.get(0)?));
    let first = first.unwrap_or_default().to_owned();
    // A client that knows the single member only sends back the old list, so the single one is the news.
    if !value.is_empty() && value != first {
        object.insert(list.to_owned(), json!([item(&value)]));
    } else if value.is_empty() && !first.is_empty() {
        object.insert(one.to_owned(), first.into());
    }
}
